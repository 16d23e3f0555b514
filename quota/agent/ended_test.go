package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// holdsNothing fails the test if a daemon holds something in the present
// windows.
func (r *rig) holdsNothing(p *proc, because string) {
	r.t.Helper()
	if got := r.base(p, 0) + r.base(p, 1) + r.base(p, 2); got != 0 {
		r.dump()
		r.t.Fatalf("%v: %s holds %d although %s", r.at, p.name, got, because)
	}
}

// TestLateFounder: a founder that never started is removed, and starts later:
// it holds nothing, first because nobody confirms its record, then because its
// id is dead. Then it joins under a new one.
func TestLateFounder(t *testing.T) {
	r := newRig(t, 1, 2)
	r.found()
	a, late := r.find("a1"), r.find("a2")
	r.start(a)
	r.run(30 * time.Second)
	r.removeDaemon(late)
	r.until(15*time.Second, "a1 holds all", r.whole)
	r.off = func(p *proc) bool { return p == late }
	r.cut = func(from, to *proc) bool { return from == late || to == late }
	r.start(late)
	for range 50 {
		r.run(100 * time.Millisecond)
		r.holdsNothing(late, "nobody confirmed its record")
	}
	r.safe()
	former := late.id()
	r.off, r.cut = nil, nil
	r.until(10*time.Second, "it joined", func() bool { return r.base(late, 0) > 4000 && r.whole() })
	if late.id() == former {
		t.Error("it joined under its dead id")
	}
	r.safe()
}

// TestLateRegion: a region that never started is removed, and starts later with
// the record of the founding. It holds nothing before it is added again.
func TestLateRegion(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.found()
	a, late := r.find("a1"), r.find("c1")
	r.start(a)
	r.start(r.find("b1"))
	r.run(30 * time.Second)
	if err := r.removeRegion(a, "c"); err != nil {
		t.Fatal(err)
	}
	r.until(15*time.Second, "a and b hold all", r.whole)
	r.off = func(p *proc) bool { return p == late }
	r.start(late)
	for range 50 {
		r.run(100 * time.Millisecond)
		r.holdsNothing(late, "nobody confirmed its record")
	}
	r.off = nil
	r.run(10 * time.Second)
	r.holdsNothing(late, "its region was removed")
	if err := r.addRegion(a, "c", 200_000); err != nil {
		t.Fatal(err)
	}
	r.until(10*time.Second, "c holds a share", func() bool { return r.base(late, 0) == 2001 && r.whole() })
	r.safe()
}

// TestRemovedRegionReturnsWithItsDisks: the daemons of a removed region start
// together, with their disks and without the control log: neither takes the
// other one for a proof that the region is still there.
func TestRemovedRegionReturnsWithItsDisks(t *testing.T) {
	r := newRig(t, 1, 2, 1)
	r.boot()
	r.run(20 * time.Second)
	r.crash(r.find("a1"))
	r.crash(r.find("a2"))
	r.run(15 * time.Second)
	if err := r.removeRegion(r.find("b1"), "a"); err != nil {
		t.Fatal(err)
	}
	r.until(15*time.Second, "b holds all", r.whole)
	r.run(20 * time.Second)
	r.cut = func(from, to *proc) bool { return from.region != to.region }
	r.off = func(p *proc) bool { return p.region == "a" }
	r.restart(r.find("a1"), false)
	r.restart(r.find("a2"), false)
	for range 100 {
		r.run(100 * time.Millisecond)
		r.holdsNothing(r.find("a1"), "its region was removed")
		r.holdsNothing(r.find("a2"), "its region was removed")
	}
	r.cut, r.off = nil, nil
	r.run(5 * time.Second)
	if err := r.addRegion(r.find("b1"), "a", 400_000); err != nil {
		t.Fatal(err)
	}
	r.until(10*time.Second, "a holds its share", func() bool { return r.base(r.find("a1"), 0)+r.base(r.find("a2"), 0) == 4002 && r.whole() })
	r.safe()
}

// TestRegionReturns: a region that is removed and added again holds its share
// within ten seconds, whatever is left of its disks.
func TestRegionReturns(t *testing.T) {
	for _, tt := range []struct{ daemons, lost int }{{1, 0}, {1, 1}, {3, 0}, {3, 1}, {3, 3}} {
		t.Run(fmt.Sprintf("%d of %d disks lost", tt.lost, tt.daemons), func(t *testing.T) {
			r := newRig(t, 1, tt.daemons, 1, 1)
			r.boot()
			r.run(20 * time.Second)
			region := r.daemons[:tt.daemons]
			for _, p := range region {
				r.crash(p)
			}
			r.run(15 * time.Second)
			if err := r.removeRegion(r.find("b1"), "a"); err != nil {
				t.Fatal(err)
			}
			r.until(15*time.Second, "b and c hold all", r.whole)
			for i, p := range region {
				r.restart(p, i < tt.lost)
			}
			r.run(5 * time.Second)
			if !r.whole() {
				t.Errorf("%d held while the region is away", r.held(0))
			}
			if err := r.addRegion(r.find("b1"), "a", 250_000); err != nil {
				t.Fatal(err)
			}
			r.until(10*time.Second, "all hold their shares", func() bool {
				held := uint64(0)
				for _, p := range region {
					held += r.base(p, 0)
				}
				return held > 2490 && r.whole()
			})
			r.safe()
		})
	}
}

// TestAllDisksLost: a region all of whose daemons lost their disks holds
// nothing and takes nothing from the others, until it is removed and added.
func TestAllDisksLost(t *testing.T) {
	r := newRig(t, 1, 2, 1, 1)
	r.boot()
	r.run(3 * time.Second)
	lost := []*proc{r.find("a1"), r.find("a2")}
	for _, p := range lost {
		r.crash(p)
		r.restart(p, true)
	}
	r.run(30 * time.Second)
	r.safe()
	for _, p := range lost {
		r.holdsNothing(p, "nobody of its region has a record")
	}
	if got := r.held(0); got < r.asked[0].total/2 {
		t.Errorf("%d held by the others", got)
	}
	if err := r.removeRegion(r.find("b1"), "a"); err != nil {
		t.Fatal(err)
	}
	r.until(15*time.Second, "the others hold all", r.whole)
	if err := r.addRegion(r.find("b1"), "a", 300_000); err != nil {
		t.Fatal(err)
	}
	r.until(10*time.Second, "it holds a share", func() bool { return r.base(lost[0], 0) > 1400 && r.whole() })
	r.safe()
}

// TestRemoveWhilePending: a region is lost while an epoch waits for it. The
// entry that removes it names what is settled as its predecessor.
func TestRemoveWhilePending(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.boot()
	r.run(3 * time.Second)
	r.crash(r.find("a1"))
	move(r, r.find("b1"))
	r.run(3 * time.Second)
	if newest(r.find("b1").Agent.region).Settled {
		t.Fatal("an epoch is settled without a region that gives")
	}
	if err := r.removeRegion(r.find("b1"), "a"); err != nil {
		t.Fatal(err)
	}
	r.until(15*time.Second, "the others hold all", r.whole)
	r.safe()
}

// TestLostDiskOfTwo: in a region of two, a daemon that lost its disk stays out
// until the operator states that its former id is dead. The other one keeps its
// share meanwhile.
func TestLostDiskOfTwo(t *testing.T) {
	r := newRig(t, 1, 2, 1)
	r.boot()
	r.run(5 * time.Second)
	p, other := r.find("a2"), r.find("a1")
	former, share := p.id(), r.base(other, 0)
	r.crash(p)
	r.restart(p, true)
	for range 60 {
		r.run(time.Second)
		r.holdsNothing(p, "its former participant may be alive")
		if got := r.base(other, 0); got != share {
			t.Fatalf("a1 holds %d of its %d while a2 waits", got, share)
		}
	}
	r.removeID(former)
	r.until(15*time.Second, "it joined", func() bool { return r.base(p, 0) > 1000 && r.whole() })
	r.safe()
}

// TestRemoveDaemons: the operator removes dead daemons, at once or one by one.
// The others hold all within seconds of the last statement.
func TestRemoveDaemons(t *testing.T) {
	for _, tt := range []struct {
		daemons, dead int
		pause         time.Duration
	}{
		{2, 1, 0},
		{3, 2, 3 * time.Second},
		{5, 2, 0},
		{5, 2, 3 * time.Second},
		{9, 6, 100 * time.Millisecond},
		{9, 6, 3 * time.Second},
		{9, 8, 20 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d of %d, %v apart", tt.dead, tt.daemons, tt.pause), func(t *testing.T) {
			r := newRig(t, 1, tt.daemons, 1)
			r.boot()
			r.run(10 * time.Second)
			dead := r.daemons[tt.daemons-tt.dead : tt.daemons]
			for _, p := range dead {
				r.crash(p)
			}
			r.run(60 * time.Second)
			for _, p := range dead {
				r.removeDaemon(p)
				r.run(tt.pause)
			}
			r.until(15*time.Second, "the others hold all", r.whole)
			r.safe()
		})
	}
}

// TestRemoveWhatAPendingEpochWaitsFor: an epoch leaves out a dead daemon, and
// another one dies before it acknowledges that. Both are removed, the one that
// the newest epoch does not name first.
func TestRemoveWhatAPendingEpochWaitsFor(t *testing.T) {
	r := newRig(t, 1, 4, 1)
	r.boot()
	r.run(5 * time.Second)
	a, first, second := r.find("a1"), r.find("a4"), r.find("a3")
	r.crash(first)
	r.slow = func(p *proc) time.Duration {
		if p == second {
			return time.Second
		}
		return 0
	}
	r.until(20*time.Second, "left out", func() bool { return !newest(a.local).Epoch.Has(first.id()) })
	r.run(20 * time.Millisecond)
	r.crash(second)
	r.run(60 * time.Second)
	if newest(a.local).Settled || r.whole() {
		t.Fatal("an epoch is settled without a member")
	}
	r.removeDaemon(first)
	r.run(5 * time.Second)
	r.removeDaemon(second)
	r.until(15*time.Second, "the others hold all", r.whole)
	r.safe()
}

// TestLeaverDies: a daemon of two dies while it leaves, before it acknowledged
// the epoch without it. The record states that it is dead from a window on.
func TestLeaverDies(t *testing.T) {
	r := newRig(t, 1, 2, 1)
	r.boot()
	r.run(5 * time.Second)
	a, dead := r.find("a1"), r.find("a2")
	r.slow = func(p *proc) time.Duration {
		if p == dead {
			return time.Second
		}
		return 0
	}
	r.leave(dead, 0)
	r.until(5*time.Second, "an epoch leaves it out", func() bool { return !newest(a.local).Epoch.Has(dead.id()) })
	r.crash(dead)
	r.run(30 * time.Second)
	if newest(a.local).Settled {
		t.Fatal("the share of a daemon is reclaimed without its acknowledgement")
	}
	r.removeDaemon(dead)
	r.until(15*time.Second, "the other one holds all", r.whole)
	if want := r.record.dead; !slices.Equal(newest(a.local).Epoch.Retired, want) {
		t.Errorf("retired %+v, want %+v", newest(a.local).Epoch.Retired, want)
	}
	r.safe()
}

// TestOwnDeath: a daemon that is dead by the record holds nothing, whoever else
// knows it.
func TestOwnDeath(t *testing.T) {
	r := newRig(t, 1, 2)
	r.boot()
	r.run(3 * time.Second)
	p := r.find("a1")
	r.off = func(*proc) bool { return true }
	p.Dead([]epoch.Retirement{{ID: p.id(), From: r.afterAll()}})
	r.holdsNothing(p, "its id is dead")
	p.Dead(nil)
	p.Regions([]Region{{Name: "a", ID: regionOf("a", 5)}}, nil)
	r.holdsNothing(p, "its region has another generation")
}

// TestProposalWaits: an agent has one proposal at a time. It repeats one that
// the log refused after five seconds, and one that a recovery dropped after
// half a minute.
func TestProposalWaits(t *testing.T) {
	r := newRig(t, 1, 1, 1)
	r.cfg.Period = 5 * time.Second
	r.boot()
	r.run(3 * time.Second)
	a := r.find("a1")
	r.demand = byRegion(map[string]uint64{"a": 5000, "b": 10})
	proposed := func() (n int) {
		for _, e := range a.events {
			if e.Kind == Proposed {
				n++
			}
		}
		return n
	}
	r.off = func(*proc) bool { return true }
	r.until(15*time.Second, "a proposal is refused", func() bool { return proposed() > 0 })
	r.run(30 * time.Second)
	if n := proposed(); n < 4 || n > 7 || len(r.record.epochs) > 0 {
		t.Errorf("%d proposals in 30 s: want one every five seconds or period", n)
	}
	r.off, r.loses = nil, true
	before := proposed()
	r.until(15*time.Second, "a proposal is dropped", func() bool { return proposed() > before })
	r.run(29 * time.Second)
	if n := proposed() - before; n != 1 {
		t.Errorf("%d proposals while one is waited for", n)
	}
	r.loses = false
	r.until(30*time.Second, "shares follow the demand", func() bool { return r.base(a, 0) > 6000 && r.whole() })
	r.safe()
}

// TestDroppedEpoch: after a recovery of the log dropped an epoch, that of the
// record takes its place: of one that is settled, and of one that never can be.
func TestDroppedEpoch(t *testing.T) {
	for name, drop := range map[string]func(r *rig) epoch.Epoch{
		"settled": func(r *rig) epoch.Epoch {
			if err := r.change(r.find("b1"), r.newest().With(regionOf("a", 0), 100_000)); err != nil {
				r.t.Fatal(err)
			}
			r.until(5*time.Second, "it is settled", func() bool { return r.base(r.find("b1"), 0) > 8000 && r.whole() })
			return r.newest()
		},
		"barren": func(r *rig) epoch.Epoch {
			e := r.newest().With(regionOf("a", 0), 100_000)
			if err := r.change(r.find("a1"), r.newest()); err != nil {
				r.t.Fatal(err)
			}
			r.until(5*time.Second, "another one is settled", func() bool { return r.find("b1").Settled() == r.newest().ID })
			e.ID = epoch.ID{Stamp: r.newest().ID.Stamp.Next(), Proposer: 1}
			return e
		},
	} {
		r := newRig(t, 1, 1, 1)
		r.boot()
		r.run(5 * time.Second)
		e := drop(r)
		r.record.epochs = slices.DeleteFunc(r.record.epochs, func(o epoch.Epoch) bool { return o.ID == e.ID })
		r.find("b1").Regions(r.record.regions, []epoch.Epoch{e})
		r.run(10 * time.Second)
		for _, p := range r.daemons {
			if top := newest(p.Agent.region); !top.Settled || !e.ID.Before(top.Epoch.ID) {
				t.Errorf("%s: %s: epoch %s is settled: %t, want a later one than %s", name, p.name, top.Epoch.ID, top.Settled, e.ID)
			}
		}
		if a, b := r.base(r.find("a1"), 0), r.base(r.find("b1"), 0); a != b || !r.whole() {
			t.Errorf("%s: a holds %d and b %d, want the weights of the record", name, a, b)
		}
		r.safe()
	}
}

// TestDroppedAddition: a recovery of the log drops the addition of a region.
// While the region is away, nothing is settled: its participant is in an epoch
// that others acknowledged, and the later ones neither have nor retire it. When
// the record has the same participant again, they are, whether its daemon had
// founded or not.
func TestDroppedAddition(t *testing.T) {
	for name, founded := range map[string]bool{"founded": true, "not founded": false} {
		r := newRig(t, 1, 1, 1, 1)
		r.boot()
		a, c := r.find("a1"), r.find("c1")
		r.run(5 * time.Second)
		r.crash(c)
		if err := r.removeRegion(a, "c"); err != nil {
			t.Fatal(err)
		}
		r.run(20 * time.Second)
		regions, epochs := r.record.regions, len(r.record.epochs)
		r.off = func(p *proc) bool { return p == c && !founded }
		r.start(c)
		r.run(time.Second)
		r.off = nil
		if err := r.addRegion(a, "c", 200_000); err != nil {
			t.Fatal(err)
		}
		added, with := r.newest(), r.record.regions
		r.off = func(p *proc) bool { return p == c && !founded }
		r.until(5*time.Second, "it is acknowledged", func() bool {
			top := newest(a.Agent.region)
			return top.Epoch.ID == added.ID && len(top.Acks) >= 2 && (!founded || top.Settled)
		})
		r.record.regions, r.record.epochs = regions, r.record.epochs[:epochs]
		r.crash(c) // a daemon whose region is not in the record has no agent
		r.run(20 * time.Second)
		if top := newest(a.Agent.region); top.Settled || !added.ID.Before(top.Epoch.ID) {
			t.Errorf("%s: epoch %s without the region is settled: the test shows nothing", name, top.Epoch.ID)
		}
		r.record.regions = with
		if err := r.change(r.find("b1"), r.newest().With(regionOf("c", r.record.generations["c"]), 200_000)); err != nil {
			t.Fatal(err)
		}
		r.off = nil
		r.restart(c, false)
		r.until(10*time.Second, name+": all hold their shares", func() bool { return r.base(c, 0) > 1900 && r.whole() })
		r.safe()
	}
}

// TestDrainedRegionHoldsNothing: a region with an amount of 0 gets no share of
// any rule, whatever its demand.
func TestDrainedRegionHoldsNothing(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.demand = byRegion(map[string]uint64{"a": 5000, "b": 100, "c": 100})
	r.boot()
	r.run(30 * time.Second)
	if err := r.change(r.find("b1"), r.newest().With(regionOf("a", 0), 0)); err != nil {
		t.Fatal(err)
	}
	r.until(5*time.Second, "the others hold all", func() bool { return r.base(r.find("a1"), 0) == 0 && r.whole() })
	for range 60 {
		r.run(time.Second)
		r.holdsNothing(r.find("a1"), "it drains")
	}
	if n := len(r.newest().Rules); n == 0 || !r.whole() {
		t.Errorf("%d rules with own shares, %d held", n, r.held(0))
	}
	r.safe()
}
