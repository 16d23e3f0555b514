// Package await waits in tests that run in real time, as those of sockets and
// processes do. A busy machine makes such a test slow and does not fail it; a
// hang fails it within seconds, and the failure names what did not happen.
// Tests in virtual time need none of this: testing/synctest detects a deadlock.
package await

import (
	"runtime"
	"testing"
	"time"
)

const (
	// limit is how long anything may take. The tests wait for what takes a few
	// seconds at most on an idle machine.
	limit = 45 * time.Second
	// look is the time between two evaluations of a condition.
	look = 5 * time.Millisecond
	// maxStacks bounds the stacks of goroutines that a failure prints.
	maxStacks = 256 << 10
)

// True returns once cond holds. If it does not come to hold, True fails the
// test with what, a sentence about the condition.
func True(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for began := time.Now(); !cond(); time.Sleep(look) {
		if time.Since(began) > limit {
			failed(t, what)
		}
	}
}

// Value returns the next value of ch, or the zero value once ch is closed. If
// nothing comes, Value fails the test with what, a sentence about the value.
func Value[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		failed(t, what)
		panic("unreachable")
	}
}

// Done returns once f returned. If it does not, Done fails the test with what,
// a sentence about the end of f.
func Done(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	Value(t, what, done)
}

// failed fails the test, with the stacks of all goroutines: what hangs is among
// them.
func failed(t testing.TB, what string) {
	t.Helper()
	stacks := make([]byte, maxStacks)
	stacks = stacks[:runtime.Stack(stacks, true)]
	t.Fatalf("not within %v: %s\n\n%s", limit, what, stacks)
}
