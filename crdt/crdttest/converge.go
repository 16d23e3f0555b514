package crdttest

import (
	"fmt"

	"pgregory.net/rapid"
)

// Counter describes a replicated counter for Converge. Its Lattice must have
// deltas, and the zero value of T must be the empty counter.
type Counter[T any] struct {
	Lattice[T]
	// Add counts n more at the replica of a writer. Writers are numbered.
	Add func(replica *T, writer, n uint64)
	// Refund subtracts n from the writer's earlier additions, never more than
	// they sum to. Nil if the counter has no refunds.
	Refund func(replica *T, writer, n uint64)
	// Value returns the count.
	Value func(*T) uint64
}

// Converge lets up to six replicas count at random and send each other the part
// of their state that the other is not known to have, over a network that
// loses, repeats and reorders messages and acknowledgements. It fails t if a
// replica
//
//   - counts a hit that was never added,
//   - forgets a hit that it added itself, or
//   - once every message arrives, differs from the sum of all additions less
//     all refunds, or still has something to send.
func Converge[T any](t rapid.TB, c Counter[T]) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(c, rapid.IntRange(2, 6).Draw(t, "replicas"))
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.event(t)
			if err := w.audit(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.settle(); err != nil {
			t.Fatal(err)
		}
	})
}

// world is the replicas, the messages between them, and the ground truth.
type world[T any] struct {
	c        Counter[T]
	replicas []replica[T]
	flying   []message[T]
	events   []string // possible ones; one listed twice happens twice as often
}

type replica[T any] struct {
	state           T
	known           []T    // by peer: its acknowledged state
	added, refunded uint64 // the ground truth of this writer
}

type message[T any] struct {
	from, to int
	delta    T
	ack      bool
}

func newWorld[T any](c Counter[T], n int) *world[T] {
	w := &world[T]{
		c:        c,
		replicas: make([]replica[T], n),
		events:   []string{"add", "add", "send", "send", "deliver", "deliver", "repeat", "lose"},
	}
	if c.Refund != nil {
		w.events = append(w.events, "refund")
	}
	for i := range w.replicas {
		w.replicas[i].known = make([]T, n)
	}
	return w
}

func (w *world[T]) event(t *rapid.T) {
	i := rapid.IntRange(0, len(w.replicas)-1).Draw(t, "replica")
	r := &w.replicas[i]
	switch rapid.SampledFrom(w.events).Draw(t, "event") {
	case "add":
		n := rapid.Uint64Range(1, 9).Draw(t, "n")
		w.c.Add(&r.state, uint64(i), n)
		r.added += n
	case "refund":
		if left := r.added - r.refunded; left > 0 {
			n := rapid.Uint64Range(1, left).Draw(t, "n")
			w.c.Refund(&r.state, uint64(i), n)
			r.refunded += n
		}
	case "send":
		w.send(i, rapid.IntRange(0, len(w.replicas)-1).Draw(t, "to"))
	case "deliver":
		w.pick(t, func(k int) { w.deliver(w.take(k)) })
	case "repeat":
		w.pick(t, func(k int) { w.deliver(w.copyOf(k)) })
	case "lose":
		w.pick(t, func(k int) { w.take(k) })
	}
}

// pick calls do with any message in flight: the network reorders.
func (w *world[T]) pick(t *rapid.T, do func(k int)) {
	if len(w.flying) > 0 {
		do(rapid.IntRange(0, len(w.flying)-1).Draw(t, "message"))
	}
}

func (w *world[T]) take(k int) message[T] {
	m := w.flying[k]
	w.flying = append(w.flying[:k], w.flying[k+1:]...)
	return m
}

func (w *world[T]) copyOf(k int) message[T] {
	m := w.flying[k]
	m.delta = w.c.Clone(&m.delta)
	return m
}

// send puts a message in flight with the part of the state that the peer is not
// known to have.
func (w *world[T]) send(from, to int) {
	r := &w.replicas[from]
	if from != to {
		w.flying = append(w.flying, message[T]{from: from, to: to, delta: w.c.Delta(&r.state, &r.known[to])})
	}
}

// deliver delivers a message. The answer to a delta is an acknowledgement with
// the same delta, which the sender joins into the known state of its peer.
func (w *world[T]) deliver(m message[T]) {
	r := &w.replicas[m.to]
	if m.ack {
		w.c.Join(&r.known[m.from], &m.delta)
		return
	}
	w.c.Join(&r.state, &m.delta)
	w.flying = append(w.flying, message[T]{from: m.to, to: m.from, delta: m.delta, ack: true})
}

// audit compares each replica with the ground truth so far.
func (w *world[T]) audit() error {
	total := uint64(0)
	for i := range w.replicas {
		total += w.replicas[i].added
	}
	for i := range w.replicas {
		r := &w.replicas[i]
		got := w.c.Value(&r.state)
		if got > total {
			return fmt.Errorf("invented: replica %d counts %d, %d were added in the world: %s",
				i, got, total, w.c.Show(&r.state))
		}
		if own := r.added - r.refunded; got < own {
			return fmt.Errorf("forgotten: replica %d counts %d and added %d itself: %s",
				i, got, own, w.c.Show(&r.state))
		}
	}
	return nil
}

// settle delivers all messages in flight, then two rounds of deltas between all
// replicas, and compares every replica with the ground truth.
func (w *world[T]) settle() error {
	w.drain()
	for range 2 {
		for i := range w.replicas {
			for j := range w.replicas {
				w.send(i, j)
			}
		}
		w.drain()
	}
	truth := uint64(0)
	for i := range w.replicas {
		truth += w.replicas[i].added - w.replicas[i].refunded
	}
	for i := range w.replicas {
		r := &w.replicas[i]
		if got := w.c.Value(&r.state); got != truth {
			return fmt.Errorf("wrong: settled replica %d counts %d, the truth is %d: %s",
				i, got, truth, w.c.Show(&r.state))
		}
		if first := &w.replicas[0].state; !w.c.Equal(&r.state, first) {
			return fmt.Errorf("diverged: settled replica %d holds %s, replica 0 %s",
				i, w.c.Show(&r.state), w.c.Show(first))
		}
		for j := range r.known {
			if j != i && !w.c.Covers(&r.known[j], &r.state) {
				d := w.c.Delta(&r.state, &r.known[j])
				return fmt.Errorf("restless: settled replica %d still has %s for replica %d", i, w.c.Show(&d), j)
			}
		}
	}
	return nil
}

func (w *world[T]) drain() {
	for len(w.flying) > 0 {
		w.deliver(w.take(0))
	}
}
