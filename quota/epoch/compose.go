package epoch

import (
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// A region is a participant of the epochs of regions and consists of daemons,
// which are the participants of the region's own epochs. Each daemon keeps both
// tables: a regional one, owned by the region, and a local one, owned by the
// daemon. A daemon's acknowledgement in the regional table is a Vote. Compose
// makes the region's acknowledgement from the votes, and the dependencies of
// acknowledgements in the local table bind daemons that join later.

// Vote is the acknowledgement of a region's epoch by one daemon of the region.
type Vote struct {
	Daemon uint64
	Ack    Ack // made by the daemon's regional table
	// Locals are the epochs of daemons that the daemon had acknowledged, from
	// the settled one on: see Acknowledged.
	Locals []ID
}

// Acknowledged returns the epochs the owner has acknowledged, from the oldest
// kept epoch on, ascending. A Vote carries those of the local table; an
// acknowledgement in the local table carries those of the regional table as
// dependencies.
func (t *Table) Acknowledged() []ID {
	var ids []ID
	for i := range t.entries {
		if i == 0 || t.entries[i].mine {
			ids = append(ids, t.entries[i].ID)
		}
	}
	return ids
}

// Compose returns a region's acknowledgement of an epoch, made of the votes of
// its daemons. It returns ok true if all needed votes are there: those of every
// daemon of the settled epoch of local, and of every later epoch that a voter
// had acknowledged before its vote, since that epoch may be settled elsewhere.
// No daemon can vote for another, because each decides from its own record.
// All votes must be for one epoch and one region; the first vote of each daemon
// counts. Any daemon of the region may compose. The results of two daemons
// differ only where both are correct.
func Compose(local *Table, votes []Vote) (a Ack, ok bool, err error) {
	if len(votes) == 0 || len(votes) > MaxExtended {
		return Ack{}, false, fmt.Errorf("%d votes: want 1 to %d", len(votes), MaxExtended)
	}
	for _, v := range votes {
		if err := v.Ack.Validate(); err != nil {
			return Ack{}, false, fmt.Errorf("vote of daemon %d: %w", v.Daemon, err)
		}
		if v.Ack.ID != votes[0].Ack.ID || v.Ack.By != votes[0].Ack.By {
			return Ack{}, false, fmt.Errorf("vote of daemon %d: of epoch %s by %d: want %s by %d",
				v.Daemon, v.Ack.ID, v.Ack.By, votes[0].Ack.ID, votes[0].Ack.By)
		}
	}
	settled, from := local.Settled()
	a = Ack{ID: votes[0].Ack.ID, By: votes[0].Ack.By, From: from, Floor: always}
	needed := []ID{settled.ID}
	for n := 0; n < len(needed); n++ {
		i, known := local.find(needed[n])
		if !known {
			return Ack{}, false, nil
		}
		for _, m := range local.entries[i].Members {
			j := slices.IndexFunc(votes, func(v Vote) bool { return v.Daemon == m.ID })
			if j < 0 {
				return Ack{}, false, nil
			}
			a.join(votes[j].Ack)
			for _, id := range votes[j].Locals {
				if settled.ID.Before(id) && !slices.Contains(needed, id) {
					needed = append(needed, id)
				}
			}
		}
	}
	return a, true, nil
}

// join makes the promise the weaker of the two, and unites the commitments
// before it.
func (a *Ack) join(b Ack) {
	a.From = max(a.From, b.From)
	a.Floor = max(a.Floor, b.Floor)
	for _, id := range b.Before {
		if i, ok := slices.BinarySearchFunc(a.Before, id, ID.Compare); !ok {
			a.Before = slices.Insert(a.Before, i, id)
		}
	}
	for _, h := range b.Horizons {
		i, ok := slices.BinarySearchFunc(a.Horizons, h.ID, compareHorizon)
		switch {
		case ok:
			a.Horizons[i].Until = max(a.Horizons[i].Until, h.Until)
		case len(a.Horizons) < MaxExtended:
			a.Horizons = slices.Insert(a.Horizons, i, h)
		default:
			a.Floor = max(a.Floor, h.Until)
		}
	}
}

// RegionShare returns the part of total that the region holds as a whole in the
// window that starts at x (Unix milliseconds; carry as for Share). Amounts of
// the regional table are parts per million.
//
// A daemon that joined may be missing in an acknowledgement that its region
// composed before. It therefore needs every epoch of regions that the daemons
// that admitted it had acknowledged, in a stored record, before it may use the
// region's share.
func RegionShare(region, local *Table, rule, total uint64, x, carry int64) (uint64, Reason) {
	share, _, reason := regionShare(region, local, region.fence, local.fence, rule, total, x, carry)
	return share, reason
}

// regionShare also returns the place of the least epoch of local that counts.
// The history of the windows begins after the fences of both tables.
func regionShare(
	region, local *Table, regionFence, localFence int64, rule, total uint64, x, carry int64,
) (uint64, int, Reason) {
	ppm, reason := region.shareAfter(regionFence, rule, x, carry)
	if reason != ReasonEpoch {
		return 0, 0, reason
	}
	lo, reason := local.lowestAfter(localFence, x, carry)
	if reason != ReasonEpoch {
		return 0, 0, reason
	}
	if !region.keeps(local.entries[max(lo, 0)].held) {
		return 0, 0, ReasonUnlearned
	}
	return sat.MulDiv(total, ppm, Whole), lo, ReasonEpoch
}

// DaemonShare returns the daemon's part, by local, of the part of total that
// its region holds by region: see RegionShare. Daemons that pass different
// totals hold together at most the greatest of them. It allocates nothing.
func DaemonShare(region, local *Table, rule, total uint64, x, carry int64) (uint64, Reason) {
	share, lo, reason := regionShare(region, local, region.fence, local.fence, rule, total, x, carry)
	if reason != ReasonEpoch {
		return 0, reason
	}
	return local.partOf(share, lo, x), ReasonEpoch
}

// keeps reports whether the stored record contains all the epochs in held, or a
// settled epoch above them.
func (t *Table) keeps(held []ID) bool {
	for _, id := range held {
		i, ok := t.find(id)
		if ok && !t.entries[i].kept || !ok && !id.Before(t.entries[0].ID) {
			return false
		}
	}
	return true
}

// CompactHeld replaces the dependencies on epochs of regions that are below
// base, the oldest epoch of the regional table, by a dependency on base. A
// participant that knows the oldest epoch knows that it replaced them.
func (t *Table) CompactHeld(base ID) {
	for i := range t.entries {
		e := &t.entries[i]
		n := len(e.held)
		e.held = slices.DeleteFunc(slices.Clone(e.held), func(id ID) bool { return id.Before(base) })
		if len(e.held) < n {
			e.hold([]ID{base})
		}
	}
}
