package sim

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFaultWaitsForItsEvent(t *testing.T) {
	first := Fault{Kind: Crash, At: time.Second, For: 500 * ms, From: []string{"eu-1"}}
	second := Fault{Kind: Crash}
	second.When.Event, second.When.Where, second.When.After = "crash_ended", []string{"eu"}, 200*ms
	third := Fault{Kind: Crash, At: 2 * time.Second, For: 100 * ms, From: []string{"us"}}
	third.When.Event, third.When.Count = "started", 2
	watch(
		t, quick(t, first, second, third),
		glance{1400 * ms, up, "eu-0 us-0 us-1"},
		glance{1690 * ms, up, "eu-0 eu-1 us-0 us-1"},
		glance{1710 * ms, up, "eu-0 us-0 us-1"},
		glance{3 * time.Second, up, "eu-0 us-0 us-1"},
	)
}

func TestEventsOfTriggers(t *testing.T) {
	var cfg Config
	all := (&Fault{}).When.Events()
	for i, word := range all {
		if slices.Index(all, word) != i || strings.Contains(word, " ") {
			t.Errorf("event %q: want one word, once", word)
		}
		f := Fault{Kind: Crash}
		f.When.Event = word
		cfg.Faults = append(cfg.Faults, f)
	}
	if err := cfg.validateFaults(); err != nil {
		t.Error(err)
	}
	for _, bad := range []trigger{{Event: "earthquake"}, {Count: 1}, {Event: "started", Count: -1}, {Event: "started", After: -1}} {
		cfg.Faults = []Fault{{Kind: Crash, When: bad}}
		if cfg.validateFaults() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
