package gossip

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// retries are the cells that peers refused and that are sent again.
type retries struct {
	list  []retry
	known map[CellID]struct{} // those of list
}

// retry is one cell to send again at a time.
type retry struct {
	id CellID
	at time.Duration
}

// A refused cell is sent again after retryAfter. At most maxRetries are
// remembered; more are sent again without delay.
const (
	retryAfter = time.Second
	maxRetries = 4_096
)

// add remembers a refused cell. It returns known if it was remembered already:
// a refusal is listed in each message until that is echoed. It returns full
// without room.
func (r *retries) add(now time.Duration, id CellID) (known, full bool) {
	if _, known := r.known[id]; known {
		return true, false
	}
	if len(r.list) >= maxRetries {
		return false, true
	}
	if r.known == nil {
		r.known = map[CellID]struct{}{}
	}
	r.known[id] = struct{}{}
	r.list = append(r.list, retry{id, now + retryAfter})
	return false, false
}

// due appends the cells that are due to all, and forgets them.
func (r *retries) due(now time.Duration, all []CellID) []CellID {
	n := 0
	for n < len(r.list) && r.list[n].at <= now {
		delete(r.known, r.list[n].id)
		all = append(all, r.list[n].id)
		n++
	}
	r.list = append(r.list[:0], r.list[n:]...)
	return all
}

// resend gives cells new versions. For a sum of the own region, it is one of
// the cells of the sum; all sums of a key take one pass through its cells. It
// changes the order of all.
func (s *state) resend(now time.Duration, region crdt.Incarnation, all []CellID) {
	slices.SortFunc(all, func(a, b CellID) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(b.Window, a.Window))
	})
	at, of := none, crdt.Key(0) // where the pass is, and through which key
	for _, id := range all {
		i := none
		switch {
		case id.Kind != RegionSum || id.Incarnation != region:
			i = s.find(id)
		case id.Key != of:
			at, of = s.firstOf(s.keyOf(id.Key)), id.Key
			fallthrough
		default:
			at = s.from(at, id.Window)
			i = s.part(at, id.Window)
		}
		if i != none {
			s.touch(i, now)
		}
	}
}

// MaxRefused bounds the listed refused cells of a peer. Others are acknowledged
// without being listed, and come again with a resync: see acknowledges.
const MaxRefused = 1_024

// refuse lists a cell as refused, once. It returns false if the list is full:
// then the cell is omitted. A cell that is in the list is listed anew: the peer
// may have sent it again with the list, and must not take the echo of that for
// an acceptance.
func (l *link) refuse(id CellID, r Reason) bool {
	if i, in := l.listed[id]; in {
		l.refused[i].nonce = 0
		return true
	}
	if len(l.refused) >= MaxRefused {
		return false
	}
	if l.listed == nil {
		l.listed = make(map[CellID]int)
	}
	l.listed[id] = len(l.refused)
	l.refused = append(l.refused, listed[Refusal]{item: Refusal{id, r}})
	return true
}

// omitted notes a refused cell that is not listed.
func (l *link) omitted(now time.Duration) {
	if l.omittedAt == 0 {
		l.omittedAt = now
	}
}

// acknowledges returns the version to acknowledge. Config.DigestEvery after a
// refused cell was omitted that is 0, as if everything was lost, until a resync
// of the peer arrives. That has the cell again: there may be room for it now.
// The view of the peer does not depend on that: only refused cells are missing.
// A resync that is under way is not begun again.
func (l *link) acknowledges(now time.Duration) uint64 {
	if l.omittedAt != 0 && !l.lacks && now-l.omittedAt >= l.cfg.DigestEvery {
		l.omittedAt, l.accepted = 0, 0
	}
	return l.accepted
}

// settleRefused drops the refused cells that the peer has the list of.
func (l *link) settleRefused(echo uint64) {
	was := len(l.refused)
	if l.refused = settle(l.refused, echo); len(l.refused) == was {
		return
	}
	clear(l.listed)
	for i := range l.refused {
		l.listed[l.refused[i].item.CellID] = i
	}
}
