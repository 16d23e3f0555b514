package sim

import (
	"slices"
	"strings"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
)

// agentEvents names what happened to offices, for Result.Seen.
func (w *World) agentEvents(seen map[string]uint64) {
	for k, n := range w.agents {
		if n > 0 {
			seen["rights_"+strings.ReplaceAll(agent.EventKind(k).String(), " ", "_")] = n
		}
	}
}

// rightsResult sums up what became of rights, nil where no rule has any.
func (w *World) rightsResult() *RightsResult {
	if !w.cfg.HasRights() {
		return nil
	}
	sum := w.ended
	for _, d := range w.daemons {
		for _, n := range d.Nodes {
			sum.Add(n.Stats())
		}
	}
	r := &RightsResult{
		Policy: w.cfg.Policy.String(), Given: sum.Given, Received: sum.Received, Donations: w.donations,
		ByEstimate: sum.Refusals[node.EstimateGate], ByRights: sum.Refusals[node.RightsGate],
		ByBoth: sum.Refusals[node.BothGates], Epochs: w.agents[agent.Proposed],
	}
	if w.tallies.decisions > 0 {
		r.PerDecision = float64(r.Donations) / float64(w.tallies.decisions)
	}
	return r
}

// donates reports whether a message is sent because of a donation.
func donates(m *gossip.Message) bool {
	return m.Expedited && (len(m.RightsMessages) > 0 ||
		slices.ContainsFunc(m.Cells, func(c gossip.Cell) bool { return c.Kind == gossip.Given }))
}
