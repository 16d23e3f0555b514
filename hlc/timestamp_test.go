package hlc

import (
	"cmp"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimestampParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		millis := rapid.Int64().Draw(t, "millis")
		counter := rapid.Uint16().Draw(t, "counter")
		s := New(millis, counter)
		if want := min(max(millis, 0), MaxMillis); s.Millis() != want || s.Counter() != counter {
			t.Fatalf("New(%d, %d) holds %d and %d", millis, counter, s.Millis(), s.Counter())
		}
	})
}

// TestTimestampOrder holds the order of stamps to the order of their parts.
func TestTimestampOrder(t *testing.T) {
	part := rapid.Int64Range(0, 3)
	rapid.Check(t, func(t *rapid.T) {
		am, ac := part.Draw(t, "a millis"), part.Draw(t, "a counter")
		bm, bc := part.Draw(t, "b millis"), part.Draw(t, "b counter")
		a, b := New(am, uint16(ac)), New(bm, uint16(bc))
		want := 0
		switch {
		case am < bm || am == bm && ac < bc:
			want = -1
		case am > bm || ac > bc:
			want = 1
		}
		if got := cmp.Compare(a, b); got != want {
			t.Fatalf("%v compared with %v: %d, want %d", a, b, got, want)
		}
		if a.Sub(b) != time.Duration(am-bm)*time.Millisecond {
			t.Fatalf("%v from %v to %v", a.Sub(b), b, a)
		}
	})
}

func TestNext(t *testing.T) {
	tests := []struct{ from, want Timestamp }{
		{0, New(0, 1)},
		{New(7, 1), New(7, 2)},
		{New(7, math.MaxUint16), New(8, 0)},
		{MaxTimestamp - 1, MaxTimestamp},
		{MaxTimestamp, MaxTimestamp},
	}
	for _, tt := range tests {
		if got := tt.from.Next(); got != tt.want {
			t.Errorf("next of %v is %v, want %v", tt.from, got, tt.want)
		}
	}
}

func TestSubSaturates(t *testing.T) {
	far := time.Duration(math.MaxInt64 / int64(time.Millisecond) * int64(time.Millisecond))
	if got := MaxTimestamp.Sub(0); got != far {
		t.Errorf("got %d, want %d", got, far)
	}
	if got := Timestamp(0).Sub(MaxTimestamp); got != -far {
		t.Errorf("got %d, want %d", got, -far)
	}
}

func TestTimestampText(t *testing.T) {
	if got := New(1_700_000_000_000, 5).String(); got != "1700000000000.5" {
		t.Errorf("text %q", got)
	}
	if got := MaxTimestamp.String(); got != "281474976710655.65535" {
		t.Errorf("text %q of the greatest one", got)
	}
}
