package api

import (
	"cmp"
	"container/heap"
	"sync"
	"time"

	"github.com/georld/rld/node"
)

// maxRefunded bounds the refunds that are remembered: some 50 MB of them. A
// refund is remembered until its hits weigh nothing any more, so that with
// windows of a minute 17,000 a second fit, and 290 with windows of an hour.
const maxRefunded = 1 << 20

// refundGrace is for how long a refund is remembered beyond that, in
// milliseconds: the clock that windows are cut from may be behind.
const refundGrace = int64(time.Minute / time.Millisecond)

// ledger ensures that a token is refunded once. It is safe for concurrent use.
// The zero value with a bound is ready.
//
// It forgets only expired tokens, by the same clock that judges tokens, and
// that clock never goes back: so no token counts twice, whatever wall clocks
// do.
type ledger struct {
	max int // refunds that are remembered at a time

	mu   sync.Mutex
	now  int64 // the latest instant, Unix milliseconds
	seen map[uint64]struct{}
	ends ends
}

// entry is the outcome of entering a token.
type entry uint8

const (
	entered entry = iota // the first time: it is to be done
	already              // it was entered before
	over                 // its hits weigh nothing any more
	full                 // no room to remember it: it must not be done
)

// enter records a token's number. until is when its hits stop counting, now the
// wall clock, both in Unix milliseconds.
func (g *ledger) enter(number uint64, until, now int64) entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = max(g.now, now)
	for len(g.ends) > 0 && g.ends[0].until < g.now-refundGrace {
		delete(g.seen, heap.Pop(&g.ends).(end).number)
	}
	switch _, known := g.seen[number]; {
	case until < g.now-refundGrace:
		return over
	case known:
		return already
	case len(g.seen) >= g.max:
		return full
	}
	if g.seen == nil {
		g.seen = map[uint64]struct{}{}
	}
	g.seen[number] = struct{}{}
	heap.Push(&g.ends, end{until, number})
	return entered
}

// end is when a number may be forgotten.
type end struct {
	until  int64
	number uint64
}

// ends is a heap, the earliest first.
type ends []end

func (h ends) Len() int { return len(h) }

func (h ends) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].until, h[j].until), cmp.Compare(h[i].number, h[j].number)) < 0
}

func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is heap's.
func (h *ends) Push(x any) { *h = append(*h, x.(end)) }

// Pop is heap's.
func (h *ends) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// millis is the wall clock in Unix milliseconds.
func millis(at node.Instant) int64 { return at.Wall / int64(time.Millisecond) }
