package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// slowStores is a cluster whose stores take longer than a message.
func slowStores(t *testing.T) *rig {
	r := newRig(t, 1, 2, 2)
	r.boot()
	r.run(3 * time.Second)
	r.slow = func(*proc) time.Duration { return 300 * time.Millisecond }
	return r
}

// TestPromisesAreStoredFirst: rig.send fails for a promise that is not on disk.
func TestPromisesAreStoredFirst(t *testing.T) {
	r := slowStores(t)
	before := settledID(r.find("a1").local)
	r.join("a")
	move(r, r.find("b1"))
	r.run(20 * time.Second)
	r.safe()
	if settledID(r.find("a1").local) == before || settledID(r.find("a1").Agent.region) == (epoch.ID{}) {
		t.Error("nothing was promised")
	}
}

// TestFailedStoreIsRepeated: promises that were not stored at first count once
// they are.
func TestFailedStoreIsRepeated(t *testing.T) {
	r := newRig(t, 1, 1, 1)
	r.boot()
	r.run(3 * time.Second)
	a := r.find("a1")
	full := true
	r.failing = func(p *proc) bool { return full && p == a }
	move(r, r.find("b1"))
	r.run(3 * time.Second)
	if e := newest(r.find("b1").Agent.region); e.Settled {
		t.Fatal("an epoch settled although a1 stored nothing")
	}
	full = false
	r.until(10*time.Second, "the epoch is settled", func() bool { return newest(r.find("b1").Agent.region).Settled })
	r.safe()
}

// TestLeftOutKeepsNothing: a former allotment of the window ends when an epoch
// leaves the daemon out, and remains when its epochs were pruned.
func TestLeftOutKeepsNothing(t *testing.T) {
	c := &shareCache{}
	c.setRules([]Rule{{ID: 1}})
	share := func(allotment uint64, reason epoch.Reason) uint64 {
		n, _ := c.keep(1, keptShare{x: 5_000, total: 100, allotment: allotment}, reason)
		return n
	}
	if n := share(50, epoch.ReasonEpoch); n != 50 {
		t.Errorf("allotment %d of 50", n)
	}
	if n := share(0, epoch.ReasonUnsettled); n != 50 {
		t.Errorf("allotment %d of 50 after its epochs were pruned", n)
	}
	if n := share(0, epoch.ReasonLeftOut); n != 0 {
		t.Errorf("allotment %d of a daemon that is left out", n)
	}
}

// TestReclaimNeedsMost: of three dead daemons of four no share is reclaimed,
// since the epoch without them could not settle.
func TestReclaimNeedsMost(t *testing.T) {
	r := newRig(t, 1, 4)
	r.boot()
	r.run(3 * time.Second)
	m := &r.find("a1").members
	id := func(name string) uint64 { return r.find(name).id() }
	among := func(names ...string) func(uint64) bool {
		return func(p uint64) bool {
			return slices.ContainsFunc(names, func(name string) bool { return id(name) == p })
		}
	}
	if !m.reclaimable(among("a1", "a2", "a3"), among()) {
		t.Error("the share of one dead daemon of four is not reclaimable")
	}
	if m.reclaimable(among("a1", "a2"), among()) {
		t.Error("the shares of two dead daemons of four are reclaimable")
	}
	if m.reclaimable(among("a1", "a2"), among("a3")) {
		t.Error("a retired daemon refuses the horizon of another")
	}
}

// TestExchangedTables refuses a record whose tables are not one of regions and
// one of daemons.
func TestExchangedTables(t *testing.T) {
	r := newRig(t, 1, 1)
	r.boot()
	r.run(time.Second)
	a := r.find("a1")
	for _, change := range []func(s *Stored){
		func(s *Stored) { s.Region.Regional = false },
		func(s *Stored) { s.Local.Regional = true },
		func(s *Stored) { s.Region, s.Local = s.Local, s.Region },
	} {
		s := *a.disk
		change(&s)
		if _, err := New(a.cfg, Start{Record: &s}); err == nil {
			t.Error("a record of other tables was restored")
		}
	}
}
