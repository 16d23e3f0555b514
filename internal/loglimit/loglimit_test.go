package loglimit

import (
	"fmt"
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	var l Limiter
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		key   string
		after time.Duration
		want  bool
	}{
		{"a", 0, true},
		{"a", 0, false},
		{"b", 0, true},
		{"a", time.Minute - 1, false},
		{"a", time.Minute, true},
		{"a", time.Minute + 1, false},
	} {
		if got := l.Due(tt.key, now.Add(tt.after), time.Minute); got != tt.want {
			t.Errorf("%s after %v: %v, want %v", tt.key, tt.after, got, tt.want)
		}
	}
}

// TestDueBounded adds more keys than a Limiter remembers.
func TestDueBounded(t *testing.T) {
	var l Limiter
	now := time.Unix(1_800_000_000, 0)
	due := 0
	for i := range 3 * maxKeys {
		if l.Due(fmt.Sprint(i), now, time.Minute) {
			due++
		}
	}
	if due != maxKeys || len(l.until) != maxKeys {
		t.Errorf("%d of %d due, %d kept", due, 3*maxKeys, len(l.until))
	}
	if l.Due("0", now.Add(time.Minute-1), time.Minute) || !l.Due("0", now.Add(time.Minute), time.Minute) {
		t.Error("a key is due before its time, or not at it")
	}
}
