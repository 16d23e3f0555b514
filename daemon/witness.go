package daemon

import (
	"context"
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
	adminapi "github.com/georld/rld/server/admin/api"
)

// witness is the engine of a daemon that only votes, for its callers.
type witness struct{ *Engine }

// Check is part of server.Engine.
func (witness) Check(context.Context, *node.Call) error { return server.ErrWitness }

// TryCheck is part of api.Engine.
func (witness) TryCheck(*node.Call) (decided bool, err error) { return true, server.ErrWitness }

// RefundHits is part of rls.Engine.
func (witness) RefundHits(*node.Call) error { return server.ErrWitness }

// noBudget answers /v1/budget at a daemon that only votes.
func (d *daemon) noBudget(q adminapi.BudgetQuery) (adminapi.BudgetAnswer, error) {
	if q.Rule != "" {
		return adminapi.BudgetAnswer{}, server.ErrWitness
	}
	return adminapi.BudgetAnswer{Region: d.Config.Region, Daemon: d.Config.Name, VoterOnly: true}, nil
}

// deciding removes the witnesses from some members: they keep no counts, hold
// no rights and own no keys. A witness gives its own engine no peers.
func (c *cluster) deciding(members []gossip.Member) []gossip.Member {
	if c.witness {
		return slices.DeleteFunc(members, func(m gossip.Member) bool { return m.ID != c.self.ID })
	}
	if c.control == nil {
		return members
	}
	var all []crdt.Incarnation
	c.control.peek(func(n *control.Node) { all = control.Witnesses(n) })
	return slices.DeleteFunc(members, func(m gossip.Member) bool { return slices.Contains(all, m.ID) })
}
