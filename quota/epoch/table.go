package epoch

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// MaxEpochs bounds the epochs a table knows at a time.
	MaxEpochs = 32
	// MaxPending bounds those it has acknowledged and not seen settled. The
	// upper half is kept for epochs that retire somebody: so the epochs that
	// wait for a dead participant never keep out the one that ends the wait.
	MaxPending = 16
	// MaxExtended bounds the participants a table remembers a grant to.
	MaxExtended = 2 * MaxMembers
)

// Refusals of Learn, TakeAck and Acknowledge that a caller may tell apart.
var (
	// ErrStale is for an epoch that a settled one has replaced.
	ErrStale = errors.New("replaced by a settled epoch")
	// ErrUnknown is for what refers to an epoch the table has not learned.
	ErrUnknown = errors.New("not known here")
	// ErrFull is for what a limit of this package has no room for.
	ErrFull = errors.New("no room")
	// ErrWaiting is for a table that has lost its memory and has not yet heard
	// all participants.
	ErrWaiting = errors.New("memory lost, waiting for the reports of all participants")
)

// Table is what one participant knows and has promised. It says how much of a
// label its owner holds, such that the holdings of all participants sum to at
// most the total of one epoch, whatever is lost, late, repeated or reordered,
// and whatever the clocks show.
//
// A Table is not safe for concurrent use.
type Table struct {
	owner      uint64
	generation uint64
	// part is for one daemon's table of its region: its own acknowledgement is
	// a vote, and does not count before it comes back composed.
	part bool

	// entries is ascending by ID. The first is the base: settled for every
	// label that is still asked for. Empty only while waiting for reports.
	entries []entry
	// past is what pruned epochs left to the owner, for labels from before the
	// base; ascending by from.
	past []past
	// top is the greatest epoch acknowledged; nothing below is acknowledged
	// from then on.
	top ID
	// pruned is above every epoch that was dropped: one of them may have been
	// acknowledged and lacked somebody.
	pruned ID

	used  int64 // the latest label Share was asked for
	fence int64 // labels that start at it or earlier are of an earlier run

	durable Bounds // what the stored record allows

	reaches     []Horizon   // ascending by ID: the farthest label granted to each
	floor       int64       // the same for all that are not in reaches
	grants      []Extension // ascending by By: the newest of each grantor
	generations []LostDisk  // ascending by ID: nothing of a lower life counts

	// revision counts what may have changed an answer of Share.
	revision uint64

	waiting bool     // for reports, after a loss of memory
	heard   []uint64 // ascending: who has reported since

	broken flaw
}

// entry is one epoch with what is known about it.
type entry struct {
	Epoch
	// from is the first label it is settled for, never while it is not. It
	// only goes down: what was once proven stays true.
	from int64
	mine bool  // acknowledged by the owner
	kept bool  // in a record that is stored
	own  Ack   // what the owner sent; zero if it sent none
	acks []Ack // ascending by By
	// held is what those who acknowledged it, or let it be settled, had
	// acknowledged of other tables; sorted.
	held []Dependency
}

// flaw breaks a rule on purpose. Only tests set it, to show that they would
// find the broken rule.
type flaw uint8

const (
	flawNoInherit   flaw = 1 << iota // the first label of the predecessor is not inherited
	flawLowestOnly                   // grants are looked at under the settled epoch only
	flawEasyReclaim                  // one member's word is enough to take a share back
	flawNoReports                    // epochs reported by acknowledgements are ignored
	flawEasyUse                      // one's own grant is enough
	flawNoChain                      // what must be known of other tables is not inherited
)

// New returns the table of a participant that starts for the first time, and
// that has promised nothing yet. The genesis must be the same everywhere. A
// participant that has run before starts with Restore; one whose record is
// lost takes a new name (it then holds 0 until an epoch that names it is
// settled) or starts with NewForgetful. Until a record is stored (see Extend)
// it holds nothing.
func New(owner uint64, genesis Epoch) (*Table, error) {
	if err := genesis.Validate(); err != nil {
		return nil, err
	}
	if genesis.ID != (ID{}) {
		return nil, fmt.Errorf("epoch %s as the genesis: want the zero ID", genesis.ID)
	}
	t := empty(owner)
	t.entries = []entry{{Epoch: genesis, from: always, mine: true}}
	return t, nil
}

// NewRegional is New for the table that a daemon keeps of its region, which is the
// owner. What it acknowledges is one Vote; TakeAck then takes what Compose made
// of the votes, also for the own region.
func NewRegional(region uint64, genesis Epoch) (*Table, error) {
	t, err := New(region, genesis)
	if err != nil {
		return nil, err
	}
	t.part = true
	return t, nil
}

func empty(owner uint64) *Table {
	return &Table{
		owner: owner, used: always, fence: always, floor: always,
		durable: Bounds{Window: always, Horizon: always},
	}
}

// Owner returns the participant whose table this is.
func (t *Table) Owner() uint64 { return t.owner }

// find returns the place of id among the entries and whether it is there.
func (t *Table) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(t.entries, id, func(e entry, id ID) int {
		return e.ID.Compare(id)
	})
}

// Knows reports whether the table has the epoch, or a settled one above it
// that has replaced it.
func (t *Table) Knows(id ID) bool {
	if len(t.entries) == 0 {
		return false
	}
	_, ok := t.find(id)
	return ok || id.Before(t.entries[0].ID)
}

// Settled returns the greatest epoch that is settled for some label, and the
// start of the first such label, in Unix milliseconds. It is the predecessor
// a proposer names. ok is false only while the table waits for reports.
func (t *Table) Settled() (e Epoch, from int64, ok bool) {
	for i := len(t.entries) - 1; i >= 0; i-- {
		if t.entries[i].from != never {
			return t.entries[i].Epoch, t.entries[i].from, true
		}
	}
	return Epoch{}, never, false
}

// Pending returns the epochs the owner has not acknowledged and may, lowest
// first: Acknowledge takes them in this order.
func (t *Table) Pending() []ID {
	var ids []ID
	for i := range t.entries {
		// What is not above the top is told without making an error of it.
		if e := &t.entries[i]; t.top.Before(e.ID) && t.acknowledgeable(e) == nil {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Learn takes in an epoch, once or often. It changes nobody's share upward,
// and the owner's downward at once. It refuses with ErrStale what a settled
// epoch has replaced, and with ErrFull what there is no room for; both are as
// if the message had been lost. Another content under a known ID is an error
// of the proposer.
func (t *Table) Learn(e Epoch) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if len(t.entries) == 0 {
		return fmt.Errorf("epoch %s: %w", e.ID, ErrWaiting)
	}
	i, ok := t.find(e.ID)
	if ok {
		if !t.entries[i].equal(e) {
			return fmt.Errorf("epoch %s: another content than learned before: want one for ever", e.ID)
		}
		return nil
	}
	// While waiting nothing is stale: the owner may have promised it.
	base := t.entries[0].ID
	if e.ID.Before(base) || e.Pred.Before(base) && !t.waiting {
		return fmt.Errorf("epoch %s after %s: %w: want one after %s", e.ID, e.Pred, ErrStale, base)
	}
	if err := t.add(e); err != nil {
		return err
	}
	t.settle()
	return nil
}

// add makes an unsettled entry of an epoch that is not known.
func (t *Table) add(e Epoch) error {
	if len(t.entries) >= MaxEpochs && !t.evict(e.ID) {
		return fmt.Errorf("epoch %s: %w: %d are unsettled", e.ID, ErrFull, len(t.entries)-1)
	}
	i, _ := t.find(e.ID)
	t.entries = slices.Insert(t.entries, i, entry{Epoch: e, from: never})
	t.revision++
	return nil
}

// evict forgets the lowest epoch below id that nothing was promised under, and
// reports whether there was one.
func (t *Table) evict(id ID) bool {
	if t.waiting {
		return false // the owner may have promised any of them
	}
	for i := 1; i < len(t.entries) && t.entries[i].ID.Before(id); i++ {
		if !t.entries[i].mine && t.entries[i].from == never {
			t.entries = slices.Delete(t.entries, i, i+1)
			t.revision++
			return true
		}
	}
	return false
}

// acknowledgeable returns why the owner may not acknowledge e, or nil.
func (t *Table) acknowledgeable(e *entry) error {
	if t.waiting {
		return ErrWaiting
	}
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
	if s, _, _ := t.Settled(); e.Pred.Before(s.ID) {
		return fmt.Errorf("predecessor %s: %w: want %s", e.Pred, ErrStale, s.ID)
	}
	pending, limit := 0, MaxPending
	if len(e.Retired) == 0 {
		limit /= 2
	}
	for i := range t.entries {
		if t.entries[i].mine && t.entries[i].from == never {
			pending++
		}
	}
	if pending >= limit {
		return fmt.Errorf("%w: %d acknowledged and not settled", ErrFull, pending)
	}
	return nil
}

// Acknowledge promises to take a known epoch into account under every label
// that starts after now (Unix milliseconds, the owner's hybrid clock) and was
// not used yet. held names the epochs of other tables that were acknowledged
// before this one (see Base), sorted; the table keeps the slice.
//
// The acknowledgement must not leave before the record is stored. When storing
// fails, drop both and the table, and go on from the last record stored.
func (t *Table) Acknowledge(id ID, now int64, held []Dependency) (Ack, Record, error) {
	i, ok := t.find(id)
	if !ok {
		return Ack{}, Record{}, fmt.Errorf("acknowledge epoch %s: %w", id, ErrUnknown)
	}
	e := &t.entries[i]
	if err := t.acknowledgeable(e); err != nil {
		return Ack{}, Record{}, fmt.Errorf("acknowledge epoch %s: %w", id, err)
	}
	a := Ack{ID: id, By: t.owner, Generation: t.generation, From: after(max(now, t.used, t.fence)), Held: held}
	for j := range t.entries[:i] {
		if b := &t.entries[j]; b.mine && e.Pred.Before(b.ID) {
			a.Before = append(a.Before, b.ID)
		}
	}
	a.Floor = t.floor
	for _, r := range t.reaches {
		if !e.Has(r.ID) {
			a.Horizons = append(a.Horizons, r)
		}
	}
	if err := a.Validate(); err != nil {
		return Ack{}, Record{}, err
	}
	e.mine, e.own, t.top = true, a, id
	if !t.part {
		t.insert(e, a)
	}
	t.settle()
	return a, t.Record(), nil
}

// TakeAck takes in an acknowledgement, in any order, once or often. It refuses
// with ErrUnknown that of an epoch not learned yet or by a stranger: give it
// again later. It refuses with ErrFull one that Dependency too much, and with
// ErrStale those that their sender has forgotten.
func (t *Table) TakeAck(a Ack) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if a.By == t.owner && !t.part {
		return nil // the table's own promises are in its record
	}
	i, ok := t.find(a.ID)
	if !ok || !t.named(a.By) {
		return fmt.Errorf("acknowledgement of epoch %s by %d: %w", a.ID, a.By, ErrUnknown)
	}
	if a.Generation < t.generationOf(a.By) {
		return fmt.Errorf("acknowledgement of epoch %s by %d: %w: it has lost its memory since",
			a.ID, a.By, ErrStale)
	}
	e := &t.entries[i]
	if len(e.held)+len(a.Held) > MaxHeld {
		return fmt.Errorf("acknowledgement of epoch %s by %d: %w: %d held: want at most %d in all",
			a.ID, a.By, ErrFull, len(e.held)+len(a.Held), MaxHeld)
	}
	t.insert(e, a)
	t.settle()
	return nil
}

// insert keeps the first acknowledgement of each participant.
func (t *Table) insert(e *entry, a Ack) {
	i, ok := slices.BinarySearchFunc(e.acks, a.By, compareAck)
	if !ok {
		e.acks = slices.Insert(e.acks, i, a)
		e.hold(a.Held)
	}
}

// hold adds to what must be known of other tables before the epoch is used.
func (e *entry) hold(held []Dependency) {
	for _, h := range held {
		if i, ok := slices.BinarySearchFunc(e.held, h, compareHeld); !ok {
			e.held = slices.Insert(e.held, i, h)
		}
	}
}

// named reports whether some known epoch names the participant.
func (t *Table) named(id uint64) bool {
	for i := range t.entries {
		if t.entries[i].Has(id) {
			return true
		}
	}
	return false
}

// Prune drops the epochs that only labels before oldest (a start less the
// carry, Unix milliseconds) need. It returns how many it dropped.
//
// An epoch may go when a greater one is settled for all later labels: it is
// then below the least epoch of every minimum to come. What remains of it is
// the first label of the settled one, which later epochs inherit, and what it
// gave to the owner: for older labels the table goes on to answer that, or less
// where many were pruned, or 0 after a restart.
func (t *Table) Prune(oldest int64) int {
	for i := len(t.entries) - 1; i > 0; i-- {
		if t.entries[i].from > oldest {
			continue
		}
		t.keepPast(t.entries[:i])
		for j := range t.entries[:i] {
			// Labels of the pruned ask for what these asked for.
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

// after returns the instant after ms, at most never.
func after(ms int64) int64 {
	if ms == never {
		return never
	}
	return ms + 1
}
