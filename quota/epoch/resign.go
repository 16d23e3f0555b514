package epoch

import (
	"errors"
	"fmt"

	"github.com/georld/rld/internal/sat"
)

// Resign ends the use of the table, before its daemon stops: the owner uses no
// window that starts at the result (Unix milliseconds) or later, under any
// epoch. now is the owner's hybrid clock. Once the result is stored, it may be
// passed on as a Retirement of the owner. A later run continues the record
// under another name: see Succeed.
func (t *Table) Resign(now int64) int64 {
	if t.resigned == never {
		t.resigned = sat.AddInt(max(now, t.used, t.fence), 1)
		t.revision++
	}
	return t.resigned
}

// Succeed is Restore for the record of a run that resigned from the windows
// that start at from or later (Unix milliseconds). The owner is a participant
// with a new name: it knows what the former run knew, keeps its promises, and
// holds 0 until an epoch that names it is settled.
func Succeed(owner uint64, r Record, from int64) (*Table, error) {
	former, acks := r.Owner, r.Acks
	if r.Owner = owner; former != owner {
		r.Acks = nil
	}
	t, err := Restore(owner, r)
	if err != nil {
		return nil, fmt.Errorf("of a run that resigned: %w", err)
	}
	if former != owner {
		for _, a := range acks { // the former run made them in its own name
			if err := t.TakeAck(a); err != nil && !errors.Is(err, ErrUnknown) {
				return nil, fmt.Errorf("of a run that resigned: %w", err)
			}
		}
	}
	t.fence = from - 1
	if e, _ := t.Settled(); former != owner && e.Has(former) {
		t.former = former // else it continued the record of an earlier one
	}
	return t, nil
}

// Former returns the participant that Succeed continues, 0 for none.
func (t *Table) Former() uint64 { return t.former }

// Remembers reports whether a participant knows the promises of the settled
// epoch: it is a member, or continues the record of one, its former.
func (t *Table) Remembers(id, former uint64) bool {
	e, _ := t.Settled()
	return e.Has(id) || former != 0 && e.Has(former)
}
