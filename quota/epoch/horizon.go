package epoch

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// Extension extends the horizon of participant To: it may use its rights in
// windows that start at Until (Unix milliseconds) or earlier. A lost extension
// only shortens the horizon.
type Extension struct {
	By, To uint64
	// Under is the least epoch the extension counts for. It is above every
	// epoch without To that By has acknowledged.
	Under ID
	Until int64
}

// ExtendHorizon answers a message of another participant at the instant now
// (Unix milliseconds, the owner's hybrid clock). It returns ok false if there
// is nothing to extend: no known epoch with a horizon names the participant, or
// the stored record does not cover the extension (see Extend).
func (t *Table) ExtendHorizon(to uint64, now int64) (x Extension, ok bool) {
	if to == t.owner || now > t.durable.Window {
		return Extension{}, false
	}
	horizon := int64(0)
	under := t.pruned
	for i := range t.entries {
		e := &t.entries[i]
		if e.Has(to) {
			horizon = max(horizon, e.Horizon)
		} else if e.mine {
			under = e.ID.next()
		}
	}
	if horizon == 0 {
		return Extension{}, false
	}
	x = Extension{By: t.owner, To: to, Under: under, Until: min(sat.AddInt(now, horizon), t.durable.Horizon)}
	t.remember(to, x.Until)
	return x, true
}

// remember keeps the farthest horizon of the participant. Without room, the
// nearest of all becomes part of the floor.
func (t *Table) remember(to uint64, until int64) {
	i, ok := slices.BinarySearchFunc(t.horizons, to, compareHorizon)
	if ok {
		t.horizons[i].Until = max(t.horizons[i].Until, until)
		return
	}
	t.horizons = slices.Insert(t.horizons, i, Horizon{ID: to, Until: until})
	if len(t.horizons) <= MaxExtended {
		return
	}
	least := slices.MinFunc(t.horizons, func(a, b Horizon) int { return cmp.Compare(a.Until, b.Until) })
	t.floor = max(t.floor, least.Until)
	t.horizons = slices.DeleteFunc(t.horizons, func(h Horizon) bool { return h.ID == least.ID })
}

// TakeExtension records an extension of the owner's horizon, in any order, once
// or often; the newest of each sender counts. It rejects extensions for other
// participants and by unknown ones. It keeps at most MaxEpochs x MaxMembers.
func (t *Table) TakeExtension(x Extension) error {
	if x.To != t.owner || x.By == t.owner {
		return fmt.Errorf("horizon extension by %d for %d: want one by another for %d", x.By, x.To, t.owner)
	}
	if !t.Names(x.By) {
		return fmt.Errorf("horizon extension by %d: %w", x.By, ErrUnknown)
	}
	if !slices.ContainsFunc(t.entries, func(e entry) bool { return e.Has(t.owner) && !e.ID.Before(x.Under) }) {
		return nil // it counts for no known epoch, and the one before may
	}
	find := func() (int, bool) {
		return slices.BinarySearchFunc(t.extensions, x.By, func(x Extension, by uint64) int {
			return cmp.Compare(x.By, by)
		})
	}
	i, ok := find()
	if !ok {
		t.extensions = slices.DeleteFunc(t.extensions, func(x Extension) bool { return !t.Names(x.By) })
		i, _ = find()
		t.extensions = slices.Insert(t.extensions, i, x)
		return nil
	}
	old := &t.extensions[i]
	if c := old.Under.Compare(x.Under); c < 0 || c == 0 && old.Until < x.Until {
		*old = x
	}
	return nil
}

// extendedUntil returns the last window that enough others have extended the
// owner's horizon to under e; never where none is needed. They remember it, so
// it remains valid after a restart.
func (t *Table) extendedUntil(e *entry) int64 {
	need := e.extensionsNeeded(t.owner)
	if need == 0 {
		return never
	}
	if k, ok := e.rank(t.owner); ok && e.extends(k) {
		need-- // the owner itself
	}
	var ends []int64
	for _, g := range t.extensions {
		if k, ok := e.rank(g.By); ok && e.extends(k) && !e.ID.Before(g.Under) {
			ends = append(ends, g.Until)
		}
	}
	if len(ends) < need {
		return e.extended
	}
	slices.Sort(ends)
	return max(e.extended, ends[len(ends)-need])
}

// Horizon returns the last window that others have extended the owner's horizon
// to, as the start of the window in Unix milliseconds, under each epoch that
// may be in force in a window that starts at now. It is math.MaxInt64 for an
// owner without a horizon, and for one that is in no such epoch.
func (t *Table) Horizon(now int64) int64 {
	least := int64(never)
	t.inForce(now, func(e *entry) {
		if e.Has(t.owner) {
			least = min(least, t.extendedUntil(e))
		}
	})
	return least
}

// Holders returns the participants that may hold a part of a window that starts
// at now, ascending: the members of the settled epoch and of all later ones. It
// is nil if the owner need not have acknowledged an epoch with others: it is
// none of the members, or its horizon is over.
func (t *Table) Holders(now int64) []uint64 {
	var out []uint64
	first, member := true, false
	t.inForce(now, func(e *entry) {
		if first {
			first, member = false, e.Has(t.owner)
		}
		for _, m := range e.Members {
			out = append(out, m.ID)
		}
	})
	if !member || t.Horizon(now) < now {
		return nil
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inForce calls yield for the epoch that is settled for a window, and for all
// later ones, ascending.
func (t *Table) inForce(x int64, yield func(*entry)) {
	for i := max(0, t.settledBy(x)); i < len(t.entries); i++ { // a pruned one is over
		yield(&t.entries[i])
	}
}
