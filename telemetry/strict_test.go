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

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
)

// strictMetrics registers the metrics of strict keys alone in a registry that
// checks collected series.
func strictMetrics(t *testing.T, s StrictStats) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	r := registry{Registerer: reg, families: map[string]Family{waitFamily.Name: waitFamily}}
	newWaits(&r).Observe(0.0015)
	r.add(newStrictCollector(func() StrictStats { return s }))
	if len(r.faults) > 0 {
		t.Fatal(r.faults)
	}
	return reg
}

// fullStrict has a different number in each field.
func fullStrict() StrictStats {
	s := StrictStats{
		Node: lease.Stats{
			Entries: 1, Local: 2, Waited: 3, Requests: 4, Grants: 5, Denials: 6, Cached: 7, Granted: 8, Returned: 9,
			Replayed: 10, Rejected: 11, Accepts: 12, Accepted: 13, Lost: 14,
		},
		Pending: 15, Unqueued: 16, Frames: 17, DroppedItems: 18, Layout: 19, Voter: true, Voting: true, Keys: 20,
		Replies: map[string]uint64{"accepted": 21, "outvoted": 22},
		Journal: Journal{Bytes: 23, Writes: 24, Entries: 25, Failures: 26, Rewrites: 27, Writing: 1500 * time.Millisecond},
		Breakers: []Breaker{
			{"us", "us-0", 0}, {"us", "us-0", 2}, {"eu", "eu-\xff", 1},
		},
		Transitions: map[string]uint64{"open": 28, "half_open": 29, "closed": 30},
	}
	s.Node.Refused[sticky.NoMajority] = 31
	return s
}

// TestStrictMetrics compares a scrape with testdata/strict.txt.
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

// TestBreakersAreBounded has more owners than series.
func TestBreakersAreBounded(t *testing.T) {
	s := fullStrict()
	for i := range 2 * maxBreakers {
		s.Breakers = append(s.Breakers, Breaker{"us", fmt.Sprint("us-", i), 2})
	}
	n := 0
	for line := range strings.Lines(scrape(t, strictMetrics(t, s))) {
		if strings.HasPrefix(line, "rld_circuit_breaker_state") {
			n++
		}
	}
	if n != maxBreakers+1 {
		t.Errorf("%d series, want %d and one for the others", n, maxBreakers)
	}
}

// TestNoOwnerNoMetrics checks a daemon that does not serve strict keys. It may
// still observe waits.
func TestNoOwnerNoMetrics(t *testing.T) {
	m, reg := newMetrics(t, &engine{})
	m.Waited(time.Second)
	if text := scrape(t, reg); strings.Contains(text, "rld_strict") || strings.Contains(text, "rld_circuit") {
		t.Error("a daemon without strict keys exports their metrics")
	}
}
