package epoch

import (
	"fmt"
	"slices"
)

// Claim states that an epoch is settled from a window on. It is a fact about
// acknowledgements that exist, so it may be passed on. It brings a table up to
// date that lacks the acknowledgements.
type Claim struct {
	Base Epoch
	From int64 // First window the epoch is settled for.
	Held []ID  // Dependencies of those that acknowledged it.
}

// Claim returns the claim about the epoch at place i, which is settled.
func (t *Table) Claim(i int) Claim {
	e := &t.entries[i]
	return Claim{Base: e.Epoch, From: e.from, Held: slices.Clone(e.held)}
}

// TakeClaim records the epoch of a claim as settled. It ignores claims about
// epochs that the table has replaced.
func (t *Table) TakeClaim(c Claim) error {
	if err := c.Base.Validate(); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	if c.From == never || len(c.Held) > MaxHeld {
		return fmt.Errorf("claim: base not settled, %d held: want it settled, at most %d", len(c.Held), MaxHeld)
	}
	id := c.Base.ID
	if id.Before(t.entries[0].ID) {
		return nil
	}
	i, ok := t.find(id)
	if !ok {
		if err := t.add(c.Base); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		i, _ = t.find(id)
	}
	e := &t.entries[i]
	if !e.equal(c.Base) {
		return fmt.Errorf("claim: epoch %s: another content than learned before: want one for ever", id)
	}
	if c.From < e.from {
		e.from = c.From
		e.hold(c.Held)
		t.revision++
	}
	t.settle()
	return nil
}
