package link

import (
	"fmt"
	"net"

	"github.com/georld/rld/internal/connlimit"
)

// ConnectionsNeeded is how many open files accepted connections need at most.
func ConnectionsNeeded(least int) connlimit.Need { return connlimit.NeedOf(least, maxConnections) }

// BoundsOf divides the open files for accepted connections.
func BoundsOf(files int) connlimit.Bounds { return connlimit.BoundsOf(files, maxConnections) }

// bounded returns a listener whose connections are bounded. One without a hello
// never takes the room of a peer: it is established once its peer has proven
// its id, and stays then.
func (h *Host) bounded(lis net.Listener) net.Listener {
	bounds := h.config.Bounds
	if bounds == (connlimit.Bounds{}) {
		bounds = BoundsOf(ConnectionsNeeded(0).Most)
	}
	return connlimit.New(lis, connlimit.Options{
		Name: "peer", Bounds: bounds, Keep: true, Handshake: closeWithin,
		Closed: func(r connlimit.Reason, remote net.Addr) {
			no := &Refused{Reason: ReasonConnections}
			why := "it has no room for another connection"
			switch r {
			case connlimit.ReasonHandshake:
				no.Reason, why = ReasonHello, errNoHello.Error()
			case connlimit.ReasonUnfinished:
				why = "a newer connection took its place, since it had not finished its handshake"
			}
			no.Text = fmt.Sprintf("%s closes a connection from %s: %s", h.config.Self(), remote, why)
			h.countRefused(no, remote.String(), &proof{})
		},
	})
}

// established makes the connection of a remote address that of a peer. It
// returns false when there is no room for it.
func established(remote net.Addr) bool {
	c := connlimit.Of(remote)
	return c == nil || c.Finish()
}
