package epoch

import (
	"cmp"
	"fmt"
	"math"

	"github.com/georld/rld/hlc"
)

// ID identifies an epoch by the stamp of its proposal and then the proposer. So
// all epochs of a table are totally ordered, and two proposers never make the
// same ID. The zero ID is the genesis.
type ID struct {
	Stamp    hlc.Timestamp
	Proposer uint64
}

// Compare returns -1 when id is before other, 1 when it is after, 0 when equal.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Stamp, other.Stamp), cmp.Compare(id.Proposer, other.Proposer))
}

// Before reports whether id is below other.
func (id ID) Before(other ID) bool { return id.Compare(other) < 0 }

// next returns the least ID above id; the greatest ID stays.
func (id ID) next() ID {
	if id.Proposer < math.MaxUint64 {
		return ID{id.Stamp, id.Proposer + 1}
	}
	if id.Stamp == hlc.MaxTimestamp {
		return id
	}
	return ID{id.Stamp + 1, 0}
}

// String returns "genesis", or the stamp and the proposer.
func (id ID) String() string {
	if id == (ID{}) {
		return "genesis"
	}
	return fmt.Sprintf("%s/%d", id.Stamp, id.Proposer)
}
