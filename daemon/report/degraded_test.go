package report

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
)

// plainLog returns a logger without times.
func plainLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// statsEngine is an Engine with given statistics at a given time.
type statsEngine struct {
	Engine
	at    time.Duration
	stats node.Stats
}

func (e *statsEngine) Now() node.Instant { return node.Instant{Mono: e.at} }
func (e *statsEngine) Stats() node.Stats { return e.stats }

func (e *statsEngine) Tallies(yield func(domain, rule string, t quota.Tally)) {
	yield("edge", "user", quota.Tally{Keys: 900, KeysFull: e.stats.Degraded[node.KeysFull]})
	yield("edge", "team", quota.Tally{Keys: 100})
}

// TestDegradedLog: a degradation is logged once, and so is its end.
func TestDegradedLog(t *testing.T) {
	var out strings.Builder
	e := &statsEngine{}
	r := New(Config{Engine: e, Log: plainLog(&out), Wall: time.Now})
	e.stats.LiveKeys, e.stats.MaxKeys = 1_000, 1_000
	const (
		begins = "level=WARN msg=\"no room for more keys of \\\"user\\\" of domain \\\"edge\\\" (900 tracked): " +
			"new keys of these rules share overflow counters and may be denied falsely, and on_failure decides new strict keys; " +
			"1000 of 1000 keys are tracked: look for a flood of random values, or raise --max-keys\" reason=keys_full\n"
		ends = "level=INFO msg=\"decisions are exact again\" reason=keys_full degraded=%d\n"
	)
	for _, step := range []struct {
		second int
		counts uint64
		want   string
	}{
		{0, 0, ""},
		{1, 3, begins},
		{2, 4, ""},
		{11, 4, ""},
		{11, 5, ""}, // grows just in time
		{20, 5, ""},
		{21, 5, fmt.Sprintf(ends, 5)},
		{22, 5, ""},
		{40, 5, ""},
		{41, 6, begins},
		{51, 6, fmt.Sprintf(ends, 1)},
		{70, 6, ""},
	} {
		out.Reset()
		e.at, e.stats.Degraded[node.KeysFull] = time.Duration(step.second)*time.Second, step.counts
		r.sampleDegraded()
		if diff := cmp.Diff(step.want, out.String()); diff != "" {
			t.Errorf("second %d (-want +got):\n%s", step.second, diff)
		}
	}
}

// TestStrictDegradations: the texts name the setting that applies without an
// owner.
func TestStrictDegradations(t *testing.T) {
	for _, reason := range []node.Degraded{node.OwnerUnreachable, node.CircuitOpen} {
		if text := degradation(reason, node.Stats{}); !strings.Contains(text, "on_failure") {
			t.Errorf("%v: %q", reason, text)
		}
	}
}
