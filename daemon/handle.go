package daemon

import (
	"errors"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
)

// errKilled is the cause of the end of a daemon after Kill.
var errKilled = errors.New("killed")

// Handle controls a running daemon. It is safe for concurrent use, also after
// the daemon has ended.
type Handle struct {
	d *daemon
	e *edges
}

// GRPC returns the bound address of the gRPC listener.
func (h *Handle) GRPC() string { return h.e.grpcAddr() }

// HTTP returns the bound address of the HTTP listener.
func (h *Handle) HTTP() string { return h.e.httpAddr() }

// Admin returns the bound address of the admin listener.
func (h *Handle) Admin() string { return h.e.adminAddr() }

// AdminSocket returns the path of the unix socket for commands, "" for none.
func (h *Handle) AdminSocket() string { return socketPath(h.e.adminUDSLis) }

// Peer returns the bound address of the peer listener, "" for a daemon alone.
func (h *Handle) Peer() string { return addrOf(h.e.peerLis) }

// Swim returns the bound address of membership, "" for a daemon alone.
func (h *Handle) Swim() string {
	if h.d.cluster == nil {
		return ""
	}
	return h.d.cluster.swim.Addr()
}

// Engine returns the engine of the daemon.
func (h *Handle) Engine() *Engine { return h.d.engine }

// Ready returns why the daemon is not ready, nil when it is.
func (h *Handle) Ready() error { return h.d.ready() }

// Members returns the live daemons of all regions that this one knows.
func (h *Handle) Members() []gossip.Member {
	if h.d.cluster == nil {
		return nil
	}
	return h.d.cluster.all()
}

// Links describes the view of each peer.
func (h *Handle) Links() []node.Link { return h.d.engine.Links(h.d.engine.Now()) }

// Begin asks for the founding of the first cluster of its daemons, as rld
// cluster init does, and reports whether it has begun. A daemon alone has none.
func (h *Handle) Begin() bool {
	if h.d.control == nil {
		return false
	}
	a, err := h.d.report.InitCluster(api.InitRequest{NothingRanBefore: true})
	return err == nil && a.Cluster.Begun
}

// HoldsRights reports whether the daemon holds rights, and has opened its
// journal of strict keys.
func (h *Handle) HoldsRights() bool {
	return h.d.agent != nil && h.d.agent.Status().Holds && h.d.strict.acceptor.begun()
}

// Reload reads the cluster secret, the membership keys and the limits again
// (SIGHUP). It returns when they are in force or refused, which the log
// reports.
func (h *Handle) Reload() {
	if h.d.rotation != nil {
		h.d.rotation.Look()
	}
	if h.d.keys != nil {
		h.d.keys.Look(true)
	}
	h.d.callers.Reload()
	h.d.limits.reload()
}

// Kill ends the daemon at once, like the end of its process: it drains nothing
// and sends nothing. Run returns.
func (h *Handle) Kill() { h.d.kill(errKilled) }
