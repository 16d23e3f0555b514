package epoch

import "github.com/georld/rld/internal/enum"

// Reason is the reason for a share.
type Reason uint8

// The reasons.
const (
	// ReasonEpoch: the least amount of all epochs that count.
	ReasonEpoch Reason = iota
	// ReasonLeftOut: an epoch that counts does not name the owner.
	ReasonLeftOut
	// ReasonAlone: too few others extended the horizon to the window. It
	// passes when messages of others arrive again.
	ReasonAlone
	// ReasonUnsettled: no known epoch is settled for the window, because the
	// table is new, or the window is older than the oldest kept epoch.
	ReasonUnsettled
	// ReasonFenced: an earlier run of the owner, or a former cluster, may have
	// used the window.
	ReasonFenced
	// ReasonAhead: the stored record does not cover the window: see Extend.
	ReasonAhead
	// ReasonWaiting: the owner started, and nobody confirmed yet that it is
	// still a participant. Tables do not return it; their callers do.
	ReasonWaiting
	// ReasonUnlearned: the regional table lacks an epoch that those that
	// admitted the daemon had acknowledged, or its record is not stored yet.
	ReasonUnlearned
	// ReasonStopped: the owner gave up its rights before it stops.
	ReasonStopped
	// ReasonNoCluster: the cluster has not begun, or has not this region.
	// Tables do not return it; their callers do.
	ReasonNoCluster
)

// Failure reports whether the owner cannot have a share, because something is
// missing. Otherwise the share is as it was assigned, also if it is 0.
func (r Reason) Failure() bool { return r != ReasonEpoch }

// String returns the reason as half a sentence.
func (r Reason) String() string {
	return enum.Name(r,
		"the least amount of the epochs that count", "left out of an epoch",
		"partitioned from too many of the others", "no epoch is settled for the window",
		"an earlier run or a former cluster may have used the window", "the stored record does not cover the window",
		"started, and the record of the cluster is not confirmed yet", "an epoch of the region is not learned and stored",
		"the daemon has given up its rights and will stop",
		"the cluster has not begun, or it has not this region",
	)
}

// Share returns the owner's part of a rule's total in the window that starts at
// x (Unix milliseconds), in parts per million. carry is how far the history of
// an algorithm reaches back from the start of a window, in milliseconds: 0 for
// independent windows, the window length for a sliding window; not negative.
// Share allocates nothing.
//
// The least epoch that counts is the greatest one settled for x-carry: an
// amount it moves from one participant to another was gone in all windows whose
// use still counts in x, before the other participant gets it. All known epochs
// above it count too, but for those that the owner acknowledged for windows
// after x alone. The result is the least amount, and each epoch that counts
// needs enough horizon extensions.
//
// The result for one window may increase (acknowledgements arrive) and decrease
// (an epoch is learned). The caller may follow it in both directions or keep
// the greatest result: the sum over all participants of their greatest results
// is bounded too. Proof: let E be the greatest least epoch of all results for
// the window. E is settled for the window, so every participant that
// acknowledged E did so for it, and before its first call for it: each of its
// results respects E. The other participants can use no rights in the window.
// The same holds for all windows whose use counts in it. A fence covers
// restarts: a run of the owner gets 0 in windows that an earlier run may have
// used.
func (t *Table) Share(rule uint64, x, carry int64) (uint64, Reason) {
	return t.shareAfter(t.fence, rule, x, carry)
}

// shareAfter is Share for windows whose history begins after a fence.
func (t *Table) shareAfter(fence int64, rule uint64, x, carry int64) (uint64, Reason) {
	lo, reason := t.lowestAfter(fence, x, carry)
	if reason != ReasonEpoch {
		return 0, reason
	}
	least, past := uint64(Whole), t.pastFrom(lo)
	for i := range past {
		if past[i].Counts <= x {
			least = min(least, past[i].amountOf(rule))
		}
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		if e := &t.entries[i]; t.countsFrom(e) <= x {
			least = min(least, e.AmountOf(rule, t.owner))
		}
	}
	return least, ReasonEpoch
}

// Part returns the owner's part of an amount that all members share with their
// amounts as weights (see Split), the least under all epochs that count.
// Participants that pass different amounts hold together at most the greatest
// of them. The window and the reasons are those of Share.
func (t *Table) Part(amount uint64, x, carry int64) (uint64, Reason) {
	lo, reason := t.lowest(x, carry)
	if reason != ReasonEpoch {
		return 0, reason
	}
	return t.partOf(amount, lo, x), ReasonEpoch
}

// partOf returns the owner's part of amount in the window x under the epochs
// from a place on.
func (t *Table) partOf(amount uint64, lo int, x int64) uint64 {
	least, past := amount, t.pastFrom(lo)
	for i := range past {
		if past[i].Counts <= x {
			least = min(least, past[i].split(amount))
		}
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		if e := &t.entries[i]; t.countsFrom(e) <= x {
			least = min(least, e.Split(amount, t.owner))
		}
	}
	return least
}

// countsFrom returns the first window in which an epoch counts where it is
// not below the least one that counts, never for none. An epoch that the
// owner has not acknowledged, or acknowledged for later windows alone, does
// not count. So the owner keeps an amount until the epoch that takes it is
// in force: nobody can settle the epoch for an earlier window before the
// owner's horizon ends. Who gets the amount waits for its own history
// besides. A region is bound by the acknowledgements of all its daemons,
// also by those that this daemon has no part in.
func (t *Table) countsFrom(e *entry) int64 {
	_, retired := e.retired(t.owner)
	switch {
	case t.regional || retired || e.mine && e.own.ID == (ID{}):
		return always
	case e.own.ID != (ID{}):
		return min(e.own.From, e.from)
	}
	return e.from
}

// lowest returns the place of the least epoch that counts for a window, or the
// reason for a share of 0. A place below 0 is a pruned epoch: see pastPlace.
func (t *Table) lowest(x, carry int64) (int, Reason) { return t.lowestAfter(t.fence, x, carry) }

// lowestAfter is lowest for windows whose history begins after a fence.
func (t *Table) lowestAfter(fence, x, carry int64) (int, Reason) {
	switch {
	case earlier(x, carry) <= fence: // use by the earlier run may still count
		return 0, ReasonFenced
	case x >= t.stopped:
		return 0, ReasonStopped
	case x > t.durable.Window:
		return 0, ReasonAhead
	}
	t.used = max(t.used, x)
	lo := t.settledBy(earlier(x, carry))
	if lo < 0 {
		if lo = t.pastPlace(earlier(x, carry)); lo >= 0 || !t.pastExtended(lo, x) {
			return 0, ReasonUnsettled
		}
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		if e := &t.entries[i]; !e.Has(t.owner) && t.countsFrom(e) <= x {
			return 0, ReasonLeftOut
		}
	}
	for i := max(lo, 0); i < len(t.entries); i++ {
		if e := &t.entries[i]; t.countsFrom(e) <= x && t.extendedUntil(e) < x {
			return 0, ReasonAlone
		}
	}
	return lo, ReasonEpoch
}

// earlier returns ms-d, at least always. d is not negative.
func earlier(ms, d int64) int64 { return max(ms, always+d) - d }
