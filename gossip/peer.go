package gossip

import "github.com/georld/rld/crdt"

// Peer is one live incarnation as membership knows it.
type Peer struct {
	// ID is the incarnation: the slot it counts under. A restart has another.
	ID crdt.Incarnation
	// Name is the daemon's name, the same across restarts.
	Name string
	// Region is the name of its region.
	Region string
	// Ready says that it takes its share of work, as far as membership knows;
	// what its messages say is newer.
	Ready bool
}

// Member is a live incarnation and what is needed to reach it.
type Member struct {
	Peer
	// Addr is where it takes the streams of other daemons, host:port.
	Addr string
	// Build is its version, for people.
	Build string
}
