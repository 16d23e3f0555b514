package grpchost

import (
	"testing"
	"time"
)

// Sudden calls of all connections begin at a pace. Few calls never wait, and
// beyond a bound none do: their connection is closed.
func TestPace(t *testing.T) {
	pace, now := newPace(), time.Unix(1_000_000, 0)
	if d, ok := delay(pace, suddenBurst, now); d != 0 || !ok {
		t.Errorf("the first burst waits %v", d)
	}
	accepted := 0
	for {
		d, ok := delay(pace, 40, now)
		if !ok {
			break
		}
		accepted += 40
		if want := time.Duration(accepted) * time.Second / suddenRate; (d - want).Abs() > time.Microsecond {
			t.Fatalf("after %d calls a read waits %v, want %v", accepted, d, want)
		}
	}
	if accepted < maxIncomplete || accepted > 3*maxIncomplete {
		t.Errorf("%d calls wait, of %d that may be incomplete", accepted, maxIncomplete)
	}
	if d, ok := delay(pace, suddenCalls-1, now); d != 0 || !ok {
		t.Errorf("few calls beside them wait %v", d)
	}
	if d, ok := delay(pace, suddenBurst, now.Add(maxDelay+time.Second)); d != 0 || !ok {
		t.Errorf("after them a burst waits %v", d)
	}
}
