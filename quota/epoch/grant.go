package epoch

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// Extension allows a participant the use of its base rights in labels that start
// at Until (Unix milliseconds) or earlier. A lost grant only shortens that.
type Extension struct {
	By, To uint64
	// Under is the least epoch it counts for: above every epoch that By has
	// acknowledged and that leaves To out.
	Under ID
	Until int64
}

// Extension answers a sign of life of another participant at the instant now (Unix
// milliseconds, the owner's hybrid clock). ok is false when there is nothing to
// grant: no known epoch with a horizon names it, or the record that bounds all
// grants is not stored that far (see Extend).
func (t *Table) ExtendHorizon(to uint64, now int64) (g Extension, ok bool) {
	if t.waiting || to == t.owner || now > t.durable.Window {
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
	g = Extension{By: t.owner, To: to, Under: under, Until: min(sat.AddInt(now, horizon), t.durable.Horizon)}
	t.remember(to, g.Until)
	return g, true
}

// remember keeps the farthest label granted to the participant. When there is
// no room, the nearest of all becomes part of what is said of everybody.
func (t *Table) remember(to uint64, until int64) {
	i, ok := slices.BinarySearchFunc(t.reaches, to, compareReach)
	if ok {
		t.reaches[i].Until = max(t.reaches[i].Until, until)
		return
	}
	t.reaches = slices.Insert(t.reaches, i, Horizon{ID: to, Until: until})
	if len(t.reaches) <= MaxExtended {
		return
	}
	least := 0
	for j, r := range t.reaches {
		if r.Until < t.reaches[least].Until {
			least = j
		}
	}
	t.floor = max(t.floor, t.reaches[least].Until)
	t.reaches = slices.Delete(t.reaches, least, least+1)
}

// TakeExtension takes in a grant, in any order, once or often; of each grantor the
// newest counts. It refuses those for others and those of strangers.
func (t *Table) TakeExtension(g Extension) error {
	if g.To != t.owner || g.By == t.owner {
		return fmt.Errorf("grant of %d for %d: want one of another for %d", g.By, g.To, t.owner)
	}
	if !t.named(g.By) {
		return fmt.Errorf("grant of %d: %w", g.By, ErrUnknown)
	}
	i, ok := slices.BinarySearchFunc(t.grants, g.By, func(g Extension, by uint64) int {
		return cmp.Compare(g.By, by)
	})
	if !ok {
		t.dropStrangers()
		i, _ = slices.BinarySearchFunc(t.grants, g.By, func(g Extension, by uint64) int {
			return cmp.Compare(g.By, by)
		})
		t.grants = slices.Insert(t.grants, i, g)
		return nil
	}
	old := &t.grants[i]
	if c := old.Under.Compare(g.Under); c < 0 || c == 0 && old.Until < g.Until {
		*old = g
	}
	return nil
}

// dropStrangers keeps the grants of those who are named: at most MaxEpochs x
// MaxMembers.
func (t *Table) dropStrangers() {
	t.grants = slices.DeleteFunc(t.grants, func(g Extension) bool { return !t.named(g.By) })
}

// granted reports whether the owner may use its base of label x under e.
func (t *Table) granted(e *entry, x int64) bool {
	need := e.grantsNeeded()
	if t.broken&flawEasyUse != 0 {
		need = min(need, 1)
	}
	have := 1 // its own
	for _, g := range t.grants {
		if have >= need {
			break
		}
		if g.Until >= x && !e.ID.Before(g.Under) && e.Has(g.By) {
			have++
		}
	}
	return have >= need
}
