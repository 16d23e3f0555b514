package eventlog

import (
	"strconv"
	"testing"
	"time"
)

// TestAddOnce holds that a cause of a peer is logged once in ten seconds.
func TestAddOnce(t *testing.T) {
	var l Log[int]
	for _, c := range []struct {
		at          time.Duration
		peer, cause string
		added       int
	}{
		{0, "a", "late", 1},
		{repeatAfter - 1, "a", "late", 0},
		{repeatAfter - 1, "b", "late", 1},
		{repeatAfter - 1, "a", "early", 1},
		{repeatAfter, "a", "late", 1},
	} {
		l.At = c.at
		l.AddOnce(7, c.peer, c.cause, "text")
		events := l.Take()
		if len(events) != c.added {
			t.Errorf("%v: %q of %q added %d events, want %d", c.at, c.cause, c.peer, len(events), c.added)
		}
		for _, e := range events {
			if want := (Event[int]{c.at, 7, c.peer, "text"}); e != want {
				t.Errorf("got %+v, want %+v", e, want)
			}
		}
	}
}

// TestBounds holds that neither the events nor their causes grow without bound.
func TestBounds(t *testing.T) {
	var l Log[int]
	for i := range 3 * maxEvents {
		l.AddOnce(i, "a", strconv.Itoa(i), "")
	}
	if n := len(l.Take()); n != maxEvents || len(l.caused) > maxEvents {
		t.Errorf("%d events and %d causes are kept, want at most %d", n, len(l.caused), maxEvents)
	}
	l.Add(0, "", "")
	if n := len(l.Take()); n != 1 {
		t.Errorf("%d events after the log was emptied, want 1", n)
	}
}
