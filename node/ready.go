package node

import (
	"time"

	"github.com/georld/rld/gossip"
)

// Ready is what a replica wants done.
type Ready struct {
	// Messages are to be sent, best effort and in any order. They are the
	// caller's.
	Messages []gossip.Message
	// Events happened since the last call. They are bounded: beyond 1,024
	// between two calls they are dropped.
	Events []gossip.Event
	// Wake is the monotonic time at which Tick has work, later than the
	// latest Instant seen.
	Wake time.Duration
}
