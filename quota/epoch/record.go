package epoch

import (
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// Bounds limits the use of a table by its stored record. Both are starts of
// windows in Unix milliseconds.
type Bounds struct {
	// Window is the last window the owner may use, and the last instant at
	// which it may extend horizons.
	Window int64
	// Horizon is the farthest horizon it may grant to any participant.
	Horizon int64
}

// Record is the durable state of a participant: its promises, and bounds of the
// windows it used and the horizons it extended. Its caller stores it as a
// whole, in place of the former one, and syncs it.
type Record struct {
	Owner    uint64
	Regional bool // made by NewRegional
	// Base is the oldest kept epoch, settled from BaseFrom on for all windows
	// in use. BaseHeld are its dependencies.
	Base     Epoch
	BaseFrom int64
	BaseHeld []ID
	// Settled is the greatest settled epoch, the base or one of Epochs, settled
	// from SettledFrom on with the dependencies of SettledHeld. The record does
	// not have the acknowledgements that prove it.
	Settled     ID
	SettledFrom int64
	SettledHeld []ID
	// Epochs are all known epochs above the base, Mine those the owner has
	// acknowledged, Acks its acknowledgements; each ascending.
	Epochs []Epoch
	Mine   []ID
	Acks   []Ack
	// Top is the greatest epoch acknowledged. Pruned is above all dropped ones.
	Top    ID
	Pruned ID
	Bounds Bounds
	// Stopped is set in the records after Stop, and then the rest is, too: see
	// Resume. Unknown is the last window that may have been used by a run whose
	// use the owner does not know.
	Stopped bool
	Unknown int64
	// Extended is parallel to Base and Epochs: the last window that enough
	// others had extended the owner's horizon to.
	Extended []int64
	// Past are the owner's amounts of the pruned epochs, in their order.
	Past []Past
}

// Record returns the record to store now.
func (t *Table) Record() Record {
	r := Record{Owner: t.owner, Regional: t.regional, Top: t.top, Pruned: t.pruned, Bounds: t.durable}
	for i := range t.entries {
		e := &t.entries[i]
		if i == 0 {
			r.Base, r.BaseFrom, r.BaseHeld = e.Epoch, e.from, slices.Clone(e.held)
		} else {
			r.Epochs = append(r.Epochs, e.Epoch)
		}
		if e.from != never {
			r.Settled, r.SettledFrom, r.SettledHeld = e.ID, e.from, slices.Clone(e.held)
		}
		if e.mine {
			r.Mine = append(r.Mine, e.ID)
		}
		if e.own.ID != (ID{}) {
			r.Acks = append(r.Acks, e.own)
		}
		if t.stopped != never {
			r.Extended = append(r.Extended, t.extendedUntil(e))
		}
	}
	if t.stopped != never {
		r.Stopped, r.Unknown, r.Past = true, t.unknown, slices.Clone(t.past)
	}
	return r
}

// Extend returns a record that lets the owner use windows that start up to
// window (Unix milliseconds) and extend horizons up to an epoch's horizon after
// it. It takes effect with Stored. Keep it a few seconds ahead of the clock:
// after a restart the owner cannot use the windows up to it.
func (t *Table) Extend(window int64) Record {
	r := t.Record()
	horizon := int64(0)
	for i := range t.entries {
		horizon = max(horizon, t.entries[i].Horizon)
	}
	r.Bounds.Window = max(r.Bounds.Window, window)
	r.Bounds.Horizon = max(r.Bounds.Horizon, sat.AddInt(window, horizon))
	if t.stopped != never { // it may be less than before
		r.Bounds.Window = t.stopped - 1
	}
	return r
}

// Stored puts the bounds of a record of this table in force, after it was
// stored and synced. Call it for every record, also for those of Acknowledge.
func (t *Table) Stored(r Record) {
	for i := range t.entries {
		e := &t.entries[i]
		e.kept = e.kept || e.ID == r.Base.ID || slices.ContainsFunc(r.Epochs, func(s Epoch) bool {
			return s.ID == e.ID
		})
	}
	t.durable.Window = max(t.durable.Window, r.Bounds.Window)
	t.durable.Horizon = max(t.durable.Horizon, r.Bounds.Horizon)
}

// Restore returns the table of a participant from its latest stored record, by
// the same owner. The owner cannot use the windows up to the record's bound.
// Its acknowledgements can be sent again; acknowledgements of others must be
// received again, but for those of the settled epoch.
func Restore(owner uint64, r Record) (*Table, error) {
	t, err := restore(owner, r)
	if err != nil {
		return nil, fmt.Errorf("record of participant %d: %w", r.Owner, err)
	}
	return t, nil
}

// Resume is Restore for an owner that knows all its use by the run that stopped
// with the record, and by those before it that this run knew the use of. It may
// use their windows again: see FormerPart. Call it once for a record that Stop
// made, or two runs use the same rights.
func Resume(owner uint64, r Record) (*Table, error) {
	t, err := Restore(owner, r)
	if err != nil {
		return nil, err
	}
	if !r.Stopped {
		return nil, fmt.Errorf("record of participant %d: the run did not stop: want the record of one that did", r.Owner)
	}
	t.unknown = r.Unknown
	return t, nil
}

func restore(owner uint64, r Record) (*Table, error) {
	if r.Owner != owner {
		return nil, fmt.Errorf("want that of %d", owner)
	}
	t := empty(owner)
	t.regional, t.top, t.pruned = r.Regional, r.Top, r.Pruned
	t.durable, t.fence, t.unknown, t.floor = r.Bounds, r.Bounds.Window, r.Bounds.Window, r.Bounds.Horizon
	if err := r.Base.Validate(); err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	if r.BaseFrom == never || len(r.Epochs) >= MaxEpochs {
		return nil, fmt.Errorf("base not settled, %d epochs: want it settled, less than %d", len(r.Epochs), MaxEpochs)
	}
	t.entries = []entry{{Epoch: r.Base, from: r.BaseFrom, held: slices.Clone(r.BaseHeld), kept: true, extended: always}}
	for _, e := range r.Epochs {
		if err := e.Validate(); err != nil {
			return nil, err
		}
		if last := t.entries[len(t.entries)-1].ID; !last.Before(e.ID) {
			return nil, fmt.Errorf("epoch %s after %s: want them ascending", e.ID, last)
		}
		t.entries = append(t.entries, entry{Epoch: e, from: never, kept: true, extended: always})
	}
	if err := t.restoreStopped(r); err != nil {
		return nil, err
	}
	return t, t.restoreAcks(r)
}

// restoreStopped restores the part of a record that is made after Stop.
func (t *Table) restoreStopped(r Record) error {
	if !r.Stopped {
		return nil
	}
	if len(r.Extended) != len(t.entries) || len(r.Past) > maxPast || r.Unknown > r.Bounds.Window {
		return fmt.Errorf("stopped with %d horizons of %d epochs, %d pruned, unknown use until %d: want one horizon each, "+
			"at most %d pruned, and no use after %d", len(r.Extended), len(t.entries), len(r.Past), r.Unknown, maxPast, r.Bounds.Window)
	}
	for i := range r.Past {
		if err := r.Past[i].validate(); err != nil {
			return err
		}
	}
	for i := range t.entries {
		t.entries[i].extended = r.Extended[i]
	}
	t.past = slices.Clone(r.Past)
	return nil
}

func (t *Table) restoreAcks(r Record) error {
	for _, id := range r.Mine {
		i, ok := t.find(id)
		if !ok || r.Top.Before(id) {
			return fmt.Errorf("bound by epoch %s: want one of its epochs, at most %s", id, r.Top)
		}
		t.entries[i].mine = true
	}
	for _, a := range r.Acks {
		if err := a.Validate(); err != nil {
			return err
		}
		i, ok := t.find(a.ID)
		if !ok || a.By != t.owner {
			return fmt.Errorf("acknowledgement of epoch %s by %d: want own ones of its epochs", a.ID, a.By)
		}
		t.entries[i].own = a
		if !t.regional {
			t.entries[i].add(a)
		}
	}
	if i, ok := t.find(r.Settled); ok && i > 0 {
		e := &t.entries[i]
		e.from = r.SettledFrom
		e.hold(r.SettledHeld)
	}
	t.settle()
	return nil
}
