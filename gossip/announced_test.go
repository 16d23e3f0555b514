package gossip

import (
	"testing"
	"time"
)

// TestAnnounced repeats a value until the peer has echoed it, and then every
// thirty seconds.
func TestAnnounced(t *testing.T) {
	value := announced{at: -1}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, step := range []struct {
		at    int // ms
		value int64
		echo  uint64
		want  bool
	}{
		{100, 70, 0, true},
		{200, 70, 99, true}, // an echo of a message before
		{300, 72, 100, false},
		{900, 68, 300, false},
		{30_000, 70, 300, true},
		{30_100, 70, 30_000, false},
		{30_200, 73, 30_100, true}, // beyond the tolerance
		{30_300, 73, 30_100, true},
		{30_400, 73, 30_300, false}, // any later message had it, too
		{30_500, 70, 30_400, true},
	} {
		value.settle(step.echo)
		if got := value.next(ms(step.at), step.value, 2, uint64(step.at)); got != step.want {
			t.Errorf("%d ms: %v, want %v", step.at, got, step.want)
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
