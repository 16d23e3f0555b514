package epoch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// Bounds is how far a stored record lets a table go; both are starts of labels
// in Unix milliseconds.
type Bounds struct {
	// Window is the last label the owner may use, and the last instant at
	// which it may grant anything.
	Window int64
	// Horizon is the farthest label it may grant to anybody.
	Horizon int64
}

// Record is what a participant must not forget: what it promised, and bounds
// of what it used and granted. Its caller stores it whole, replacing the one
// before, and syncs it.
type Record struct {
	Owner      uint64
	Generation uint64
	Regional   bool // made by NewPart
	// Base is the epoch all labels in use are settled for, from BaseFrom on.
	Base     Epoch
	BaseFrom int64
	BaseHeld []Dependency
	// Epochs are all that are known above the base, Mine those the owner is
	// bound by, Acks its acknowledgements (an epoch taken over from reports has
	// none); each ascending.
	Epochs []Epoch
	Mine   []ID
	Acks   []Ack
	// Top is the greatest epoch acknowledged. Pruned is above those dropped.
	Top    ID
	Pruned ID
	Bounds Bounds
	// Generations are the participants that lost their memory, ascending: no
	// acknowledgement of a lower life counts.
	Generations []LostDisk
}

// LostDisk says from which life on the word of a participant counts.
type LostDisk struct {
	ID         uint64
	Generation uint64
}

// Record returns what must be stored now. It is meaningless for a table that
// waits for reports, as such a table has promised nothing.
func (t *Table) Record() Record {
	r := Record{
		Owner: t.owner, Generation: t.generation, Regional: t.part,
		Top: t.top, Pruned: t.pruned, Bounds: t.durable,
	}
	for i := range t.entries {
		e := &t.entries[i]
		if i == 0 {
			r.Base, r.BaseFrom, r.BaseHeld = e.Epoch, e.from, slices.Clone(e.held)
		} else {
			r.Epochs = append(r.Epochs, e.Epoch)
		}
		if e.mine {
			r.Mine = append(r.Mine, e.ID)
		}
		if e.own.ID != (ID{}) {
			r.Acks = append(r.Acks, e.own)
		}
	}
	r.Generations = slices.Clone(t.generations)
	return r
}

// Extend returns a record that lets the owner use labels that start up to the
// instant label (Unix milliseconds) and grant up to the horizon after it. It
// takes effect with Stored. Keep it a few seconds ahead of the clock: after a
// restart the labels up to it are lost to the owner.
func (t *Table) Extend(window int64) Record {
	r := t.Record()
	horizon := int64(0)
	for i := range t.entries {
		horizon = max(horizon, t.entries[i].Horizon)
	}
	r.Bounds.Window = max(r.Bounds.Window, window)
	r.Bounds.Horizon = max(r.Bounds.Horizon, sat.AddInt(window, horizon))
	return r
}

// Stored says that the record, this table's, has been stored and synced, and
// puts its bounds in force. It is called for every record, also those that
// Acknowledge and ReportTo return.
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

// Restore returns the table of a participant that stored the record and then
// stopped. It must be the last one stored. The labels up to its bound are
// fenced; its acknowledgements can be sent again; what it had learned from
// others it must hear again. The record must be of this owner.
func Restore(owner uint64, r Record) (*Table, error) {
	if r.Owner != owner {
		return nil, fmt.Errorf("record of participant %d: want that of %d", r.Owner, owner)
	}
	t := empty(owner)
	t.generation, t.part, t.top, t.pruned = r.Generation, r.Regional, r.Top, r.Pruned
	t.durable, t.fence, t.floor = r.Bounds, r.Bounds.Window, r.Bounds.Horizon
	if err := r.Base.Validate(); err != nil {
		return nil, fmt.Errorf("record of participant %d: base: %w", owner, err)
	}
	if r.BaseFrom == never || len(r.Epochs) >= MaxEpochs || len(r.Generations) > MaxExtended {
		return nil, fmt.Errorf("record of participant %d: base not settled, %d epochs, %d lives: "+
			"want it settled, less than %d, at most %d",
			owner, len(r.Epochs), len(r.Generations), MaxEpochs, MaxExtended)
	}
	t.entries = []entry{{Epoch: r.Base, from: r.BaseFrom, held: slices.Clone(r.BaseHeld)}}
	for _, e := range r.Epochs {
		// Not Learn: its predecessor may be below the base by now.
		if err := e.Validate(); err != nil {
			return nil, fmt.Errorf("record of participant %d: %w", owner, err)
		}
		if last := t.entries[len(t.entries)-1].ID; !last.Before(e.ID) {
			return nil, fmt.Errorf("record of participant %d: epoch %s after %s: want them ascending",
				owner, e.ID, last)
		}
		t.entries = append(t.entries, entry{Epoch: e, from: never})
	}
	if err := t.restoreAcks(r); err != nil {
		return nil, fmt.Errorf("record of participant %d: %w", owner, err)
	}
	for i, l := range r.Generations {
		if i > 0 && r.Generations[i-1].ID >= l.ID {
			return nil, errors.New("lives out of order: want them ascending, each once")
		}
		t.generations = append(t.generations, l)
	}
	return t, nil
}

func (t *Table) restoreAcks(r Record) error {
	for i := range t.entries {
		t.entries[i].kept = true
	}
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
		if !t.part {
			t.insert(&t.entries[i], a)
		}
	}
	t.settle()
	return nil
}

// generationOf returns the least life of the participant whose word counts.
func (t *Table) generationOf(id uint64) uint64 {
	i, ok := slices.BinarySearchFunc(t.generations, id, compareGeneration)
	if !ok {
		return 0
	}
	return t.generations[i].Generation
}

func compareGeneration(l LostDisk, id uint64) int { return cmp.Compare(l.ID, id) }
