package agent

import (
	"testing"
	"time"

	"github.com/georld/rld/quota/epoch"
)

func TestGenesis(t *testing.T) {
	r := newRig(t, 1, 3, 2, 1)
	r.boot()
	r.until(time.Second, "all held after the first start", r.whole)
	r.run(30 * time.Second)
	r.safe()
	if !r.whole() {
		t.Errorf("%d of %d after a while", r.held(0), r.asked[0].total)
	}
	for _, p := range r.daemons {
		if s := p.Status(); !p.ready || len(s.Regions) != 1 || len(s.Daemons) != 1 {
			t.Errorf("%s: ready %v, epochs %v, %v", p.name, p.ready, s.Regions, s.Daemons)
		}
	}
}

func TestDeadDaemon(t *testing.T) {
	r := newRig(t, 1, 3, 1, 1)
	r.boot()
	r.run(10 * time.Second)
	dead := r.find("a2")
	r.crash(dead)
	took := r.until(32*time.Second, "share of the dead", r.whole)
	if took < 29*time.Second {
		t.Errorf("back after %v: the dead may hold 30 s", took)
	}
	r.safe()
	r.restart(dead, false)
	r.until(10*time.Second, "returned", func() bool { return r.base(dead, 0) > 1000 && r.whole() })
	r.safe()
}

func TestJoiner(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.boot()
	r.run(5 * time.Second)
	p := r.join("a")
	r.until(10*time.Second, "joined", func() bool { return r.base(p, 0) > 1000 && r.whole() })
	r.safe()
	q := r.join("a")
	r.until(10*time.Second, "joined", func() bool { return r.base(q, 0) > 1000 && r.whole() })
	r.safe()
}

// TestLostDisk: a daemon that lost its disk is another participant, and joins.
// In a region of three its former share is reclaimed after the horizon.
func TestLostDisk(t *testing.T) {
	r := newRig(t, 1, 3, 1, 1)
	r.boot()
	r.run(5 * time.Second)
	p := r.find("a1")
	former := p.id()
	r.crash(p)
	r.run(time.Second)
	r.restart(p, true)
	r.run(3 * step)
	if _, why := p.Allotment(11, 100, r.now(p), 0, false); p.id() == former || why == epoch.ReasonEpoch {
		t.Error("holds something right after it lost its disk")
	}
	r.until(40*time.Second, "joined", func() bool { return r.base(p, 0) > 1000 && r.whole() })
	r.safe()
}

func TestRebalance(t *testing.T) {
	r := newRig(t, 1, 2, 2, 1)
	r.demand = func(p *proc, rule uint64) uint64 {
		if p.region == "a" {
			return 500
		}
		return 50
	}
	r.boot()
	r.run(130 * time.Second)
	r.safe()
	if got := r.base(r.find("a1"), 0); got < 3500 {
		r.dump()
		t.Errorf("a1 holds %d of %d with nine tenths of the demand", got, r.asked[0].total)
	}
	if !r.whole() {
		t.Errorf("%d of %d", r.held(0), r.asked[0].total)
	}
	was := r.find("a1").Status().Regions[0].ID
	r.run(100 * time.Second)
	if is := r.find("a1").Status().Regions[0].ID; was != is {
		t.Errorf("epoch %s became %s though the demand is steady", was, is)
	}
}
