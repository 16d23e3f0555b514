package api

import (
	"context"

	"github.com/georld/rld/server/message"
)

// OutboxBytes is outboxBytes, for the bound on what waits for a client.
const OutboxBytes = outboxBytes

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting

// Unsent is unsent.
type Unsent struct{ *unsent }

// NewUnsent returns the unsent answers of a stream.
func NewUnsent(ctx context.Context) Unsent {
	return Unsent{&unsent{Buffers: new(message.Buffers), ctx: ctx}}
}

// Encode is encode.
func (u Unsent) Encode(b *[]byte) *message.Encoded { return u.encode(b) }

// End is end.
func (u Unsent) End() { u.end() }
