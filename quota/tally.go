package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Tally counts the outcomes of the descriptors and hits of one rule. All fields
// but Keys only grow.
type Tally struct {
	// Allowed, Denied and Shadowed count descriptors: those that passed within
	// the limit or in an allowed call, those that were denied with their call,
	// and those over the limit that shadow mode let pass.
	Allowed, Denied, Shadowed uint64
	// HitsWithin, HitsNear and HitsOver split hits as upstream does: up to the
	// near-limit ratio, beyond it but within the limit, and over it. Hits that
	// fit a call which another descriptor denied are in none of them.
	HitsWithin, HitsNear, HitsOver uint64
	// HitsShadowed is the part of HitsOver that shadow mode let pass.
	HitsShadowed uint64
	// Offered counts all hits that were asked for. DeniedRights counts those
	// that only the rights gate denied, Stranded the part of them that was
	// denied while less than nine tenths of the limit were in use.
	Offered, DeniedRights, Stranded uint64
	// Keys is the number of live keys. KeysFull counts the descriptors that
	// shared a counter or were not counted, without room for one more key.
	Keys, KeysFull uint64
}

// Plus returns the sum of two tallies.
func (t Tally) Plus(o Tally) Tally {
	return Tally{
		t.Allowed + o.Allowed, t.Denied + o.Denied, t.Shadowed + o.Shadowed,
		t.HitsWithin + o.HitsWithin, t.HitsNear + o.HitsNear, t.HitsOver + o.HitsOver,
		t.HitsShadowed + o.HitsShadowed,
		t.Offered + o.Offered, t.DeniedRights + o.DeniedRights, t.Stranded + o.Stranded,
		t.Keys + o.Keys, t.KeysFull + o.KeysFull,
	}
}

// Fitted counts n hits that were charged within a limit with remaining hits
// left after them. It splits hits that cross the near ratio exactly.
func (t *Tally) Fitted(l *rules.Limit, remaining, n uint64, near rules.PPM) {
	limit := Of(l).Capacity()
	after := sat.Sub(limit, remaining)
	if after*1_000_000 <= limit*uint64(near) { // both below 2^52
		t.HitsWithin += n
		return
	}
	threshold := sat.MulDiv(limit, uint64(near), 1_000_000)
	above := min(n, sat.Sub(after, threshold))
	t.HitsNear += above
	t.HitsWithin += n - above
}

// Offer counts n hits that were asked for.
func (t *Tally) Offer(n uint64) { t.Offered += min(n, 1<<32) }

// Ungranted counts n hits that fit the limit and not the rights. free is the
// number of hits beyond them that fit the limit.
func (t *Tally) Ungranted(l *rules.Limit, free, n uint64) {
	n = min(n, 1<<32)
	t.DeniedRights += n
	if free > Of(l).Capacity()/10 {
		t.Stranded += n
	}
}

// Shadow counts a descriptor of n hits over a limit in shadow mode.
func (t *Tally) Shadow(n uint64) {
	n = min(n, 1<<32)
	t.Shadowed++
	t.HitsShadowed += n
	t.HitsOver += n
}

// Refused counts n hits over a limit. More than 2^32 hits of one descriptor
// count as 2^32, so that no caller can make a counter wrap around.
func (t *Tally) Refused(n uint64) { t.HitsOver += min(n, 1<<32) }
