package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/gossip"
)

// TestViewsAuditorKnowsFormerAnswers: an answer in an incomplete message proves
// how fresh the view is once a complete one has arrived, and not before.
func TestViewsAuditorKnowsFormerAnswers(t *testing.T) {
	r := newRig(t, small(t), 2*time.Second)
	from, to := r.w.daemons[0], r.w.daemons[1]
	r.pass(time.Second)
	asks := r.message(to, from)
	asks.Echo = uint64(from.Instant(r.w.now).Mono / gossip.NonceUnit)
	r.step(from, asks)
	r.pass(time.Second)
	answer := r.message(from, to)
	answer.Echo, answer.Complete = asks.Nonce, false
	for range 64 {
		r.show(to, answer)
	}
	r.clean("views")
	r.pass(time.Second)
	rest := r.message(from, to)
	for range 64 {
		r.show(to, rest)
	}
	r.caught("views")
}
