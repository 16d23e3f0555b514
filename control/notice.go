package control

import (
	"fmt"
	"slices"
	"time"
)

// notices turns changes of the state into events: of the quorum, and of
// overrides that end.
type notices struct {
	node *Node
	// led is when a leader was known, or when the node began to look; lost
	// reports that its absence is an event already.
	led         time.Duration
	looks, lost bool
	// seen is the greatest clock of a look at the overrides: those that ended
	// before the start are no events.
	seen int64
}

// leaderless is how long no leader is known before that is an event, in least
// election timeouts: a few elections may fail.
const leaderless = 5

// look is the time between two looks at the overrides, in milliseconds.
const look = 1_000

// turn looks at the state.
func (x *notices) turn() {
	n := x.node
	if n.record == nil || !x.looks {
		x.led, x.seen, x.looks = n.at, n.wall, true
		return
	}
	switch known := n.leader() != (ID{}); {
	case known && x.lost:
		n.events.Add(QuorumRegained, "", fmt.Sprintf("a leader is known, %s", n.votersText()))
		x.led, x.lost = n.at, false
	case known:
		x.led = n.at
	case !x.lost && n.at-x.led >= leaderless*n.cfg.election():
		n.events.Add(QuorumLost, "", fmt.Sprintf("no leader is known for %s, %s", n.at-x.led, n.votersText()))
		x.lost = true
	}
	x.expire()
}

// expire makes an event of each override that ended since the last look, and
// that no command ended.
func (x *notices) expire() {
	n, from := x.node, x.seen
	if n.wall < from+look {
		return
	}
	x.seen = n.wall
	for i := range n.record.Limits.Overrides {
		o := &n.record.Limits.Overrides[i]
		if o.Ended == nil && !o.Reset && o.Until > from && o.Until <= n.wall {
			n.events.Add(OverrideExpired, "", fmt.Sprintf("%v of version %v had %v until %s", &o.Target, o.Version, &o.Setting, when(o.Until)))
		}
	}
}

// votersText describes how many voters are live.
func (n *Node) votersText() string {
	return fmt.Sprintf("%d of %d voters are live", n.liveVoters(), n.record.Voting())
}

// liveVoters returns how many voters are live, as this daemon knows.
func (n *Node) liveVoters() int {
	live := 0
	for _, v := range n.record.Voters {
		p := n.byID(v.Daemon)
		if !v.Learner && (v.Daemon == n.self.id() || p != nil && n.at-p.heardAt < n.cfg.patience(len(n.peers))) {
			live++
		}
	}
	return live
}

// generations makes events of the generations of regions that the next record
// has and the one here does not, and the other way round.
func (x *notices) generations(next *Record) {
	n := x.node
	if n.record == nil {
		return // Begun
	}
	lacks := func(r *Record, g Region) bool {
		return !slices.ContainsFunc(r.Regions, func(o Region) bool { return o.Name == g.Name && o.Generation == g.Generation })
	}
	for _, g := range n.record.Regions {
		if lacks(next, g) {
			n.events.Add(GenerationEnded, "", fmt.Sprintf("region %s since version %v", g.Name, g.Generation))
		}
	}
	for _, g := range next.Regions {
		if lacks(n.record, g) {
			n.events.Add(GenerationBegun, "", fmt.Sprintf("region %s since version %v, with %d daemons", g.Name, g.Generation, len(g.Founders)))
		}
	}
}
