package replica

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// leaving is a process that leaves, with the links of its shards.
type leaving struct {
	Departure
	links [][]node.Link // by shard
}

// leave begins a departure at time 0, with counts of versions 1 to 5 and an
// acknowledgement of 3 from each of two peers.
func leave(shards int) *leaving {
	x := &leaving{}
	for range shards {
		var links []node.Link
		for peer := range 2 {
			links = append(links, node.Link{Peer: gossip.Peer{ID: crdt.Incarnation(peer + 2)}, Acked: 3, Head: 5})
		}
		x.links = append(x.links, links)
	}
	x.Departure = Depart(0, shards, x.of, nil)
	return x
}

func (x *leaving) of(shard int) []node.Link { return x.links[shard] }

// want checks what the departure reports at a time.
func (x *leaving) want(t *testing.T, at time.Duration, over, acknowledged bool) {
	t.Helper()
	if gotOver, got := x.Over(at, x.of); gotOver != over || got != acknowledged {
		t.Fatalf("after %v: over %v, acknowledged %v", at, gotOver, got)
	}
}

// TestDepartureWaitsForAcknowledgements ends a process once each peer has
// acknowledged the counts of each shard, and no sooner.
func TestDepartureWaitsForAcknowledgements(t *testing.T) {
	for first := range 3 {
		x := leave(3)
		for i := range x.links {
			shard := x.links[(first+i)%len(x.links)]
			for k := range shard {
				for shard[k].Acked < 5 {
					x.want(t, time.Millisecond, false, false)
					shard[k].Acked++
				}
			}
		}
		x.want(t, time.Millisecond, true, true)
	}
}

// TestDepartureIgnoresLaterCounts: a process that leaves decides nothing more,
// but it still forwards counts of others.
func TestDepartureIgnoresLaterCounts(t *testing.T) {
	x := leave(1)
	for k := range x.links[0] {
		x.links[0][k].Acked, x.links[0][k].Head = 5, 9
	}
	x.want(t, 0, true, true)
}

// TestDepartureWaitsForResyncs: a resync sends all cells again under later
// versions, so that an acknowledgement of former ones proves nothing.
func TestDepartureWaitsForResyncs(t *testing.T) {
	x := leave(2)
	for i := range x.links {
		for k := range x.links[i] {
			x.links[i][k].Acked = 5
		}
	}
	x.want(t, 0, true, true)
	resync := &x.links[1][0]
	resync.Base, resync.Head = 5, 10
	for resync.Acked < 10 {
		x.want(t, 0, false, false)
		resync.Acked++
	}
	x.want(t, 0, true, true)
}

// TestDepartureIsBounded: peers that are silent or were never in reach do not
// delay the end, and others no longer than departureWait.
func TestDepartureIsBounded(t *testing.T) {
	x := leave(2)
	for i := range x.links {
		x.links[i][0].Silent = true
		x.links[i][1].Age = -1
	}
	x.want(t, 0, true, true)
	x.links[1][0].Silent = false
	x.want(t, departureWait-1, false, false)
	x.want(t, departureWait, true, false)
}
