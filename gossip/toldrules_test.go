package gossip

import (
	"testing"
	"time"
)

// TestToldRules repeats the hash of the rules until the peer has echoed it, and
// then once a second.
func TestToldRules(t *testing.T) {
	var told toldRules
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, step := range []struct {
		at          int // ms
		rules, echo uint64
		want        uint64
	}{
		{100, 7, 0, 7},
		{200, 7, 99, 7}, // an echo of a message before
		{300, 7, 100, 0},
		{900, 7, 300, 0},
		{1_000, 7, 300, 7},
		{1_100, 7, 1_000, 0},
		{1_200, 8, 1_100, 8},
		{1_300, 8, 1_100, 8},
		{1_400, 8, 1_300, 0}, // any later message had it, too
		{1_500, 7, 1_400, 7},
	} {
		told.settle(step.echo)
		if got := told.next(ms(step.at), step.rules, uint64(step.at)); got != step.want {
			t.Errorf("%d ms: %d, want %d", step.at, got, step.want)
		}
	}
}

// TestUniteRules: a frame has the hash of the rules if one shard has to send
// it.
func TestUniteRules(t *testing.T) {
	msgs := make([]Message, 3)
	msgs[1].Rules, msgs[2].Rules = 5, 6
	Unite(msgs)
	for i := range msgs {
		if msgs[i].Rules != 5 {
			t.Errorf("message %d has the hash %d, want 5", i, msgs[i].Rules)
		}
	}
}
