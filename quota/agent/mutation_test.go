package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// TestMutations plays schedules that chance hardly finds, with the rule in
// force and without.
func TestMutations(t *testing.T) {
	for _, tt := range []struct {
		name     string
		mutation mutation
		play     func(r *rig)
	}{
		{"one daemon speaks for its region", mutationSpeak, moveWithoutAVote},
		{"promises told before they are stored", mutationEarly, crashBeforeStore},
		{"those who let a daemon in do not say what they hold", mutationUnheld, joinWithoutTables},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, broken := range []mutation{0, tt.mutation} {
				r := newRig(t, 1, 1, 1, 1)
				r.mutation = broken
				r.boot()
				r.run(3 * time.Second)
				tt.play(r)
				if found := len(r.log) > 0; found != (broken != 0) {
					r.dump()
					t.Errorf("broken %v, found %v: %q", broken != 0, found, r.log)
				}
			}
		})
	}
}

// move proposes that region a gives all it has of the first rule to b.
func move(r *rig, p *proc) {
	top := newest(p.Agent.region)
	e := successor(&top)
	amounts := make([]uint32, len(e.Members))
	for i, m := range e.Members {
		if m.ID == regionOf("b", 0) {
			amounts[i] = 2 * epoch.Whole / 3
		} else if m.ID == regionOf("c", 0) {
			amounts[i] = epoch.Whole / 3
		}
	}
	e.Rules = []epoch.RuleShares{{Rule: r.asked[0].id, Shares: amounts}}
	if err := p.propose(regionTable, e, "as the test says"); err != nil {
		r.t.Fatal(err)
	}
}

// moveWithoutAVote: a1 votes for an epoch that gives the region's share away,
// and another daemon of the region is cut off and goes on with its part.
func moveWithoutAVote(r *rig) {
	p := r.join("a")
	r.until(9*time.Second, "it holds its part", func() bool { return r.joined(p) && r.base(p, 0) > 0 })
	r.cut = func(from, to *proc) bool { return (from == p) != (to == p) }
	r.off = func(o *proc) bool { return o == p }
	move(r, r.find("b1"))
	r.run(20 * time.Second)
	if !newest(r.find("a1").Agent.region).Mine || r.base(p, 0) == 0 {
		r.t.Error("a1 has not voted, or the other daemon holds nothing")
	}
}

// crashBeforeStore: a1 promises a share to another daemon, and crashes while
// the promise is being stored. The stored record does not contain it.
func crashBeforeStore(r *rig) {
	a := r.find("a1")
	p := r.join("a")
	r.slow = func(d *proc) time.Duration {
		if d == a {
			return 400 * time.Millisecond
		}
		return 0
	}
	r.until(9*time.Second, "a1 has promised", func() bool { return newest(a.local).Mine && a.local.Len() > 1 && a.writing != nil })
	r.run(300 * time.Millisecond)
	r.crash(a)
	r.cut = func(from, to *proc) bool { return from == a || to == a }
	r.slow = nil
	r.restart(a, false)
	r.run(20 * time.Second)
	if !p.up {
		r.t.Error("the daemon that joined is down")
	}
}

// joinWithoutTables: a1 admits another daemon after it promised to give the
// region's share away; messages about that promise to the new daemon are lost.
func joinWithoutTables(r *rig) {
	p := r.join("a")
	r.until(2*time.Second, "ready", func() bool { return p.Agent.ready })
	r.mangle = func(m *Message) {
		if m.To == p.self {
			m.Regions = Section{Base: m.Regions.Base, Settled: m.Regions.Settled}
			m.Votes = nil
		}
	}
	r.off = func(o *proc) bool { return o == p }
	move(r, r.find("b1"))
	r.until(5*time.Second, "let in", func() bool {
		e, _ := p.local.Settled()
		return e.Has(p.id())
	})
	r.run(5 * time.Second)
	if newest(p.Agent.region).Epoch.ID != (epoch.ID{}) {
		r.t.Error("the schedule did not keep the epoch from the one that joined")
	}
}

// TestJoinerWaits is the other side: with its tables it holds its share.
func TestJoinerWaits(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.boot()
	r.run(3 * time.Second)
	joinWithoutTables(r)
	p := r.daemons[len(r.daemons)-1]
	if _, why := p.Allotment(12, 100, r.now(p), 0, false); why != epoch.ReasonUnlearned {
		t.Errorf("%v, want %v", why, epoch.ReasonUnlearned)
	}
	r.mangle, r.off = nil, nil
	r.until(20*time.Second, "learned", func() bool { return r.base(p, 1) > 100 })
	r.safe()
}

// TestFailingDisk: a daemon that cannot store holds what its last record
// allows, and no longer, and comes back when it can.
func TestFailingDisk(t *testing.T) {
	r := newRig(t, 1, 1, 1, 1)
	r.boot()
	r.run(3 * time.Second)
	a := r.find("a1")
	r.failing = func(p *proc) bool { return p == a }
	r.run(3 * time.Second)
	if a.Status().Failing == "" {
		t.Error("nothing is said of the failing disk")
	}
	r.run(6 * time.Second)
	if base, why := a.Allotment(11, 1000, r.now(a), 0, false); base != 0 || why != epoch.ReasonAhead {
		t.Errorf("holds %d (%v) beyond its record", base, why)
	}
	move(r, r.find("b1"))
	r.run(5 * time.Second)
	if newest(a.Agent.region).Mine {
		t.Error("it promised something it cannot store")
	}
	r.failing = nil
	r.until(5*time.Second, "settled", func() bool { return newest(a.Agent.region).Settled })
	r.until(5*time.Second, "all held", r.whole)
	r.safe()
	kinds := []EventKind{}
	for _, e := range a.events {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Contains(kinds, StoreFailed) || !slices.Contains(kinds, StoreMended) {
		t.Errorf("events %v: want that it failed and was mended", kinds)
	}
}
