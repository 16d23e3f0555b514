package replica

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

// departureWait bounds the wait for the last acknowledgements of a process that
// leaves.
const departureWait = 2 * time.Second

// stopWait bounds the wait after that for the record of the rights agent.
const stopWait = time.Second

// Rights is the rights agent of a process that leaves, see agent.Agent.
type Rights interface {
	Left() bool
	Stop()
	Stopped() bool
}

// Departure is the end of a process that has given up its work: its peers
// acknowledge its last counts, and an epoch without it is settled; its rights
// end, and then it ends. Before it the driver calls Node.Leave on all shards
// and Agent.Leave, and finishes the calls under way.
type Departure struct {
	rights Rights
	// heads is by shard, the latest version for each peer, counted from the
	// beginning of a resync: another one may begin.
	heads []map[crdt.Incarnation]uint64
	until time.Duration
}

// Depart begins the departure of a process that decides no call any more. links
// returns the links of a shard; rights is nil for a process without rights.
// Later versions of counts do not matter.
func Depart(at time.Duration, shards int, links func(shard int) []node.Link, rights Rights) Departure {
	d := Departure{rights: rights, heads: make([]map[crdt.Incarnation]uint64, shards), until: at + departureWait}
	for i := range d.heads {
		d.heads[i] = make(map[crdt.Incarnation]uint64)
		for _, l := range links(i) {
			d.heads[i][l.Peer.ID] = l.Head - l.Base
		}
	}
	return d
}

// Over reports whether the process may end now: all peers that are still live
// and not silent have acknowledged its counts, and its rights have ended; or it
// has waited long enough. A peer that is partitioned, or leaves too, does not
// delay it further. It stops the agent, so the driver takes a turn of it.
func (d *Departure) Over(at time.Duration, links func(shard int) []node.Link) (over, acknowledged bool) {
	acknowledged = d.acknowledged(links)
	late := at >= d.until
	if d.rights == nil {
		return acknowledged || late, acknowledged
	}
	if !late && !(acknowledged && d.rights.Left()) {
		return false, acknowledged
	}
	d.rights.Stop()
	return d.rights.Stopped() || at >= d.until+stopWait, acknowledged
}

func (d *Departure) acknowledged(links func(shard int) []node.Link) bool {
	for i, heads := range d.heads {
		for _, l := range links(i) {
			head, ok := heads[l.Peer.ID]
			if ok && !l.Silent && l.Age >= 0 && l.Acked < l.Base+head {
				return false
			}
		}
	}
	return true
}
