package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/gossip"
)

// A region may count hits once more each time that it restores, and no more
// than that: not twice for what it restores at one instant, nor for what
// another region does.
func TestInventedAuditorFollowsWhatIsRestored(t *testing.T) {
	r := newRig(t, small(t), time.Second)
	from, to := r.w.daemons[0], r.w.daemons[1]
	for range 3 {
		r.decide(from, quietKey, true)
	}
	hear := func(p uint64) {
		r.pass(time.Millisecond)
		m := r.message(from, to)
		m.Cells = []gossip.Cell{r.cell(quietKey, gossip.LostIncarnation(from.Region), p)}
		m.Hi++
		r.step(to, m)
	}
	restore := func(d *Daemon) {
		for _, a := range r.w.auditors {
			a.Happened(r.w, d, gossip.Event{Kind: gossip.CountsRestored, Amount: 3})
		}
	}
	hear(3)
	restore(from)
	hear(6)
	r.clean("invented")
	restore(from)
	restore(to) // of the same region, at the same instant
	r.pass(time.Millisecond)
	restore(r.w.daemons[2]) // of another
	hear(9)
	r.clean("invented")
	hear(10)
	r.caught("invented")
}
