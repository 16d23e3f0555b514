package grpchost

import (
	"bytes"
	"slices"
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

// The calls of one read begin a few at a time, at the pace, and the last of
// them when the read is due.
func TestParts(t *testing.T) {
	const calls, each = 80, 100
	sent := make([]byte, calls*each)
	for i := range sent {
		sent[i] = byte(i)
	}
	due := time.Unix(1_000_000, 0)
	for _, most := range []int{len(sent), each} { // of one read
		p := newParts(sent, calls, due)
		var got []byte
		var times []time.Time
		for len(p.bytes) > 0 {
			part, at := p.next(most)
			if len(part) > min(most, partCalls*each) {
				t.Fatalf("a part has %d bytes", len(part))
			}
			got, times = append(got, part...), append(times, at)
		}
		if !bytes.Equal(got, sent) {
			t.Error("the parts are other bytes than the read")
		}
		first, last := times[0], times[len(times)-1]
		if want := due.Add(-(calls - partCalls) * time.Second / suddenRate); !last.Equal(due) || first.Before(want) || !slices.IsSortedFunc(times, time.Time.Compare) {
			t.Errorf("the parts are due from %v to %v after the read, want from %v to 0", first.Sub(due), last.Sub(due), want.Sub(due))
		}
	}
}
