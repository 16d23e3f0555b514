package daemon

import (
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/telemetry"
)

// StrictStats returns the present numbers. See telemetry.Options.
func (s *strict) StrictStats() telemetry.StrictStats {
	n, status := s.acceptor, s.acceptor.status()
	out := telemetry.StrictStats{
		Node: s.engine.StrictStats(), Layout: status.Layout.Number,
		Voter: s.Routing().IsVoter(), Voting: status.Voting, Keys: status.Keys,
		Replies: map[string]uint64{"accepted": status.Stats.Votes}, Transitions: map[string]uint64{},
	}
	n.mu.Lock()
	out.Journal = n.counts
	n.mu.Unlock()
	s.With(func(p *replica.Process) {
		out.Pending, out.Unqueued = p.Waiters.Len(), p.Waiters.Refused()
		out.Frames, out.DroppedItems = p.Outbox.Sent(), p.Outbox.Dropped()
		for _, to := range [...]breaker.State{breaker.Closed, breaker.HalfOpen, breaker.Open} {
			out.Transitions[to.String()] = p.Reach.Transitions(to)
		}
		for _, c := range p.Reach.Circuits(s.now()) {
			out.Breakers = append(out.Breakers, telemetry.Breaker{Region: c.Region, Owner: c.Name, State: int(c.State)})
		}
	})
	for why := sticky.NotOwner; why <= sticky.MaxReason; why++ {
		if k := status.Stats.Refusals[why]; k > 0 {
			out.Replies[why.String()] = k
		}
	}
	return out
}

// Acceptor is part of report.Strict.
func (s *strict) Acceptor(do func(*quorum.Acceptor)) { s.acceptor.do(do) }

// Expedite is part of report.Strict.
func (s *strict) Expedite() { s.acceptor.expedite() }

// Journal is part of report.Strict.
func (s *strict) Journal() (bytes int64, fault string) {
	n := s.acceptor
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts.Bytes, n.fault
}

// status describes the acceptor, the zero value before it is open.
func (n *acceptorLoop) status() (out quorum.Status) {
	n.do(func(r *quorum.Acceptor) { out = r.Status() })
	return out
}
