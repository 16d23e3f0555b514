package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
)

// Refund takes back up to n hits that the daemon itself counted under a key's
// label, and returns how many: never more than it counted there and did not
// refund yet, and none of a count that is saturated. Others hear of it as of
// hits, though never in a hurry. That a refund is applied once is up to the
// caller.
func (e *Engine) Refund(now time.Duration, k crdt.Key, window int64, n uint64) uint64 {
	i := e.state.find(CellID{Key: k, Window: window, Kind: Daemon, Incarnation: e.self.ID})
	if i == none {
		return 0
	}
	c := &e.state.cells[i]
	v := c.Value
	if v.P >= crdt.Max {
		return 0
	}
	if n = min(n, v.P-min(v.N, v.P)); n == 0 {
		return 0
	}
	v.N += n
	e.state.set(i, v)
	if e.cfg.Quiet > 0 && e.cfg.Quiet.Milliseconds() <= c.WindowLength/4 {
		e.state.wait(i, now)
	} else {
		e.state.touch(i, now)
	}
	return n
}
