package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// Tally is what became of the descriptors and hits of one rule. All fields
// only grow.
type Tally struct {
	// Allowed, Denied and Shadowed count descriptors: passed within the
	// limit or with a call that was allowed, refused with their call, over
	// but passed by shadow mode.
	Allowed, Denied, Shadowed uint64
	// HitsWithin, HitsNear and HitsOver split hits as upstream does: up to
	// the near-limit ratio, beyond it but inside the limit, over it. Hits
	// that fit a call which another descriptor refused are in none.
	HitsWithin, HitsNear, HitsOver uint64
	// Offered is the hits asked for, whatever became of them. DeniedRights is
	// those that only the rights gate refused, and Stranded those of them that
	// came while less than nine tenths of the limit were in use.
	Offered, DeniedRights, Stranded uint64
}

// Plus returns the sum of two tallies.
func (t Tally) Plus(o Tally) Tally {
	return Tally{
		t.Allowed + o.Allowed, t.Denied + o.Denied, t.Shadowed + o.Shadowed,
		t.HitsWithin + o.HitsWithin, t.HitsNear + o.HitsNear, t.HitsOver + o.HitsOver,
		t.Offered + o.Offered, t.DeniedRights + o.DeniedRights, t.Stranded + o.Stranded,
	}
}

// Fitted counts n hits that were charged within a limit which then had
// remaining left, splitting those that cross the near ratio exactly.
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

// Ungranted counts n hits that fit the limit and not the rights. free is how many
// hits more than those the limit had room for.
func (t *Tally) Ungranted(l *rules.Limit, free, n uint64) {
	n = min(n, 1<<32)
	t.DeniedRights += n
	if free > Of(l).Capacity()/10 {
		t.Stranded += n
	}
}

// Refused counts n hits over a limit. A hit that claims to be more than 2^32
// counts as that, so that nobody can make a counter of hits wrap around.
func (t *Tally) Refused(n uint64) { t.HitsOver += min(n, 1<<32) }
