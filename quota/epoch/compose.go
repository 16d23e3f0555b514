package epoch

import (
	"fmt"
	"slices"
)

// A region is a participant of the epochs of regions and consists of daemons,
// the participants of its own epochs. Each daemon keeps both tables: that of
// the region, with the region as its owner, and that of the daemons. What a
// daemon acknowledges in the first becomes the region's acknowledgement by
// Compose, and binds those who join the second by what their members Dependency.

// Vote is the acknowledgement of a region's epoch by one of its daemons.
type Vote struct {
	Daemon uint64
	Ack    Ack // made by the daemon's table of the region
	// Locals are the epochs of daemons that the daemon had acknowledged, from
	// the settled one on: see Acknowledged.
	Locals []ID
}

// Acknowledged returns the epochs the owner has acknowledged, from the base on,
// ascending: what a Vote carries of the daemons' table, and an acknowledgement
// in the daemons' table (as Dependency) of each table of the region.
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
// its daemons, and ok when they are all there: every daemon of the settled
// epoch of local, and those of every later one that one of them had
// acknowledged before it voted, as somebody may hold that one settled. One
// daemon must not speak for the others: each decides from its own memory.
// votes must all be of one epoch and one region; the first of each daemon
// counts. Any daemon of the region may compose; what two of them make differs
// only where both are right.
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
	settled, from, ok := local.Settled()
	if !ok {
		return Ack{}, false, nil
	}
	a = Ack{
		ID: votes[0].Ack.ID, By: votes[0].Ack.By, Generation: votes[0].Ack.Generation, From: from, Floor: always,
	}
	needed := []ID{settled.ID}
	for n := 0; n < len(needed); n++ {
		i, known := local.find(needed[n])
		if !known {
			return Ack{}, false, nil
		}
		for _, m := range local.entries[i].Members {
			v, voted := voteOf(votes, m.ID)
			if !voted {
				return Ack{}, false, nil
			}
			a.join(v.Ack)
			for _, id := range v.Locals {
				if settled.ID.Before(id) && !slices.Contains(needed, id) {
					needed = append(needed, id)
				}
			}
		}
	}
	return a, true, nil
}

// voteOf returns the first vote of the daemon.
func voteOf(votes []Vote, daemon uint64) (Vote, bool) {
	for _, v := range votes {
		if v.Daemon == daemon {
			return v, true
		}
	}
	return Vote{}, false
}

// join makes the promise the weaker of the two, and what was done before it
// that of both.
func (a *Ack) join(b Ack) {
	a.Generation = min(a.Generation, b.Generation)
	a.From = max(a.From, b.From)
	a.Floor = max(a.Floor, b.Floor)
	for _, id := range b.Before {
		if i, ok := slices.BinarySearchFunc(a.Before, id, ID.Compare); !ok {
			a.Before = slices.Insert(a.Before, i, id)
		}
	}
	for _, r := range b.Horizons {
		i, ok := slices.BinarySearchFunc(a.Horizons, r.ID, compareReach)
		switch {
		case ok:
			a.Horizons[i].Until = max(a.Horizons[i].Until, r.Until)
		case len(a.Horizons) < MaxExtended:
			a.Horizons = slices.Insert(a.Horizons, i, r)
		default:
			a.Floor = max(a.Floor, r.Until)
		}
	}
}

// Allotment returns what a daemon holds of the label that starts at x (Unix
// milliseconds; carry as for Share): its part, by local, of what its region
// holds by region. key is what the daemons call the table of the region in
// their Dependency lists.
//
// A daemon that joined may have been passed over by an acknowledgement of its
// region that was composed before: so it first needs every epoch of regions
// that those who let it in had acknowledged, in a record that is stored.
func Allotment(region, local *Table, key uint64, x, carry int64) (uint64, Reason) {
	amount, why := region.Share(x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	lo, why := local.lowest(x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	if !region.keeps(local.entries[max(lo, 0)].held, key) {
		return 0, ReasonUnlearned
	}
	return local.partOf(amount, lo), ReasonEpoch
}

// keeps reports whether the stored record has all the epochs of table key
// among held, or a settled one above them.
func (t *Table) keeps(held []Dependency, key uint64) bool {
	i, _ := slices.BinarySearchFunc(held, Dependency{Table: key}, compareHeld)
	for ; i < len(held) && held[i].Table == key; i++ {
		id := held[i].ID
		j, ok := t.find(id)
		if ok && !t.entries[j].kept || !ok && !id.Before(t.entries[0].ID) {
			return false
		}
	}
	return true
}
