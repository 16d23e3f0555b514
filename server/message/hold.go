package message

import (
	"context"

	"google.golang.org/grpc/peer"

	"github.com/georld/rld/internal/connlimit"
)

// heldFrom is the size below which a request is not worth counting: its call
// takes more itself.
const heldFrom = 4 << 10

// Hold counts the bytes of a request that its call keeps while it waits as ones
// of its connection, until release is called.
func Hold(ctx context.Context, bytes int) (release func()) {
	if bytes >= heldFrom {
		if p, ok := peer.FromContext(ctx); ok {
			if c := connlimit.Of(p.Addr); c != nil {
				c.Hold(bytes)
				return func() { c.Hold(-bytes) }
			}
		}
	}
	return func() {}
}
