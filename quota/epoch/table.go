package epoch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/internal/sat"
)

const (
	// MaxEpochs bounds the epochs of a table.
	MaxEpochs = 32
	// MaxPending bounds the epochs that a table has acknowledged and that are
	// not settled. The upper half is reserved for epochs that retire a
	// participant: so the epochs that wait for a dead participant never block
	// the one that ends the wait.
	MaxPending = 16
	// MaxExtended bounds the participants whose horizons a table remembers.
	MaxExtended = 2 * MaxMembers
)

// Errors of Learn, TakeAck and Acknowledge for errors.Is.
var (
	// ErrStale is for an epoch that a settled one has replaced.
	ErrStale = errors.New("replaced by a settled epoch")
	// ErrUnknown is for a reference to an epoch the table has not learned.
	ErrUnknown = errors.New("not known here")
	// ErrFull is for items beyond a bound of this package.
	ErrFull = errors.New("no room")
)

// Table is the knowledge and the promises of one participant. It returns the
// share of its owner in a window, such that the shares of all participants sum
// to at most the total of one epoch, for any loss, delay, duplication and
// reordering of messages and any clocks.
//
// A Table is not safe for concurrent use.
type Table struct {
	owner uint64
	// regional is true for one daemon's table of its region: its own
	// acknowledgement is a vote, and counts only once it is composed.
	regional bool

	// entries is ascending by ID and never empty. The first is settled for
	// every window still in use.
	entries []entry
	// past holds the owner's amounts of pruned epochs, for windows before the
	// first entry; ascending by from.
	past []Past
	// top is the greatest epoch acknowledged. Lower ones are acknowledged no
	// more.
	top ID
	// pruned is above every dropped epoch: one of them may have been
	// acknowledged and left a participant out.
	pruned ID

	used  int64 // the latest window a share was returned for
	fence int64 // an earlier run may have used windows that start here or before
	// unknown is the same for the runs whose use the owner does not know: see
	// Resume. It is at most fence.
	unknown int64
	// stopped is the first window the owner does not use any more, never before
	// Stop.
	stopped int64

	durable Bounds // of the stored record

	horizons   []Horizon   // ascending by ID: the farthest extended to each
	floor      int64       // the same for all that are not in horizons
	extensions []Extension // ascending by By: the newest of each

	// revision counts changes that may have changed a share.
	revision uint64
}

// entry is one epoch with its state.
type entry struct {
	Epoch
	// from is the first window it is settled for, never while it is not. It
	// only decreases: a proof stays valid.
	from int64
	mine bool // acknowledged by the owner
	kept bool // in a stored record
	// extended is the last window that enough others had extended the owner's
	// horizon to before it stopped.
	extended int64
	own      Ack   // the owner's acknowledgement, zero for none
	acks     []Ack // ascending by By
	// held are the dependencies of those that acknowledged it or its
	// predecessor, sorted.
	held []ID
}

// New returns the table of a participant that starts for the first time and has
// promised nothing yet. All participants must pass the same genesis. A
// participant that has run before starts with Restore. One that lost its record
// starts under a new ID; it then holds 0 until an epoch that names it is
// settled. The table holds nothing until a record is stored (see Extend).
func New(owner uint64, genesis Epoch) (*Table, error) {
	if err := genesis.Validate(); err != nil {
		return nil, err
	}
	if genesis.ID != (ID{}) {
		return nil, fmt.Errorf("epoch %s as the genesis: want the zero ID", genesis.ID)
	}
	t := empty(owner)
	t.entries = []entry{{Epoch: genesis, from: always, mine: true, extended: always}}
	return t, nil
}

// NewRegional is New for the table that a daemon keeps of its region, the
// owner. Its acknowledgements are Votes. TakeAck accepts the composed
// acknowledgements of the owner.
func NewRegional(region uint64, genesis Epoch) (*Table, error) {
	t, err := New(region, genesis)
	if err != nil {
		return nil, err
	}
	t.regional = true
	return t, nil
}

func empty(owner uint64) *Table {
	return &Table{
		owner: owner, used: always, fence: always, unknown: always, stopped: never, floor: always,
		durable: Bounds{Window: always, Horizon: always},
	}
}

// Fence makes the owner of a new table hold 0 in windows whose history begins
// before from (Unix milliseconds): others may have used them, that no epoch of
// this table names. Stored records keep it.
func (t *Table) Fence(from int64) {
	if from <= t.fence {
		return
	}
	t.fence, t.unknown = from-1, from-1
	t.durable.Window = max(t.durable.Window, t.fence)
}

// Owner returns the participant the table belongs to.
func (t *Table) Owner() uint64 { return t.owner }

// find returns the place of id among the entries and whether it is there.
func (t *Table) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(t.entries, id, func(e entry, id ID) int {
		return e.ID.Compare(id)
	})
}

// Knows reports whether the table has the epoch or has replaced it by a settled
// one.
func (t *Table) Knows(id ID) bool {
	_, ok := t.find(id)
	return ok || id.Before(t.entries[0].ID)
}

// Settled returns the greatest epoch that is settled for some window, and the
// start of the first such window in Unix milliseconds. A new epoch names it as
// its predecessor.
func (t *Table) Settled() (e Epoch, from int64) {
	i := len(t.entries) - 1
	for t.entries[i].from == never {
		i--
	}
	return t.entries[i].Epoch, t.entries[i].from
}

// Pending returns the epochs the owner may acknowledge now and has not, in the
// ascending order that Acknowledge requires.
func (t *Table) Pending() []ID {
	var ids []ID
	for i := range t.entries {
		// The first check avoids the cost of an error.
		if e := &t.entries[i]; t.top.Before(e.ID) && t.acknowledgeable(e) == nil {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Learn records an epoch, once or often. It increases no share, and
// decreases the owner's only where the epoch retires it. It returns ErrStale
// for an epoch before the oldest one, which is settled, and ErrFull without
// room; both are equal to a lost message. An epoch with a known ID and
// another content is an error of its proposer.
func (t *Table) Learn(e Epoch) error {
	if err := e.Validate(); err != nil {
		return err
	}
	i, ok := t.find(e.ID)
	if ok {
		if !t.entries[i].equal(e) {
			return fmt.Errorf("epoch %s: another content than learned before: want one for ever", e.ID)
		}
		return nil
	}
	// Its predecessor may be dropped here: others may have acknowledged it, and
	// an epoch they acknowledge later must cover it.
	if base := t.entries[0].ID; e.ID.Before(base) {
		return fmt.Errorf("epoch %s: %w: want one after %s", e.ID, ErrStale, base)
	}
	if err := t.add(e); err != nil {
		return err
	}
	t.settle()
	return nil
}

// add makes an unsettled entry for an unknown epoch.
func (t *Table) add(e Epoch) error {
	if len(t.entries) >= MaxEpochs && !t.evict(e.ID) {
		return fmt.Errorf("epoch %s: %w: %d are unsettled", e.ID, ErrFull, len(t.entries)-1)
	}
	i, _ := t.find(e.ID)
	t.entries = slices.Insert(t.entries, i, entry{Epoch: e, from: never, extended: always})
	t.revision++
	return nil
}

// evict drops an epoch without any promise to make room for id, and reports
// whether there was one: the lowest below id, or for an epoch that others need
// the lowest of all. It drops none that others need, unless id is the newest.
func (t *Table) evict(id ID) bool {
	needs := t.needs()
	_, needed := slices.BinarySearchFunc(needs, id, ID.Compare)
	newest := t.entries[len(t.entries)-1].ID.Before(id)
	return t.evictIf(func(e *entry) bool {
		_, keep := slices.BinarySearchFunc(needs, e.ID, ID.Compare)
		return !keep && (needed || e.ID.Before(id))
	}) || newest && t.evictIf(func(*entry) bool { return true })
}

// evictIf drops the lowest epoch without any promise that fits.
func (t *Table) evictIf(fits func(*entry) bool) bool {
	for i := 1; i < len(t.entries); i++ {
		if e := &t.entries[i]; !e.mine && e.from == never && fits(e) {
			t.entries = slices.Delete(t.entries, i, i+1)
			t.revision++
			return true
		}
	}
	return false
}

// needs returns the epochs, sorted, without which acknowledged ones are never
// settled here: their predecessors, and those that a participant acknowledged
// before (see settledFrom).
func (t *Table) needs() []ID {
	var ids []ID
	for i := range t.entries {
		for _, a := range t.entries[i].acks {
			ids = append(append(ids, a.Before...), t.entries[i].Pred)
		}
	}
	slices.SortFunc(ids, ID.Compare)
	return ids
}

// acknowledgeable returns an error if the owner must not acknowledge e now.
func (t *Table) acknowledgeable(e *entry) error {
	if !t.top.Before(e.ID) {
		return fmt.Errorf("not above %s, acknowledged before", t.top)
	}
	p, ok := t.find(e.Pred)
	if !ok {
		return fmt.Errorf("predecessor %s: %w", e.Pred, ErrUnknown)
	}
	pred := &t.entries[p]
	if pred.from == never && !pred.mine && pred.Has(t.owner) {
		return fmt.Errorf("predecessor %s: want it acknowledged first", e.Pred)
	}
	// A settled epoch is acknowledged by those that it leaves out: it then
	// counts before their horizons end.
	settled, _ := t.Settled()
	if e.Pred.Before(settled.ID) && e.from == never {
		return fmt.Errorf("predecessor %s: %w: want %s", e.Pred, ErrStale, settled.ID)
	}
	pending, limit := 0, MaxPending
	if len(e.Retired) == 0 {
		limit /= 2
	}
	for i := range t.entries {
		if t.entries[i].mine && settled.ID.Before(t.entries[i].ID) {
			pending++
		}
	}
	if pending >= limit {
		return fmt.Errorf("%w: %d acknowledged and not settled", ErrFull, pending)
	}
	return nil
}

// Acknowledge promises to respect a known epoch in every window that starts
// after now (Unix milliseconds, the owner's hybrid clock) and was not used yet.
// held are the acknowledged epochs of other tables (see DaemonShare), sorted;
// the table keeps the slice.
//
// Store the record before the acknowledgement is sent. If storing fails, drop
// both and the table, and restore the table from the last stored record.
func (t *Table) Acknowledge(id ID, now int64, held []ID) (Ack, Record, error) {
	i, ok := t.find(id)
	if !ok {
		return Ack{}, Record{}, fmt.Errorf("acknowledge epoch %s: %w", id, ErrUnknown)
	}
	e := &t.entries[i]
	if err := t.acknowledgeable(e); err != nil {
		return Ack{}, Record{}, fmt.Errorf("acknowledge epoch %s: %w", id, err)
	}
	a := Ack{ID: id, By: t.owner, From: sat.AddInt(max(now, t.used, t.fence), 1), Floor: t.floor, Held: held}
	for j := range t.entries[:i] {
		if b := &t.entries[j]; b.mine && e.Pred.Before(b.ID) {
			a.Before = append(a.Before, b.ID)
		}
	}
	for _, h := range t.horizons {
		if !e.Has(h.ID) {
			a.Horizons = append(a.Horizons, h)
		}
	}
	if err := a.Validate(); err != nil {
		return Ack{}, Record{}, err
	}
	e.mine, e.own, t.top = true, a, id
	if !t.regional {
		e.add(a)
	}
	t.settle()
	return a, t.Record(), nil
}

// TakeAck records an acknowledgement, in any order, once or often. It returns
// ErrUnknown for an epoch not learned yet or an unknown participant: pass it
// again later. It returns ErrFull for too many dependencies.
func (t *Table) TakeAck(a Ack) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if a.By == t.owner && !t.regional {
		return nil // the table has its own promises
	}
	i, ok := t.find(a.ID)
	if !ok || !t.Names(a.By) {
		return fmt.Errorf("acknowledgement of epoch %s by %d: %w", a.ID, a.By, ErrUnknown)
	}
	e := &t.entries[i]
	if len(e.held)+len(a.Held) > MaxHeld {
		return fmt.Errorf("acknowledgement of epoch %s by %d: %w: %d held: want at most %d in all",
			a.ID, a.By, ErrFull, len(e.held)+len(a.Held), MaxHeld)
	}
	e.add(a)
	t.settle()
	return nil
}

// add keeps the first acknowledgement of each participant.
func (e *entry) add(a Ack) {
	i, ok := slices.BinarySearchFunc(e.acks, a.By, compareAck)
	if !ok {
		e.acks = slices.Insert(e.acks, i, a)
		e.hold(a.Held)
	}
}

// hold adds dependencies.
func (e *entry) hold(held []ID) {
	for _, h := range held {
		if i, ok := slices.BinarySearchFunc(e.held, h, ID.Compare); !ok {
			e.held = slices.Insert(e.held, i, h)
		}
	}
}

// Names reports whether a known epoch names the participant. TakeAck records
// the acknowledgements of no other one.
func (t *Table) Names(id uint64) bool {
	return slices.ContainsFunc(t.entries, func(e entry) bool { return e.Has(id) })
}

// Prune drops the epochs that only windows before oldest (a start minus the
// carry, Unix milliseconds) need, and returns how many.
//
// An epoch may be dropped once a greater one is settled for all later windows:
// it is then below the least epoch of every later share. Its first window is
// part of that of the settled one. The owner's amounts remain for older
// windows, as lesser amounts where many epochs were pruned, and as 0 after a
// restart without Stop.
func (t *Table) Prune(oldest int64) int {
	for i := len(t.entries) - 1; i > 0; i-- {
		if t.entries[i].from > oldest {
			continue
		}
		t.keepPast(t.entries[:i])
		for j := range t.entries[:i] {
			// Windows of dropped epochs need their dependencies.
			t.entries[i].hold(t.entries[j].held)
		}
		t.pruned = t.entries[i-1].ID.next()
		t.entries = slices.Delete(t.entries, 0, i)
		t.revision++
		t.settle()
		return i
	}
	return 0
}
