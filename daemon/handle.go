package daemon

import (
	"errors"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/telemetry"
)

// errKilled is why a daemon ends that was killed by its handle.
var errKilled = errors.New("killed")

// Handle controls a running daemon for a program that embeds it. It is safe for
// concurrent use, also after the daemon has ended.
type Handle struct {
	d *daemon
	e *edges
}

// GRPC returns the bound address of the gRPC listener.
func (h *Handle) GRPC() string { return h.e.grpcAddr() }

// HTTP returns that of the HTTP listener.
func (h *Handle) HTTP() string { return h.e.httpAddr() }

// Admin returns that of the admin listener.
func (h *Handle) Admin() string { return h.e.adminAddr() }

// Peer returns that of the listener for peers, "" for a daemon alone.
func (h *Handle) Peer() string {
	if h.e.peerLis == nil {
		return ""
	}
	return h.e.peerLis.Addr().String()
}

// Swim returns the bound address of membership, "" for a daemon alone.
func (h *Handle) Swim() string {
	if h.d.cluster == nil {
		return ""
	}
	return h.d.cluster.swim.Addr()
}

// Engine returns the engine that decides.
func (h *Handle) Engine() *Engine { return h.d.engine }

// Ready returns why the daemon is not ready, nil when it is.
func (h *Handle) Ready() error { return h.d.ready() }

// Members returns the live daemons of all regions as this one knows them.
func (h *Handle) Members() []gossip.Member {
	if h.d.cluster == nil {
		return nil
	}
	return h.d.cluster.all()
}

// Budget reports how far rules may exceed their limits and how far they did. It
// is empty for a daemon alone.
func (h *Handle) Budget(q api.BudgetQuery) (api.BudgetAnswer, error) {
	if h.d.monitor == nil {
		return api.BudgetAnswer{Alone: true}, nil
	}
	return h.d.budget(q)
}

// Links returns how old the daemon's view of each peer is.
func (h *Handle) Links() []node.Link { return h.d.engine.Links(h.d.engine.Now()) }

// Kill ends the daemon at once, like a kill of its process: it drains nothing,
// sends no last counts and does not announce that it leaves. Run returns.
func (h *Handle) Kill() { h.d.kill(errKilled) }

// budget answers a question about budgets.
func (d *daemon) budget(q api.BudgetQuery) (api.BudgetAnswer, error) {
	out, err := d.monitor.Answer(q)
	out.Daemon = d.cfg.Name
	return out, err
}

// ClusterStats returns the numbers of the cluster as this daemon sees it. See
// telemetry.Cluster. Only a daemon with a region has any.
func (d *daemon) ClusterStats() telemetry.ClusterStats { return d.cluster.status.ClusterStats() }

// ClusterStats returns the numbers of the cluster as this daemon sees it, zero
// for a daemon alone.
func (h *Handle) ClusterStats() telemetry.ClusterStats {
	if h.d.cluster == nil {
		return telemetry.ClusterStats{}
	}
	return h.d.ClusterStats()
}
