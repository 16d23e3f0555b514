package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// plainLog logs without times.
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

// A degradation is said once and so is its end, however many answers it
// touches; another one is another story.
func TestDegradedLog(t *testing.T) {
	var out strings.Builder
	d := newDegradedLog(plainLog(&out))
	var s node.Stats
	s.LiveKeys, s.MaxKeys = 1_000, 1_000
	const (
		begins = "level=WARN msg=\"1000 of 1000 keys are tracked: new keys share overflow counters " +
			"and may be refused falsely; raise --max-keys\" reason=keys_full\n"
		ends = "level=INFO msg=\"answers are exact again\" reason=keys_full degraded=%d\n"
	)
	for _, step := range []struct {
		second int
		counts uint64
		want   string
	}{
		{0, 0, ""}, {1, 3, begins}, {2, 4, ""}, {11, 4, ""}, {11, 5, ""}, // grows just in time
		{20, 5, ""}, {21, 5, fmt.Sprintf(ends, 5)}, {22, 5, ""}, {40, 5, ""},
		{41, 6, begins}, {51, 6, fmt.Sprintf(ends, 1)}, {70, 6, ""},
	} {
		out.Reset()
		s.Degraded[node.KeysFull] = step.counts
		d.look(time.Duration(step.second)*time.Second, s)
		if diff := cmp.Diff(step.want, out.String()); diff != "" {
			t.Errorf("second %d (-want +got):\n%s", step.second, diff)
		}
	}
}

// The daemon looks by itself, and each reason has a story of its own.
func TestDegradationIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		e, err := NewEngine(EngineConfig{Node: node.Default(), Shards: 1, MaxKeys: 1})
		if err != nil {
			t.Fatal(err)
		}
		set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
			{Key: "user", Limit: &rules.Limit{Unit: rules.Year, Multiplier: 1, Requests: 1_000}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		e.SetRules(set, node.MatcherOptions{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		d := &daemon{engine: e, log: plainLog(&out)}
		go d.tick(ctx)
		for i := range 50 {
			c := &node.Call{Domain: "edge", Descriptors: []rules.Descriptor{
				{Entries: []rules.Entry{{Key: "user", Value: fmt.Sprint(i % 5)}}, Hits: 1},
			}}
			if err := e.Check(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		want := "level=WARN msg=\"1 of 1 keys are tracked: new keys share overflow counters " +
			"and may be refused falsely; raise --max-keys\" reason=keys_full\n" +
			"level=INFO msg=\"answers are exact again\" reason=keys_full degraded=40\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}
