package epoch

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxHeld bounds the dependencies that an acknowledgement carries.
const MaxHeld = 1 << 16

// Horizon is the last window a participant may use its rights in: windows that
// start at Until (Unix milliseconds) or earlier.
type Horizon struct {
	ID    uint64
	Until int64
}

// Ack is a promise: By respects the epoch in every window that starts at From
// or later. It also lists the earlier commitments of By that the promise does
// not undo, for the participants that the epoch leaves out.
type Ack struct {
	ID ID
	By uint64
	// From is in Unix milliseconds, after every window By has used.
	From int64
	// Before lists, ascending, the epochs between the predecessor and this one
	// that By acknowledged earlier. One of them may be settled elsewhere, so
	// its members must be covered too.
	Before []ID
	// Horizons lists, by ascending ID, the farthest horizon By ever granted to
	// each participant outside the epoch. Floor is that of all others.
	Horizons []Horizon
	Floor    int64
	// Held lists, ascending, the epochs of regions that By had acknowledged, in
	// an acknowledgement of daemons. See DaemonShare.
	Held []ID
}

// Validate returns an error if the acknowledgement is malformed.
func (a Ack) Validate() error {
	if err := a.validate(); err != nil {
		return fmt.Errorf("acknowledgement of epoch %s by %d: %w", a.ID, a.By, err)
	}
	return nil
}

func (a Ack) validate() error {
	if a.ID == (ID{}) {
		return fmt.Errorf("of the genesis: want a later epoch")
	}
	if len(a.Before) > MaxEpochs || len(a.Horizons) > MaxExtended || len(a.Held) > MaxHeld {
		return fmt.Errorf("%d epochs before, %d horizons, %d held: want at most %d, %d, %d",
			len(a.Before), len(a.Horizons), len(a.Held), MaxEpochs, MaxExtended, MaxHeld)
	}
	for i, id := range a.Before {
		if !id.Before(a.ID) || i > 0 && !a.Before[i-1].Before(id) {
			return fmt.Errorf("epoch %s acknowledged before: want them ascending and below", id)
		}
	}
	for i, h := range a.Horizons {
		if i > 0 && a.Horizons[i-1].ID >= h.ID {
			return fmt.Errorf("horizon of %d after that of %d: want them ascending, each once",
				h.ID, a.Horizons[i-1].ID)
		}
	}
	for i := range a.Held {
		if i > 0 && !a.Held[i-1].Before(a.Held[i]) {
			return fmt.Errorf("held epoch %d of %d is out of order: want them ascending, each once",
				i, len(a.Held))
		}
	}
	return nil
}

// horizon returns the farthest horizon By ever granted to the participant.
func (a Ack) horizon(id uint64) int64 {
	i, ok := slices.BinarySearchFunc(a.Horizons, id, compareHorizon)
	if !ok {
		return a.Floor
	}
	return max(a.Horizons[i].Until, a.Floor)
}

func compareHorizon(h Horizon, id uint64) int { return cmp.Compare(h.ID, id) }

func compareAck(a Ack, by uint64) int { return cmp.Compare(a.By, by) }
