package replica

import (
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// TestLeastMargin: a call for an owner in another region waits for the round
// trip and the margin at least, though its time may be up by wakeGrain before.
func TestLeastMargin(t *testing.T) {
	const trip, margin = 90 * time.Millisecond, 5 * time.Millisecond
	r := newReach(&Config{Region: "us", ForwardTimeout: 50 * time.Millisecond, ForwardMargin: margin})
	owner := gossip.Peer{ID: 7, Name: "eu-0", Region: "eu"}
	r.Peers(0, []gossip.Peer{owner})
	r.Measure([]node.Link{{Peer: owner, RTT: trip}})
	wait, open := r.Routes().Reach(nil, owner.ID)
	if !open || wait-wakeGrain < trip+margin {
		t.Errorf("a call waits %v, want %v and %v", wait, trip+margin, wakeGrain)
	}
}
