package node

import (
	"cmp"
	"container/heap"
)

// maxRefunds bounds the refunds that the nodes of a process remember: some
// 50 MB of them. A refund is remembered until its hits weigh nothing any more,
// so that with windows of a minute 17,000 a second fit, and 290 with windows of
// an hour.
const maxRefunds = 1 << 20

// refundGrace is for how long a refund is remembered beyond that, in
// milliseconds: a reload may let hits count longer.
const refundGrace = int64(60_000)

// usedReceipts ensures that a receipt is refunded once. It forgets only expired
// receipts, by the clock that windows are cut from, which never goes back: so
// no receipt counts twice, whatever wall clocks do.
type usedReceipts struct {
	max  int // that are remembered at a time
	seen map[uint64]struct{}
	ends receiptEnds
}

// enter records the use of a receipt at now, in Unix milliseconds, or returns
// why it cannot be used.
func (u *usedReceipts) enter(r *Receipt, now int64) (failed Refunded) {
	for len(u.ends) > 0 && u.ends[0].until < now-refundGrace {
		delete(u.seen, heap.Pop(&u.ends).(receiptEnd).number)
	}
	_, known := u.seen[r.Number]
	switch {
	case r.Until < now-refundGrace:
		failed.Expired = true
	case known:
		failed.Already = true
	case len(u.seen) >= u.max:
		failed.Full = true
	default:
		if u.seen == nil {
			u.seen = map[uint64]struct{}{}
		}
		u.seen[r.Number] = struct{}{}
		heap.Push(&u.ends, receiptEnd{r.Until, r.Number})
	}
	return failed
}

// receiptEnd is when a number may be forgotten.
type receiptEnd struct {
	until  int64
	number uint64
}

// receiptEnds is a heap, the earliest first.
type receiptEnds []receiptEnd

func (h receiptEnds) Len() int { return len(h) }

func (h receiptEnds) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].until, h[j].until), cmp.Compare(h[i].number, h[j].number)) < 0
}

func (h receiptEnds) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is heap's.
func (h *receiptEnds) Push(x any) { *h = append(*h, x.(receiptEnd)) }

// Pop is heap's.
func (h *receiptEnds) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
