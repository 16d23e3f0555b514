package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/load"
)

// TestReplay: a recorded trace meets the windows that it was recorded in.
func TestReplay(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	var lines []byte
	for i := range 100 { // 10 a second, from half a second before a window's start
		at := noon.Add(-500*time.Millisecond + time.Duration(i)*100*time.Millisecond)
		lines = append(lines, at.Format(time.RFC3339Nano)+",eu,user=a,1\n"...)
	}
	trace, err := load.ParseTrace("t.csv", lines)
	if err != nil {
		t.Fatal(err)
	}
	set, diags := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(`
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: 20}
`)}}, limits.Options{})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	for regions, daemons := range map[string]int{"": 1, "us ap": 2} {
		cfg, err := Replay(trace, set, strings.Fields(regions), daemons)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(cfg, sim.Options{Auditors: audit.All})
		if err != nil {
			t.Fatal(err)
		}
		// Five before the start of the window, then 20 of it.
		if r.Decisions != 100 || r.Admitted < 25 || r.Admitted > 27 {
			t.Errorf("%q: %d decisions, %d admitted", regions, r.Decisions, r.Admitted)
		}
	}
	two, _ := limits.Parse([]limits.File{
		{Name: "a.yaml", Data: []byte("domain: a\ndescriptors: [{key: user}]\n")},
		{Name: "b.yaml", Data: []byte("domain: b\ndescriptors: [{key: user}]\n")},
	}, limits.Options{})
	_, err = Replay(trace, two, nil, 1)
	if want := "sim: the limits have 2 domains, so the trace needs a column domain"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
