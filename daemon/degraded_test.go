package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
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

// TestDegradationIsLogged runs the report of an engine that becomes degraded.
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
		go newReport(e, report.Config{Log: plainLog(&out)}).Run(ctx)
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
		want := "level=WARN msg=\"no room for more keys of \\\"user\\\" of domain \\\"edge\\\" (1 tracked): " +
			"new keys of these rules share overflow counters and may be denied falsely, and on_failure decides new strict keys; " +
			"1 of 1 keys are tracked: look for a flood of random values, or raise --max-keys\" reason=keys_full\n" +
			"level=INFO msg=\"decisions are exact again\" reason=keys_full degraded=40\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}
