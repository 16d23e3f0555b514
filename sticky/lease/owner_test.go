package lease

import (
	"testing"
	"time"

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

// propose puts a layout in force at a daemon and waits until all have it.
func (w *world) propose(d *daemon, change func(l *route.Layout)) {
	w.t.Helper()
	l := d.acceptor.Layout()
	change(&l)
	if err := d.acceptor.Propose(l); err != nil {
		w.t.Fatal(err)
	}
	w.drain(d)
	w.pass(2 * time.Second)
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
	w.propose(w.daemons[0], func(l *route.Layout) { l.Regions[0].Weight = 2 })
	w.allowed = 0
	for range 19 {
		w.ask(w.daemons[3], descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	if w.allowed < 10 {
		t.Errorf("%d of 19 allowed in the other region", w.allowed)
	}
}
