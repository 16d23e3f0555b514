package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFigures: medians are of the rounds, and a ratio is the median of the
// ratios of the rounds, which is not the ratio of the medians.
func TestFigures(t *testing.T) {
	rounds := func(p50s ...[2]float64) (all [][2]run) {
		for _, p := range p50s {
			var pair [2]run
			for i := range pair {
				pair[i] = run{Answered: 100, Latency: latencies{P50: p[i], P90: 1, P99: 1, P999: 1}}
			}
			all = append(all, pair)
		}
		return all
	}
	p50 := func(rounds [][2]run) figure { return figures(rounds)[1] }
	for _, c := range []struct {
		rounds [][2]run
		want   figure
	}{
		{rounds([2]float64{3, 2}), figure{"p50", 3, 2, &spread{1.5, 1.5, 1.5}}},
		// Ratios 2, 0.5 and 1: in one round the machine was slow on both sides.
		{rounds([2]float64{2, 1}, [2]float64{1, 2}, [2]float64{50, 50}), figure{"p50", 2, 2, &spread{1, 0.5, 2}}},
		// An even number of rounds: ratios 1, 2, 4 and 3.
		{
			rounds([2]float64{1, 1}, [2]float64{4, 2}, [2]float64{4, 1}, [2]float64{6, 2}),
			figure{"p50", 4, 1.5, &spread{2.5, 1, 4}},
		},
		// A side without a figure in a round has no ratio.
		{rounds([2]float64{1, 1}, [2]float64{1, 0}), figure{"p50", 1, 0.5, nil}},
	} {
		if d := cmp.Diff(c.want, p50(c.rounds)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestComparisonText(t *testing.T) {
	o := &options{protocol: protocolRLS, rate: 10, arrivals: arrivalsConstant, keys: 1, inFlight: 2, rounds: 3}
	c := comparison{Target: "a:1", Compare: "b:2\x1b", Interrupted: true, Rounds: [][2]run{{
		{Answered: 10, Calls: calls{Due: 10, Allowed: 8, Denied: 2}, Latency: latencies{P50: 0.002}},
		{Answered: 20, Calls: calls{Due: 20, Allowed: 20}, Latency: latencies{P50: 0.001}},
	}}}
	c.Figures = figures(c.Rounds)
	text := c.text(o)
	for _, want := range []string{
		"rounds   1 of 3: ended in the next one", `compare  b:2\x1b`,
		"answered  10.0/s", "0.500  0.500 to 0.500", "p50       2.00 ms  1.00 ms  2.000  2.000 to 2.000",
		"p99       0.00 µs  0.00 µs  -      -",
		"calls of compare  20 due: 20 allowed, 0 denied, 0 failed, 0 unsent; 0 sent late",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestTargetStopsBetweenRounds: the rounds before one without an answer are
// printed, and the command fails.
func TestTargetStopsBetweenRounds(t *testing.T) {
	failed := errors.New("failed")
	for _, form := range []string{formTable, formJSON} {
		target, _ := serve(t, &flaky{})
		other := &flaky{end: 51} // the first call, and two rounds of 25
		compare, stop := serve(t, other)
		other.stop = func() { go stop() }
		var out bytes.Buffer
		cmd := New(&out, io.Discard, func(err error) error { return errors.Join(failed, err) })
		cmd.SetArgs(strings.Fields("--rate 500 --for 50ms --warm 0s --rounds 50 -o " + form +
			" --domain d k=v --target " + target + " --compare " + compare))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		if !errors.Is(err, failed) || !strings.Contains(err.Error(), compare+": nothing was measured: none of") {
			t.Errorf("error %v, want that nothing was measured", err)
		}
		if form == formTable {
			if !strings.Contains(out.String(), "of 50: ended in the next one, which does not count") ||
				!strings.Contains(out.String(), "medians") {
				t.Errorf("output %s", &out)
			}
			continue
		}
		var c comparison
		if err := json.Unmarshal(out.Bytes(), &c); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		if n := len(c.Rounds); n < 1 || n == 50 || c.Interrupted || len(c.Figures) == 0 || !strings.Contains(c.Error, compare) {
			t.Errorf("%d rounds, figures %v, error %q", n, c.Figures, c.Error)
		}
	}
}
