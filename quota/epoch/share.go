package epoch

import "math"

// Reason says what decided a share.
type Reason uint8

const (
	// ReasonEpoch: the least amount of all epochs that count.
	ReasonEpoch Reason = iota
	// ReasonLeftOut: an epoch that counts does not name the owner.
	ReasonLeftOut
	// ReasonAlone: too few others have granted the label. Hear them again.
	ReasonAlone
	// ReasonUnsettled: no known epoch is settled for the label, because the table
	// is new or the label older than Prune was told.
	ReasonUnsettled
	// ReasonFenced: an earlier run of the owner may have used the label.
	ReasonFenced
	// ReasonAhead: the record stored does not reach the label. Extend it.
	ReasonAhead
	// ReasonWaiting: memory lost, and not all participants have reported.
	ReasonWaiting
	// ReasonUnlearned: the region's table lacks an epoch that those who let the
	// daemon in had acknowledged, or its record is not stored yet.
	ReasonUnlearned
)

// String returns the reason as half a sentence.
func (w Reason) String() string {
	names := [...]string{
		"the least amount of the epochs that count", "left out of an epoch",
		"cut off from too many of the others", "no epoch is settled for the label",
		"an earlier run may have used the label", "the record does not reach the label",
		"memory lost, not all have reported", "an epoch of the region is not learned and stored",
	}
	if int(w) >= len(names) {
		return "unknown reason"
	}
	return names[w]
}

// Share returns what the owner holds of the label that starts at x (Unix
// milliseconds), as an amount of the epochs. carry is how far an algorithm's
// history reaches back from the start of a label, in milliseconds: 0 where
// labels are independent, a window for a sliding window. It must not be
// negative. Share allocates nothing.
//
// The least epoch that counts is the greatest settled for x-carry: what it
// takes from one participant was gone in all labels whose use still shows in
// x before another gets it. All known epochs above count too, and the least
// amount holds; each that names the owner must be covered by enough grants.
//
// The answer for one label may go up (acknowledgements arrive) and down (an
// epoch is learned). It may be followed in both directions, or the greatest
// answer kept: the sum over all participants of their greatest answers is
// bound as well. For let E be the greatest least-epoch of all answers for the
// label. Whoever acknowledged E did so before it asked for the label, so every
// answer it ever gets for it takes E into account; the others can use no base
// in it at all. Nobody need freeze a share, only the fence matters: a run of
// the owner that does not remember what an earlier one used gets 0.
func (t *Table) Share(x, carry int64) (uint64, Reason) {
	lo, why := t.lowest(x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	least := uint64(math.MaxUint64)
	for i := range t.pastFrom(lo) {
		least = min(least, t.pastAt(lo, i).amount)
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		least = min(least, t.entries[i].Amount(t.owner))
	}
	return least, ReasonEpoch
}

// Part is Share for a table whose amounts are weights: the owner's part of an
// amount that all members share (see Split), the least under all epochs that
// count. Participants that pass different amounts hold together at most the
// greatest of them.
func (t *Table) Part(amount uint64, x, carry int64) (uint64, Reason) {
	lo, why := t.lowest(x, carry)
	if why != ReasonEpoch {
		return 0, why
	}
	return t.partOf(amount, lo), ReasonEpoch
}

func (t *Table) partOf(amount uint64, lo int) uint64 {
	least := amount
	for i := range t.pastFrom(lo) {
		least = min(least, t.pastAt(lo, i).split(amount))
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		least = min(least, t.entries[i].Split(amount, t.owner))
	}
	return least
}

// lowest returns the place of the least epoch that counts for a label, or why
// the owner's share is 0. A place below 0 is among those pruned: see pastAt.
func (t *Table) lowest(x, carry int64) (int, Reason) {
	switch {
	case t.waiting:
		return 0, ReasonWaiting
	case earlier(x, carry) <= t.fence: // what the earlier run used may still show
		return 0, ReasonFenced
	case x > t.durable.Window:
		return 0, ReasonAhead
	}
	t.used = max(t.used, x)
	lo := len(t.entries) - 1
	for lo >= 0 && t.entries[lo].from > earlier(x, carry) {
		lo--
	}
	if lo < 0 {
		if lo = t.pastPlace(earlier(x, carry)); lo >= 0 || !t.pastGranted(lo, x) {
			return 0, ReasonUnsettled
		}
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		if !t.entries[i].Has(t.owner) {
			return 0, ReasonLeftOut
		}
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		if !t.granted(&t.entries[i], x) {
			return 0, ReasonAlone
		}
		if t.broken&flawLowestOnly != 0 {
			break
		}
	}
	return lo, ReasonEpoch
}

// earlier returns ms-d, at least always. d is not negative.
func earlier(ms, d int64) int64 {
	if ms < always+d {
		return always
	}
	return ms - d
}
