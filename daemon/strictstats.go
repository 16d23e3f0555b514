package daemon

import (
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/sticky/quorum"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/telemetry"
)

// StrictStats returns the numbers of now. See telemetry.Strict.
func (s *strict) StrictStats() telemetry.StrictStats {
	n := s.acceptor
	status := n.status()
	out := telemetry.StrictStats{
		Node: s.engine.StrictStats(), Parked: s.lot.size(), NoPlace: s.lot.full.Load(),
		Frames: s.mail.sent.Load(), DroppedItems: s.mail.dropped.Load(),
		Layout: status.Layout.Number, Replica: s.Routing().Seated(), Voting: status.Voting, Ledgers: status.Ledgers,
		Accepts: map[string]uint64{"held": status.Stats.Votes},
		Journal: telemetry.Journal{
			Bytes: n.counts.size.Load(), Writes: n.counts.writes.Load(), Entries: n.counts.entries.Load(),
			Failures: n.counts.failures.Load(), Rewrites: n.counts.compactions.Load(),
			Writing: time.Duration(n.counts.writing.Load()),
		},
		Transitions: map[string]uint64{},
	}
	for why := sticky.NotOwner; why <= sticky.MaxReason; why++ {
		if k := status.Stats.Refusals[why]; k > 0 {
			out.Accepts[why.String()] = k
		}
	}
	for _, c := range s.circuits() {
		out.Circuits = append(out.Circuits, telemetry.Circuit{Region: c.region, Owner: c.name, State: int(c.state)})
	}
	for i := range s.transitions {
		out.Transitions[breaker.State(i).String()] = s.transitions[i].Load()
	}
	return out
}

// status describes the replica, the zero value before it is open.
func (n *acceptorLoop) status() (out quorum.Status) {
	n.do(func(r *quorum.Acceptor) { out = r.Status() })
	return out
}
