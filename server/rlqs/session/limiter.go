package session

import (
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// Limiter charges and refunds the hits of buckets. Its errors end the stream.
type Limiter interface {
	// Look returns the state of the limit of a bucket, and charges nothing.
	Look(id ID) (Quota, error)
	// Take charges n hits, all or none. The receipt is without hits for none,
	// and for hits that cannot be refunded. ends is Quota.Ends of the window
	// that they were charged in.
	Take(id ID, n uint64) (taken bool, r node.Receipt, ends time.Duration, err error)
	// Refund gives up to n hits of a receipt back, once.
	Refund(r *node.Receipt, n uint64)
}

// Quota is the state of a limit for a bucket.
type Quota struct {
	// Unlimited is set if no rule limits the bucket. Shadow is set if the limit
	// admits everything. Admitted hits are charged nevertheless.
	Unlimited, Shadow bool
	// Limit is the hits of a window, or the burst of a bucket, and Remaining
	// those that fit now.
	Limit, Remaining uint64
	// Retry is the time until a hit fits, if none does; 0 for never.
	Retry time.Duration
	// Ends is the time until the fixed or sliding window ends that hits are
	// counted in now, and Window its length; 0 for logs and buckets.
	Ends, Window time.Duration
	// Span is the time in which the whole limit comes back: the window of a
	// log, and the time in which an empty bucket fills. 0 for windows.
	Span time.Duration
}

// ID is the id of a bucket: its entries in the order of their keys.
type ID []rules.Entry

// Usage is the report on one bucket.
type Usage struct {
	ID ID
	// Allowed and Denied are requests since the last report on the bucket.
	Allowed, Denied uint64
	// Elapsed is the time since then as the client measured it, perhaps in
	// whole seconds, rounded down. A report that came later than it states is
	// late. So nothing comes back of a client that states none.
	Elapsed time.Duration
}

// Kind is what an Action commands.
type Kind uint8

// The kinds of actions.
const (
	Tokens   Kind = iota // admit up to Hits requests
	AllowAll             // admit everything
	DenyAll              // deny everything
	Abandon              // forget the bucket
)

// Action is a command to the client for one bucket.
type Action struct {
	ID   ID
	Kind Kind
	// Hits belongs to Tokens. Serial differs between two assignments of a
	// bucket that follow each other: one with another serial replaces the
	// assignment before, one with the same makes it last longer.
	Hits   uint64
	Serial uint32
	// TTL is in whole seconds, as Envoy reads no parts of them; 0 for Abandon.
	TTL time.Duration
}
