package gossip

import "slices"

// Links that send in one call of Messages mostly start at the same change. What
// they have in common is found once: remoteChanges for links to other regions,
// regionalCells for links within the region.

// remoteChanges are the changes from one of them on that some peer of another
// region may receive outside a resync.
type remoteChanges struct {
	version uint64 // of the state, 0 for nothing
	first   int32
	cells   []int32
}

// pick appends the changes from first on that a peer receives, at most room of
// them.
func (r *remoteChanges) pick(s *scope, first int32, room int, picked []pick) []pick {
	if r.version != s.state.version || r.first != first {
		*r = remoteChanges{s.state.version, first, r.cells[:0]}
		for i := first; i != none; {
			c := s.state.cells.at(i)
			if s.mayLeave(c) {
				r.cells = append(r.cells, i)
			}
			i = c.at[changeList].next
		}
	}
	for _, i := range r.cells {
		if len(picked) == room {
			break
		}
		if c := s.state.cells.at(i); s.leaves(c) {
			picked = append(picked, s.pick(i, c))
		}
	}
	return picked
}

// regionalCells are those of the latest message of a call to a regional peer.
type regionalCells struct {
	version uint64 // of the state, 0 for none
	picked  []pick
	cells   []Cell
}

// put puts cells into a message of any peer. Messages with the same picks to
// regional peers share the memory of their cells.
func (r *regionalCells) put(s *scope, m *Message, room *cellRoom, picked []pick) {
	if !s.to.local {
		s.put(m, room.take(len(picked)), picked)
		return
	}
	if r.version == s.state.version && slices.Equal(picked, r.picked) {
		m.Cells = r.cells
		return
	}
	r.version, r.picked = s.state.version, append(r.picked[:0], picked...)
	s.put(m, room.take(len(picked)), picked)
	r.cells = m.Cells
}
