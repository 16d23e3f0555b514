package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// restoration finds the counts of the own region that only other regions still
// have: those of a region all of whose daemons restarted. It compares the sums
// that other regions send back, once the daemons of the region had the time to
// exchange their cells. All daemons of the region may write the lost counts:
// they only grow, to the same value.
type restoration struct {
	lost    crdt.Incarnation // under which lost counts are kept
	checks  []check
	changes []Change
	passed  bool // sums were not checked, of keys that others aggregated
}

// check is a sum of the own region to compare at a time.
type check struct {
	id CellID
	at time.Duration
}

// maxChecks bounds the pending checks; counts beyond it are not restored.
const maxChecks = 1 << 20

// check remembers a sum that another region sent.
func (r *restoration) check(id CellID, at time.Duration) {
	if len(r.checks) < maxChecks {
		r.checks = append(r.checks, check{id, at})
	}
}

// restore makes the due checks. It returns the restored hits by check. In a
// region that counts in two hops it checks the keys that this daemon
// aggregates: of others it lacks counts. A region that takes another daemon for
// the aggregator, since it does not know all members yet, sends its sums again
// when it does.
func (r *restoration) restore(s *state, roles *roles, now time.Duration) (gains []uint64) {
	n := 0
	for n < len(r.checks) && r.checks[n].at <= now {
		if roles.two && roles.own(r.checks[n].id.Key) != roles.self.ID {
			r.passed = true
			n++
			continue
		}
		if gain := r.restoreOne(s, r.checks[n].id, now); gain > 0 {
			gains = append(gains, gain)
		}
		n++
	}
	if n > 0 {
		r.checks = append(r.checks[:0], r.checks[n:]...)
	}
	return gains
}

// recheck checks the sums that were passed over again, after the work of the
// region was assigned anew: their aggregator may have ended before it checked
// them, and other regions need not send them again.
func recheck(e *Engine, now time.Duration) {
	if !e.restoration.passed {
		return
	}
	e.restoration.passed = false
	for i := range int32(e.state.cells.used) {
		if c := e.state.cells.at(i); c.used && c.Kind == RegionSum && c.Incarnation == e.region {
			e.restoration.check(c.id(), now+e.cfg.settleTime())
		}
	}
}

func (r *restoration) restoreOne(s *state, id CellID, now time.Duration) (gain uint64) {
	sent := s.find(id)
	if sent == none {
		return 0
	}
	v := s.cells.at(sent).Value
	known, _ := s.sum(s.cells.at(sent))
	if crdt.Sum(v).Compare(crdt.Sum(known)) <= 0 {
		return 0
	}
	lost := CellID{Key: id.Key, Window: id.Window, Kind: Daemon, Incarnation: r.lost}
	i := s.find(lost)
	if i == none {
		if i = s.add(lost, *s.meta(s.cells.at(sent))); i == none {
			return 0
		}
	}
	c := s.cells.at(i)
	was := c.Value
	// Refunds that are not known were of hits that are not known either: they
	// are restored in pairs, so the sum covers the one that was sent back and
	// never falls.
	refunded := v.N - min(v.N, known.N)
	gain = max(v.P-known.P, refunded)
	is := crdt.PN{P: sat.Add(was.P, gain), N: sat.Add(was.N, refunded)}
	s.set(c, is)
	c.source = 0 // the peer that sent what was restored before lacks this
	s.touch(i, now)
	r.changes = append(r.changes, Change{Key: c.Key, Window: c.Window, Span: *s.meta(c), at: c.key, cell: i, Gain: gain, Less: is.N - was.N})
	return gain
}

// Restored returns the changes by restored counts since the last call.
func (e *Engine) Restored() []Change {
	out := e.restoration.changes
	e.restoration.changes = nil
	return out
}
