package epoch

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxHeld bounds the list an acknowledgement carries of epochs of other tables.
const MaxHeld = 1 << 16

// Horizon is how far a participant may use base rights: in labels that start at
// Until (Unix milliseconds) or earlier.
type Horizon struct {
	ID    uint64
	Until int64
}

// Dependency names an epoch of another table; Table tells the tables apart and is of
// the caller's choice.
type Dependency struct {
	Table uint64
	ID    ID
}

// Ack is a promise: under every label that starts at From or later, By takes
// the epoch into account. It also says what By did before that the promise
// does not undo, for those who are left out of the epoch.
type Ack struct {
	ID ID
	By uint64
	// Generation tells apart what By promised before and after it lost its memory.
	Generation uint64
	// From is in Unix milliseconds: after every label By has used.
	From int64
	// Before lists, ascending, the epochs between the predecessor and this one
	// that By acknowledged earlier. Somebody may hold them settled, so their
	// members must be covered too.
	Before []ID
	// Horizons lists, by ascending ID, the farthest label ever granted to each
	// participant outside the epoch; Floor is that of those not listed.
	Horizons []Horizon
	Floor    int64
	// Dependency lists the epochs of other tables that By had acknowledged, sorted
	// by table and ID. See Base.
	Held []Dependency
}

// Validate returns what is wrong with the acknowledgement on its own, or nil.
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
		return fmt.Errorf("%d epochs before, %d reaches, %d held: want at most %d, %d, %d",
			len(a.Before), len(a.Horizons), len(a.Held), MaxEpochs, MaxExtended, MaxHeld)
	}
	for i, id := range a.Before {
		if !id.Before(a.ID) || i > 0 && !a.Before[i-1].Before(id) {
			return fmt.Errorf("epoch %s acknowledged before: want them ascending and below", id)
		}
	}
	for i, r := range a.Horizons {
		if i > 0 && a.Horizons[i-1].ID >= r.ID {
			return fmt.Errorf("reach of %d after that of %d: want them ascending, each once",
				r.ID, a.Horizons[i-1].ID)
		}
	}
	for i := range a.Held {
		if i > 0 && compareHeld(a.Held[i-1], a.Held[i]) >= 0 {
			return fmt.Errorf("held epoch %d of %d is out of order: want them ascending, each once",
				i, len(a.Held))
		}
	}
	return nil
}

// reach returns the farthest label By ever granted to the participant.
func (a Ack) reach(id uint64) int64 {
	i, ok := slices.BinarySearchFunc(a.Horizons, id, compareReach)
	if !ok {
		return a.Floor
	}
	return max(a.Horizons[i].Until, a.Floor)
}

func compareReach(r Horizon, id uint64) int { return cmp.Compare(r.ID, id) }

func compareHeld(a, b Dependency) int {
	if c := cmp.Compare(a.Table, b.Table); c != 0 {
		return c
	}
	return a.ID.Compare(b.ID)
}

func compareAck(a Ack, by uint64) int { return cmp.Compare(a.By, by) }
