package gossip

import "github.com/georld/rld/crdt"

// Links to other regions that send in one call of Messages mostly start at the
// same change. What they have in common is found once.

// remoteChanges are the changes from one of them on that some peer of another
// region may receive outside a resync.
type remoteChanges struct {
	version     uint64 // of the state, 0 for nothing
	first, next int32  // next is where the walk over the changes goes on
	cells       []int32
	winners     []crdt.Incarnation // of their keys by region, 0 where not looked for yet
}

// pick appends the changes from first on that a peer receives, at most room of
// them. The walk goes no further than the links need: a peer that is far behind
// has many changes to come.
func (r *remoteChanges) pick(s *scope, first int32, room int, picked []pick) []pick {
	if r.version != s.state.version || r.first != first {
		*r = remoteChanges{s.state.version, first, first, r.cells[:0], r.winners[:0]}
	}
	for n := 0; len(picked) < room && (n < len(r.cells) || r.walk(s)); n++ {
		i := r.cells[n]
		if c := s.state.cells.at(i); !s.held(c) && s.leaves(c, r.winner(s, n, c)) {
			picked = append(picked, s.pick(i, c))
		}
	}
	return picked
}

// winner returns the aggregator of the n-th change's key in the peer's region.
func (r *remoteChanges) winner(s *scope, n int, c *cell) crdt.Incarnation {
	w := &r.winners[n*len(s.roles.regions)+s.to.region]
	if *w == 0 {
		*w = s.roles.winner(s.to.region, s.state.keys.at(c.key))
	}
	return *w
}

// walk finds one more change. It returns false at the last one.
func (r *remoteChanges) walk(s *scope) bool {
	for r.next != none {
		i, c := r.next, s.state.cells.at(r.next)
		r.next = c.change.next
		if s.mayLeave(c) {
			r.cells = append(r.cells, i)
			for range s.roles.regions {
				r.winners = append(r.winners, 0)
			}
			return true
		}
	}
	return false
}
