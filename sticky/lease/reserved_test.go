package lease

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

var tenSeconds = &rules.Limit{Unit: rules.Second, Multiplier: 10, Requests: 20, Consistency: rules.Strict}

// TestLeaseEndsWithItsWindow: rights count in the window they were granted for,
// also those that are set aside for a call.
func TestLeaseEndsWithItsWindow(t *testing.T) {
	e := &entry{lease: lease{window: 100_000, until: 130_000, sources: []source{{owner: 1, total: 10}}}}
	w := &waiter{state: granted, window: 100_000, hits: 5}
	for now, want := range map[int64]uint64{100_000: 10, 109_999: 10, 110_000: 0, 120_000: 0} {
		if got := e.lease.held(tenSeconds, now); got != want {
			t.Errorf("%d held at %d, want %d", got, now, want)
		}
		if usable := e.usable(w, tenSeconds, now); usable != (want > 0) {
			t.Errorf("usable %v at %d", usable, now)
		}
	}
	if e.lease.until = 105_000; e.lease.held(tenSeconds, 105_000) != 0 {
		t.Error("rights outlive their end")
	}
	e.lease.begin(110_000, 120_000)
	e.lease.sources = append(e.lease.sources, source{owner: 1, total: 10})
	if e.usable(w, tenSeconds, 111_000) {
		t.Error("rights of the window before are usable")
	}
}

// TestReservedRightsAreKept: rights that are set aside for a call are not
// returned.
func TestReservedRightsAreKept(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(50 * time.Millisecond)
	e := x.table.find(h.Key, h.Rule, false)
	e.lease.sources = []source{{owner: owner.id, total: 10}}
	e.lease.used, e.lease.reserved = 2, 5
	x.table.returnLeft(e, h.Rule.Limit, 1)
	if got := e.lease.sources[0].returned; got != 2 {
		t.Errorf("%d of 10 rights are returned, want 2: 2 are used, 5 set aside, 1 is kept", got)
	}
}

// TestWaitersShareAGrant: one grant sets its rights aside once.
func TestWaitersShareAGrant(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(50 * time.Millisecond)
	e := x.table.find(h.Key, h.Rule, false)
	e.lease.sources, e.lease.used = nil, 0
	for ticket := range uint64(3) {
		e.waiters = append(e.waiters, waiter{ticket: 100 + ticket, hits: 3})
	}
	w.forge(owner, x, sticky.Message{Grants: []sticky.LeaseGrant{{
		ID: 99, Owner: owner.id, Key: h.Key, Rule: h.Rule.Shared(), Window: e.lease.window, Until: e.lease.until, Total: 6, Denied: true,
	}}})
	n := 0
	for i := range e.waiters {
		if e.waiters[i].state == granted {
			n++
		}
	}
	if n != 2 || e.lease.reserved != 6 {
		t.Errorf("%d calls of 3 hits have rights, %d are set aside of 6", n, e.lease.reserved)
	}
}

// TestConsumptionOfTheNextWindow: what other owners consumed of a window counts
// when it begins.
func TestConsumptionOfTheNextWindow(t *testing.T) {
	o := &owner{window: 100_000, others: sticky.Watermarks{
		{Window: 100_000, Amount: 3, End: 110_000}, {Window: 110_000, Amount: 5, End: 120_000}, {Window: 120_000, Amount: 7, End: 130_000},
	}}
	o.roll(tenSeconds, 111_000)
	if got := o.left(tenSeconds, 111_000, 111_000); got != 15 {
		t.Errorf("%d of 20 left, another owner consumed 5", got)
	}
	if o.roll(tenSeconds, 121_000); o.left(tenSeconds, 121_000, 121_000) != 13 {
		t.Errorf("%d of 20 left, another owner consumed 7", o.left(tenSeconds, 121_000, 121_000))
	}
}
