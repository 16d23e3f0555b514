package lease

import (
	"slices"

	"github.com/georld/rld/sticky/route"
)

// sweepLeast is the least number of entries that a Tick sweeps.
const sweepLeast = 64

// Tick sends lost messages again, returns rights that nobody uses, and forgets
// entries that can no longer matter, a bounded number at a time.
func (t *Table) Tick(at Now) {
	t.at = at
	v := t.env.Owners.Routing()
	t.active = slices.DeleteFunc(t.active, func(e *entry) bool {
		e.active = t.tick(e, v)
		return !e.active
	})
	t.sweep(max(len(t.all)/64, sweepLeast))
}

// tick visits an active entry. It reports whether the entry stays active.
func (t *Table) tick(e *entry, v *route.Routing) bool {
	r := t.ruleOf(e)
	if r == nil || v == nil {
		return len(e.waiters) > 0
	}
	if o := e.owner; o != nil {
		if owner, _ := t.ownerOf(e.id.key, e.rule, e.regional(), r.Limit); len(o.queue) > 0 || owner.Self {
			t.serve(e, r, v)
			t.sendAccepts(e, r.Limit, v)
		}
	}
	x := &e.lease
	if len(e.waiters) > 0 {
		t.request(e, r)
	} else if len(x.requests) > 0 {
		x.dropLost(t.at.Mono, 0, maxWithin)
	}
	waits := len(e.waiters) > 0 || len(x.requests) > 0
	idle := t.at.Mono-x.usedAt >= returnAfter
	if keep := t.kept(x, r.Limit); !waits && idle && x.left(r.Limit, t.at.Millis) > keep {
		t.returnLeft(e, r.Limit, keep)
	}
	proposing := e.owner != nil && (len(e.owner.queue) > 0 || e.owner.proposer.Busy())
	return waits || proposing || !idle && t.at.Millis < x.until
}

// sweep visits up to budget entries that are not active, round and round, and
// forgets those that can no longer matter. It returns how many it forgot.
func (t *Table) sweep(budget int) (forgotten int) {
	for range min(budget, len(t.all)) {
		if t.hand >= len(t.all) {
			t.hand = 0
		}
		e := t.all[t.hand]
		if !e.active {
			t.trim(e)
		}
		if e.active || !e.over(t.at.Millis) {
			t.hand++
			continue
		}
		delete(t.entries, e.id)
		t.shares.Remove(e.share)
		t.disown(e)
		last := len(t.all) - 1
		t.all[t.hand], t.all[last] = t.all[last], nil
		t.all = t.all[:last]
		forgotten++
	}
	return forgotten
}

// over reports whether nothing of an entry can matter any more.
func (e *entry) over(now int64) bool {
	return len(e.waiters) == 0 && e.lease.over(now) && (e.owner == nil || e.owner.over(now))
}
