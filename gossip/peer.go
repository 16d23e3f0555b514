package gossip

import "github.com/georld/rld/crdt"

// Peer is one live incarnation according to membership.
type Peer struct {
	// ID is the incarnation it counts under. A restart has another one.
	ID crdt.Incarnation
	// Name is the daemon's name, the same across restarts.
	Name string
	// Region is the name of its region.
	Region string
	// Ready reports whether it takes its share of the region's work, according
	// to membership. Its messages are more recent.
	Ready bool
}

// Member is a live incarnation with its address.
type Member struct {
	Peer
	// Addr is the address for streams of other daemons, host:port.
	Addr string
	// Build is its version, for status pages.
	Build string
}
