package lease

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
)

// TestSweptOwnerStillServes has an owner lose its ballot and be swept: when it
// grants again, its totals go on from those that its lessees have.
func TestSweptOwnerStillServes(t *testing.T) {
	w := newUserWorld(t, "unit: day, requests_per_unit: 400, consistency: strict", 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	for range 4 {
		w.ask(x, descriptor("user", "bob", 25))
		w.pass(20 * time.Millisecond)
	}
	for range 3 {
		w.ask(owner, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	w.believeDead(owner)
	next, _ := w.ownerOf(w.othersOf(owner)[1], descriptor("user", "bob", 1))
	w.ask(next, descriptor("user", "bob", 90))
	w.pass(50 * time.Millisecond)
	w.believeDead()
	for range 30 { // the owner advances its watermark ahead, and loses
		w.ask(owner, descriptor("user", "bob", 1))
		if o := owner.table.find(h.Key, h.Rule, false).owner; o != nil && o.proposer.Busy() {
			break
		}
	}
	w.pass(10 * time.Second)
	before := w.allowed
	for range 20 {
		w.ask(x, descriptor("user", "bob", 1))
		w.pass(100 * time.Millisecond)
	}
	if w.allowed-before < 20 {
		t.Errorf("%d of 20 allowed", w.allowed-before)
	}
}

// announce announces a layout and waits until it is active.
func (w *world) announce(change func(l *route.Layout)) {
	w.t.Helper()
	l := w.layouts.Active.Clone()
	change(&l)
	if err := w.layouts.Announce(l, w.report); err != nil {
		w.t.Fatal(err)
	}
	w.pass(2 * time.Second)
	if w.layouts.Announced != nil {
		w.t.Fatal("the layout is not active")
	}
}

// TestLayoutChangeAndRegionalLimits checks that a change of layout, which
// merges the watermarks of all regions, leaves the limits of each region as
// they are.
func TestLayoutChangeAndRegionalLimits(t *testing.T) {
	w := newUserWorld(t, "unit: day, requests_per_unit: 20, consistency: strict, scope: region", 3, 3)
	w.pass(time.Second)
	for range 10 {
		w.ask(w.daemons[0], descriptor("user", "bob", 2))
		w.pass(20 * time.Millisecond)
	}
	w.ask(w.daemons[3], descriptor("user", "bob", 1))
	w.pass(20 * time.Millisecond)
	w.announce(func(l *route.Layout) { l.Regions[0].Weight = 2 })
	w.allowed = 0
	for range 19 {
		w.ask(w.daemons[3], descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	if w.allowed < 10 {
		t.Errorf("%d of 19 allowed in the other region", w.allowed)
	}
}

// TestSecondRegionJoins adds a second region while windows are open in which
// the first one, alone, may use the whole limit. The new region has its reserve
// in the windows that start later.
func TestSecondRegionJoins(t *testing.T) {
	for _, limit := range []string{
		"unit: minute, requests_per_unit: 20, algorithm: fixed_window",
		"unit: minute, requests_per_unit: 20, algorithm: sliding_window",
		"unit: minute, requests_per_unit: 20, algorithm: sliding_log",
		"unit: minute, requests_per_unit: 20, algorithm: token_bucket",
	} {
		t.Run(limit, func(t *testing.T) {
			w := &world{t: t, first: "a"}
			w.init(1, "domain: d\ndescriptors:\n  - key: user\n    rate_limit: {"+limit+
				", consistency: strict, home: a, on_failure: {share: 80%}}\n", 3, 3)
			for range 40 {
				w.ask(w.daemons[0], descriptor("user", "bob", 1))
				w.pass(20 * time.Millisecond)
			}
			if w.allowed < 19 || w.allowed > 20 {
				t.Fatalf("%d of 20 allowed in a region alone", w.allowed)
			}
			w.announce(func(l *route.Layout) {
				l.Regions = append(l.Regions, route.Region{Name: "b", Weight: 1, Replicas: []string{"b1", "b2", "b3"}})
			})
			reserve := func() (allowed int) { // of region b, which does not reach a
				before := w.allowed
				for _, d := range w.daemons[:3] {
					for _, o := range w.daemons[3:] {
						o.believedDead[d.name] = true
					}
				}
				w.members()
				for range 15 {
					w.ask(w.daemons[3], descriptor("user", "bob", 1))
					w.pass(20 * time.Millisecond)
				}
				for _, o := range w.daemons[3:] {
					o.believedDead = map[string]bool{}
				}
				w.members()
				return w.allowed - before
			}
			if n := reserve(); n > 0 {
				t.Errorf("the reserve of the new region admits %d while the window is open", n)
			}
			w.pass(3 * time.Minute)
			if n := reserve(); n < 4 || n > 8 {
				t.Errorf("the reserve of the new region admits %d later: want 8, or what leases leave of it", n)
			}
		})
	}
}

// TestExplainMovesNothing: an explanation in a later window leaves the account
// of the owner in its own. A clock that steps back needs that one again.
func TestExplainMovesNothing(t *testing.T) {
	l := &rules.Limit{Algorithm: rules.FixedWindow, Unit: rules.Minute, Multiplier: 1, Requests: 10}
	const first, next = 600_000, 660_000
	var o owner
	o.roll(l, first)
	before := o
	if x := o.explain(l, next); x.Window != next {
		t.Errorf("the explanation is of the window %d, want %d", x.Window, int64(next))
	}
	if o.window != before.window || o.account.Used != before.account.Used {
		t.Errorf("the account moved from the window %d to %d", before.window, o.window)
	}
}
