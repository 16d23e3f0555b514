package route

import (
	"cmp"
	"slices"

	"github.com/georld/rld/crdt"
)

// Peer is a live daemon of any region.
type Peer struct {
	ID           crdt.Incarnation
	Name, Region string
	// Ready reports that the daemon has recovered its state after its start.
	Ready bool
	// Off reports that its clock is wrong: it owns no keys.
	Off bool
}

// Peers are live daemons, sorted by Sort.
type Peers []Peer

// Sort sorts by region and name. Of two incarnations of one daemon the ready
// one comes first, then the one with the greater ID.
func (p Peers) Sort() {
	slices.SortFunc(p, func(a, b Peer) int {
		if c := cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name)); c != 0 {
			return c
		}
		if a.Ready != b.Ready {
			if a.Ready {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.ID, a.ID)
	})
}

// Find returns the preferred incarnation of a daemon, or the zero value.
func (p Peers) Find(region, name string) Peer {
	i, ok := slices.BinarySearchFunc(p, name, func(p Peer, name string) int {
		return cmp.Or(cmp.Compare(p.Region, region), cmp.Compare(p.Name, name))
	})
	if !ok {
		return Peer{}
	}
	return p[i]
}

// Get returns the peer of an incarnation, or the zero value.
func (p Peers) Get(id crdt.Incarnation) Peer {
	for i := range p {
		if p[i].ID == id {
			return p[i]
		}
	}
	return Peer{}
}
