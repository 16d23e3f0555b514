package telemetry

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
)

// fixedStrict is a Strict that does not change.
type fixedStrict StrictStats

func (s *fixedStrict) StrictStats() StrictStats { return StrictStats(*s) }

// strictMetrics registers the metrics of strict keys alone in a registry that is
// strict about what is collected.
func strictMetrics(t *testing.T, s StrictStats) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	waits := newWaits()
	waits.Observe(0.0015)
	for _, c := range []prometheus.Collector{newStrictCollector((*fixedStrict)(&s)), waits} {
		if err := reg.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

// fullStrict has a number in each field.
func fullStrict() StrictStats {
	s := StrictStats{
		Node: node.StrictStats{
			Ledgers: 1, Local: 2, Sought: 3, Requests: 4, Grants: 5, Denials: 6, Cached: 7, Granted: 8, Returned: 9,
			Replayed: 10, Rejected: 11, Accepts: 12, Accepted: 13, Lost: 14,
		},
		Parked: 15, NoPlace: 16, Frames: 17, DroppedItems: 18, Layout: 19, Replica: true, Voting: true, Ledgers: 20,
		Accepts: map[string]uint64{"held": 21, "outvoted": 22},
		Journal: Journal{Bytes: 23, Writes: 24, Entries: 25, Failures: 26, Rewrites: 27, Writing: 1500 * time.Millisecond},
		Circuits: []Circuit{
			{"us", "us-0", 0}, {"us", "us-0", 2}, {"eu", "eu-\xff", 1},
		},
		Transitions: map[string]uint64{"open": 28, "half_open": 29, "closed": 30},
	}
	s.Node.Refused[sticky.NoMajority] = 31
	return s
}

// TestStrictMetrics compares a scrape with the text that is expected of it.
func TestStrictMetrics(t *testing.T) {
	reg := strictMetrics(t, fullStrict())
	var out strings.Builder
	for line := range strings.Lines(scrape(t, reg)) {
		if strings.HasPrefix(line, "rld_") {
			out.WriteString(line)
		}
	}
	want, err := os.ReadFile("testdata/strict.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("a scrape (-want +got):\n%s", diff)
	}
	problems, err := promlint.New(strings.NewReader(scrape(t, reg))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// TestCircuitsAreBounded has more homes than have series.
func TestCircuitsAreBounded(t *testing.T) {
	s := fullStrict()
	for i := range 2 * maxCircuits {
		s.Circuits = append(s.Circuits, Circuit{"us", fmt.Sprint("us-", i), 2})
	}
	n := 0
	for line := range strings.Lines(scrape(t, strictMetrics(t, s))) {
		if strings.HasPrefix(line, "rld_circuit_breaker_state") {
			n++
		}
	}
	if n != maxCircuits+1 {
		t.Errorf("%d series, want %d and one for the others", n, maxCircuits)
	}
}

// TestNoOwnerNoMetrics: a daemon that is no home exports none, and may be told of
// waits all the same.
func TestNoOwnerNoMetrics(t *testing.T) {
	m, reg := newMetrics(t, &engine{})
	m.Waited(time.Second)
	if text := scrape(t, reg); strings.Contains(text, "rld_strict") || strings.Contains(text, "rld_circuit") {
		t.Error("metrics of strict keys of a daemon that serves none")
	}
}
