package telemetry

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// Cluster tells how a daemon is one of many. It is asked once a scrape, so
// that what one scrape says belongs together. Implementations are safe for
// concurrent use and do not wait for peers.
type Cluster interface {
	ClusterStats() ClusterStats
}

// ClusterStats is a snapshot. Counts are totals since the process began and
// never go down. It is only read, never kept beyond the scrape; a nil map or
// list is an empty one.
type ClusterStats struct {
	// Region is the daemon's own. Regions are all that are configured: each
	// has its series also while nobody of it is live.
	Region  string
	Regions []string

	// Members are the live ones of all regions, the daemon itself included.
	Members []gossip.Member
	// Links are what is known of the peers: where shards differ, the oldest.
	Links []node.Link
	// ClockOffsets is how far the peers' clocks are ahead, negative for
	// behind; of those that are not known there is none.
	ClockOffsets map[crdt.Incarnation]time.Duration

	// Dialed are the streams to peers by state, one a target. AcceptedStreams
	// is how many streams from peers are up.
	Dialed          DialedStreams
	AcceptedStreams int
	// Sent and Received are the frames of all streams.
	Sent, Received Traffic
	// DroppedFrames is how many were not sent.
	DroppedFrames uint64
	// RefusedFrames and RefusedHandshakes count what this daemon refused of
	// peers, RefusedMembers what its membership refused, and Rejected the
	// refusals and drops of its own streams by peers, all by reason. Reasons
	// are a fixed set of words; one that is here with 0 begins its series at
	// 0.
	RefusedFrames, RefusedHandshakes, RefusedMembers, Rejected map[string]uint64
	// Rejoins counts the rounds in which seeds of the region were asked, and
	// RejoinFailures those of them in which none answered.
	Rejoins, RejoinFailures uint64

	// MergedCells counts the cells of the messages that were taken in,
	// whether or not they told anything new.
	MergedCells uint64
	// Cells is how many replicated cells are held whose label is not over.
	Cells int
	// Events counts what happened to the replica, by the String of
	// gossip.EventKind. Other names are left out.
	Events map[string]uint64
	// Rules is the hash of the rules in force.
	Rules uint64
}

// DialedStreams counts the targets of a daemon by the state of the stream to
// them. Each target is in one of the states.
type DialedStreams struct {
	// Connected streams are up. Connecting is the first attempt or a later
	// one under way.
	Connected, Connecting int
	// Backoff waits for the next attempt after a failure; Refused does too,
	// after a handshake that one of the two refused.
	Backoff, Refused int
}

// Traffic counts frames and their bytes as they went over streams: compressed
// where they were. What TLS, HTTP/2 and TCP add is not in it.
type Traffic struct {
	Frames, Bytes uint64
}
