package message

import (
	"context"

	"google.golang.org/grpc/peer"

	"github.com/georld/rld/internal/connlimit"
)

// heldFrom is the size below which bytes are not worth counting: a call takes
// more itself.
const heldFrom = 4 << 10

// Held counts the bytes of a request from when it was read until Release. It is
// a part of requests.
type Held struct {
	ctx     context.Context // nil for a part of another request
	release func()
}

// From sets the context of the call of the request.
func (h *Held) From(ctx context.Context) { h.ctx = ctx }

// Keep counts the bytes of the request.
func (h *Held) Keep(bytes int) {
	if bytes >= heldFrom && h.ctx != nil && h.release == nil {
		h.release = Hold(h.ctx, bytes)
	}
}

// Release ends the count.
func (h *Held) Release() {
	if h.release != nil {
		h.release()
	}
	*h = Held{}
}

// Hold counts bytes that a call keeps, of its request or of its answers, as
// ones of its connection, until release is called. Few bytes are not counted.
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
