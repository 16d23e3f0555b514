package epoch

import (
	"errors"
	"fmt"
	"slices"
)

// Report is all a table can tell: the epoch that is settled for its labels,
// those above, and every acknowledgement it holds. Exchanged between peers it
// brings a new table up to date; answered to one that lost its memory (To,
// Generation) it is also a promise not to count anything that one said before.
type Report struct {
	By, To     uint64
	Generation uint64
	Base       Epoch
	BaseFrom   int64
	BaseHeld   []Dependency // what those who acknowledged the base had acknowledged elsewhere
	Epochs     []Epoch      // ascending
	Acks       []Ack        // by epoch and participant
	// Generations are from which life on a participant counts, its own included.
	Generations []LostDisk
}

// Report returns what the table knows, for anybody. ok is false while it waits
// for reports itself.
func (t *Table) Report() (r Report, ok bool) {
	if t.waiting || len(t.entries) == 0 {
		return Report{}, false
	}
	r = Report{
		By: t.owner, Base: t.entries[0].Epoch, BaseFrom: t.entries[0].from,
		BaseHeld: slices.Clone(t.entries[0].held),
	}
	for i := range t.entries {
		if i > 0 {
			r.Epochs = append(r.Epochs, t.entries[i].Epoch)
		}
		r.Acks = append(r.Acks, t.entries[i].acks...)
	}
	r.Generations = append(slices.Clone(t.generations), LostDisk{t.owner, t.generation})
	return r, true
}

// ReportTo answers a participant that lost its memory and lives its given life
// since. The report must not leave before the record is stored, because the
// table must not forget that it counts no acknowledgement of an earlier life
// any more: one may still be on its way, of an epoch nobody reports.
func (t *Table) ReportTo(to, generations uint64) (Report, Record, error) {
	r, ok := t.Report()
	if !ok {
		return Report{}, Record{}, fmt.Errorf("report to %d: %w", to, ErrWaiting)
	}
	if least := t.generationOf(to); generations < least {
		return Report{}, Record{}, fmt.Errorf("report to %d in its life %d: %w: want at least %d",
			to, generations, ErrStale, least)
	}
	if !t.bury(LostDisk{to, generations}) {
		return Report{}, Record{}, fmt.Errorf("report to %d: %w", to, ErrFull)
	}
	r.To, r.Generation = to, generations
	return r, t.Record(), nil
}

// NewForgetful returns the table of a participant that has run before and has
// no record of it. It holds 0 until all participants have reported to it. life
// must be greater than that of every earlier loss (an HLC stamp is), and fence
// (Unix milliseconds) at or after the last label it may have used before: what
// its clock shows plus all it may have been ahead. A new name is safer, as it
// needs neither.
func NewForgetful(owner, generation uint64, fence int64) (*Table, error) {
	if generation == 0 {
		return nil, errors.New("life 0 after a loss of memory: want a greater one each time")
	}
	t := empty(owner)
	t.generation, t.fence, t.waiting = generation, fence, true
	// What it granted is forgotten: it may have been anything.
	t.floor = never
	return t, nil
}

// TakeReport takes in a report: the settled epoch as it is claimed, and what
// the table can use of the rest; it skips what it would refuse one by one. A
// table that waits hears the reports addressed to its life; err is of the
// report as a whole.
func (t *Table) TakeReport(r Report) error {
	if err := r.Base.Validate(); err != nil {
		return fmt.Errorf("report of %d: %w", r.By, err)
	}
	if r.BaseFrom == never || len(r.Epochs) > MaxEpochs || len(r.Acks) > MaxEpochs*MaxExtended ||
		len(r.BaseHeld) > MaxHeld {
		return fmt.Errorf("report of %d: base not settled, %d epochs, %d acknowledgements: "+
			"want it settled, at most %d, %d",
			r.By, len(r.Epochs), len(r.Acks), MaxEpochs, MaxEpochs*MaxExtended)
	}
	if err := t.adopt(r); err != nil {
		return fmt.Errorf("report of %d: %w", r.By, err)
	}
	complete := len(r.Generations) <= MaxExtended+1
	for _, l := range r.Generations[:min(len(r.Generations), MaxExtended+1)] {
		// Without this, two that lose their memory in turn count what each
		// said before.
		complete = t.bury(l) && complete
	}
	for _, e := range r.Epochs {
		if err := t.Learn(e); err != nil && !errors.Is(err, ErrStale) {
			complete = false
		}
	}
	for _, a := range r.Acks {
		// What is refused here comes again with a later report.
		_ = t.TakeAck(a)
	}
	if !t.waiting || !complete || r.To != t.owner || r.Generation != t.generation {
		return nil
	}
	if i, ok := slices.BinarySearch(t.heard, r.By); !ok && len(t.heard) < MaxExtended {
		t.heard = slices.Insert(t.heard, i, r.By)
	}
	t.maybeWake()
	return nil
}

// bury notes that nothing the participant said in an earlier life counts, and
// reports whether there was room.
func (t *Table) bury(l LostDisk) bool {
	if l.Generation == 0 || l.ID == t.owner {
		return true
	}
	i, known := slices.BinarySearchFunc(t.generations, l.ID, compareGeneration)
	switch {
	case known:
		t.generations[i].Generation = max(t.generations[i].Generation, l.Generation)
	case len(t.generations) >= MaxExtended:
		return false
	default:
		t.generations = slices.Insert(t.generations, i, l)
	}
	return true
}

// adopt takes in the claim that the base is settled from a label on. That is a
// fact about acknowledgements that exist, so it may be passed on.
func (t *Table) adopt(r Report) error {
	id := r.Base.ID
	if len(t.entries) > 0 && id.Before(t.entries[0].ID) {
		return nil
	}
	i, ok := t.find(id)
	if !ok {
		if err := t.add(r.Base); err != nil {
			return err
		}
		i, _ = t.find(id)
	}
	e := &t.entries[i]
	if !e.equal(r.Base) {
		return fmt.Errorf("epoch %s: another content than learned before: want one for ever", id)
	}
	if r.BaseFrom < e.from {
		e.from = r.BaseFrom
		e.hold(r.BaseHeld)
		t.revision++
	}
	t.settle()
	return nil
}

// maybeWake ends the waiting when all members of the greatest settled epoch and
// of those above have reported. Whoever counts an acknowledgement of the
// earlier life is among them or is named by an epoch that they report. From
// then on the owner behaves as if it had acknowledged all it knows.
func (t *Table) maybeWake() {
	s, _, _ := t.Settled()
	first, _ := t.find(s.ID)
	for i := first; i < len(t.entries); i++ {
		for _, m := range t.entries[i].Members {
			if _, ok := slices.BinarySearch(t.heard, m.ID); !ok && m.ID != t.owner {
				return
			}
		}
	}
	for i := range t.entries {
		t.entries[i].mine = true
	}
	t.top = t.entries[len(t.entries)-1].ID
	t.pruned = t.entries[0].ID
	t.waiting, t.heard = false, nil
	t.revision++
}
