package gossip

import (
	"slices"

	"github.com/georld/rld/internal/rendezvous"

	"github.com/georld/rld/crdt"
)

// team is the daemons of a region that share its work, as seen from here.
type team struct {
	region      string
	incarnation crdt.Incarnation
	ids         []crdt.Incarnation // ascending
	names       []uint64           // hashes, in the order of ids
}

// add puts a daemon into the team.
func (t *team) add(id crdt.Incarnation, name string) {
	i, _ := slices.BinarySearch(t.ids, id)
	t.ids = slices.Insert(t.ids, i, id)
	t.names = slices.Insert(t.names, i, rendezvous.Hash(name))
}

// aggregator returns who sums up a key for the region: the daemon with the
// greatest hash of name and key (rendezvous hashing, Thaler and Ravishankar,
// 1998), so that the loss of one moves only its keys. 0 for an empty team.
func (t *team) aggregator(k crdt.Key) crdt.Incarnation {
	var best uint64
	winner := crdt.Incarnation(0)
	for i, name := range t.names {
		if h := rendezvous.Mix(name ^ k.Hi ^ rendezvous.Mix(k.Lo)); h > best || winner == 0 {
			best, winner = h, t.ids[i]
		}
	}
	return winner
}

// equal reports whether two teams share the work alike.
func (t *team) equal(o *team) bool { return slices.Equal(t.ids, o.ids) }
