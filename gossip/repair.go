package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
)

// retry is a cell that a peer refused, to be sent again.
type retry struct {
	id CellID
	at time.Duration
}

// A refused cell is sent again after retryAfter; maxRetries are remembered,
// more are sent again at once.
const (
	retryAfter = time.Second
	maxRetries = 4_096
)

// refuse lists a cell as refused. It returns false when the list is full.
func (e *Engine) refuse(now time.Duration, l *link, id CellID, r Reason) bool {
	if len(l.refused) >= maxRefused {
		return false
	}
	e.event(now, CellRefused, l.peer.ID, r, 1)
	l.refused = append(l.refused, told[Refusal]{item: Refusal{id, r}})
	return true
}

// again sees to it that a refused cell is sent once more. It returns false when
// it knew: a refusal is listed in each message until that is echoed.
func (e *Engine) again(now time.Duration, id CellID) bool {
	if _, known := e.retrying[id]; known {
		return false
	}
	if len(e.retry) >= maxRetries {
		e.resend(now, id)
		return true
	}
	if e.retrying == nil {
		e.retrying = map[CellID]struct{}{}
	}
	e.retrying[id] = struct{}{}
	e.retry = append(e.retry, retry{id, now + retryAfter})
	return true
}

func (e *Engine) retryDue(now time.Duration) {
	n := 0
	for n < len(e.retry) && e.retry[n].at <= now {
		delete(e.retrying, e.retry[n].id)
		e.resend(now, e.retry[n].id)
		n++
	}
	e.retry = append(e.retry[:0], e.retry[n:]...)
}

// resend gives a cell a new version; of our region's sum, one of the cells that
// it is the sum of.
func (e *Engine) resend(now time.Duration, id CellID) {
	if i := e.state.find(id); i != none && id.Incarnation != e.region {
		e.state.touch(i, now)
		return
	}
	at := e.state.keyOf(id.Key)
	if id.Kind != RegionSum || id.Incarnation != e.region || at == none {
		return
	}
	for i := e.state.keys[at].first; i != none; i = e.state.cells[i].fwd {
		if c := &e.state.cells[i]; c.Kind == Daemon && c.Window == id.Window {
			e.state.touch(i, now)
			return
		}
	}
}

// repair sends our long-lived cells of some buckets again. All cells have to
// be looked at for that, so once is enough until digests are compared again:
// the list is in each message until it is echoed.
func (e *Engine) repair(now time.Duration, l *link, list []uint16) {
	if len(list) == 0 || l.repairedAt != 0 && now-l.repairedAt < e.cfg.DigestEvery/2 {
		return
	}
	l.repairedAt = now
	var wanted [buckets]bool
	for _, b := range list {
		if int(b) < buckets {
			wanted[b] = true
		}
	}
	n := uint64(0)
	for i := range e.state.cells {
		c := &e.state.cells[i]
		if c.used && c.Incarnation == e.self.ID && c.digested() && wanted[bucketOf(c.Key)] {
			e.state.touch(int32(i), now)
			n++
		}
	}
	e.event(now, BucketRepaired, l.peer.ID, 0, n)
}

// check is what another region says of our own, to be compared with what our
// daemons know once they had time to say it.
type check struct {
	id CellID
	at time.Duration
}

// maxChecks bounds the checks that wait; what does not fit is not restored.
const maxChecks = 1 << 20

// remember notes that another region told of our own: a region all of whose
// daemons restarted has nobody else who knows.
func (e *Engine) remember(now time.Duration, i int32) {
	if len(e.checks) < maxChecks {
		e.checks = append(e.checks, check{e.state.cells[i].CellID, now + e.hindsight()})
	}
}

// restore counts what others remember of our region and no daemon of it knows
// under a slot of its own, which all daemons of the region may write: it only
// grows, to the same lost amount. It waits while a daemon of the region may
// still have to tell what it knows.
func (e *Engine) restore(now time.Duration) {
	if len(e.checks) == 0 || !e.agreed(now) {
		return
	}
	n := 0
	for n < len(e.checks) && e.checks[n].at <= now {
		e.restoreOne(now, e.checks[n].id)
		n++
	}
	if n > 0 {
		e.checks = append(e.checks[:0], e.checks[n:]...)
	}
}

// agreed reports whether the region had time to agree: nobody came or went for
// a while, and everybody is heard.
func (e *Engine) agreed(now time.Duration) bool {
	if !e.synced || now-e.regrouped < e.hindsight() {
		return false
	}
	for _, l := range e.links {
		if _, heard := l.view(now); l.local && !(l.whole && heard) {
			return false
		}
	}
	return true
}

// hindsight is how long daemons of a region take to tell each other all.
func (e *Engine) hindsight() time.Duration { return max(e.cfg.ReadyWithin, 20*e.cfg.Interval) }

func (e *Engine) restoreOne(now time.Duration, id CellID) {
	told := e.state.find(id)
	if told == none {
		return
	}
	v := e.state.cells[told].Value
	known, span := e.sum(id.Key, id.Window)
	if carry := e.state.cells[told].Carry; carry > span.Carry {
		e.keep(id.Key, carry, func(c *cell) bool { return c.Kind == Daemon && c.Window == id.Window })
	}
	if v.P <= known.P {
		return
	}
	lost := CellID{Key: id.Key, Window: id.Window, Kind: Daemon, Incarnation: e.lost}
	i := e.state.find(lost)
	if i == none {
		if i = e.state.add(lost, e.state.cells[told].CellMeta); i == none {
			return
		}
	}
	was := e.state.cells[i].Value
	gain := v.P - known.P
	is := crdt.PN{P: was.P + gain, N: was.N + (v.N - min(v.N, known.N))}
	is.N = min(is.N, is.P)
	e.state.set(i, is)
	e.state.touch(i, now)
	c := &e.state.cells[i]
	e.restored = append(e.restored, Change{Key: c.Key, Window: c.Window, Span: c.CellMeta, Gain: gain, Less: is.N - was.N})
	e.event(now, CountsRestored, 0, 0, gain)
}

// Restored returns the changes that came of what other regions remembered,
// since the last call.
func (e *Engine) Restored() []Change {
	out := e.restored
	e.restored = nil
	return out
}
