package sim

import (
	"time"
)

// eventKind is the kind of an event.
type eventKind uint8

const (
	evDeliver eventKind = iota // a frame arrives; arg: flight
	evWake                     // a daemon's Tick is due; arg: daemon
	evArrival                  // a source's next request is due; arg: source
	evRetry                    // a client tries again; arg: attempt
	evMember                   // a daemon learns of a change of members; arg: change
	evFault                    // a fault begins; arg: fault
	evRecover                  // a fault ends; arg: fault
	evStart                    // a daemon's process starts; arg: daemon
	evResume                   // a paused daemon goes on; arg: daemon
	evRules                    // a daemon takes a rule set in force; arg: adoption
	evViews                    // the ages of views are sampled
	evSample                   // the series gets a row
	evStored                   // a write reached a disk, or its process is notified; arg: write
	evCall                     // a call goes on that was answered; arg: pendingCall
	evGiveUp                   // a client waits no longer; arg: pendingCall
	evRefund                   // a client sends a refund token; arg: refund
	evSuspect                  // a fault takes others for dead; arg: fault
	evLeave                    // a process that leaves may end; arg: process
	evCommand                  // the operator gives a command; arg: command
	evInit                     // the operator founds the cluster
	evRecheck                  // a process verifies its streams again; arg: process
)

// event is something that will happen at a virtual time. Events of one time
// happen in the order in which they were made.
type event struct {
	at   time.Duration
	seq  uint64
	arg  int32
	kind eventKind
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// heap holds the events to come: a heap of four children a node, which touches
// half the cache lines of one with two. The zero value is empty.
type heap struct {
	events []event
	seq    uint64
}

func (h *heap) len() int { return len(h.events) }

// push adds an event behind all others of its time.
func (h *heap) push(at time.Duration, kind eventKind, arg int32) {
	h.seq++
	e := event{at: at, seq: h.seq, kind: kind, arg: arg}
	h.events = append(h.events, e)
	i := len(h.events) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h.events[up]) {
			break
		}
		h.events[i] = h.events[up]
		i = up
	}
	h.events[i] = e
}

// pop takes out the first event; there must be one.
func (h *heap) pop() event {
	first := h.events[0]
	end := len(h.events) - 1
	e := h.events[end]
	h.events = h.events[:end]
	if end == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= end {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, end); c++ {
			if h.events[c].before(&h.events[least]) {
				least = c
			}
		}
		if !h.events[least].before(&e) {
			break
		}
		h.events[i] = h.events[least]
		i = least
	}
	h.events[i] = e
	return first
}

// pool holds what events refer to by number, and uses the numbers again. The
// zero value is empty.
type pool[T any] struct {
	items []T
	free  []int32
}

// put keeps an item and returns its number.
func (p *pool[T]) put(item T) int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		p.items[i] = item
		return i
	}
	p.items = append(p.items, item)
	return int32(len(p.items) - 1)
}

// take returns an item and forgets it.
func (p *pool[T]) take(i int32) T {
	var zero T
	item := p.items[i]
	p.items[i] = zero
	p.free = append(p.free, i)
	return item
}

// len returns how many items are kept.
func (p *pool[T]) len() int { return len(p.items) - len(p.free) }
