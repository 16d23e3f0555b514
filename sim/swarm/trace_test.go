package swarm

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
)

// traceLine is the layout of all lines of a trace.
var traceLine = regexp.MustCompile(`^ *-?\d+\.\d{9} +\d+  (\S+) +(\S+)( .*)?$`)

// TestTrace plays swarm runs with a trace of everything. They are the same as
// without it, and all lines have one layout.
func TestTrace(t *testing.T) {
	runs := uint64(16)
	if testing.Short() {
		runs = 6
	}
	what := make(map[string]int)
	for seed := range runs {
		cfg := Draw(seed, seed%3 == 0)
		plain, err := sim.Run(cfg, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := -math.MaxFloat64
		traced, err := sim.Run(cfg, sim.Options{Auditors: audit.All, Trace: &sim.Trace{
			From: -time.Hour, To: time.Hour, States: true, Line: func(line string) {
				m := traceLine.FindStringSubmatch(line)
				if m == nil {
					t.Fatalf("seed %d: %s", seed, line)
				}
				what[m[2]]++
				at, err := time.ParseDuration(strings.Fields(line)[0] + "s")
				if err != nil || at.Seconds() < before {
					t.Fatalf("seed %d: %v, after %v: %s", seed, err, before, line)
				}
				before = at.Seconds()
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if traced.TraceHash != plain.TraceHash {
			t.Errorf("seed %d: another run with a trace", seed)
		}
	}
	for _, name := range strings.Fields("send receive timer decide state event members fault start crash store lost") {
		if what[name] == 0 {
			t.Errorf("no line of %s", name)
		}
	}
	t.Log(what)
}

// TestTraceSelects takes the lines of one daemon within a second.
func TestTraceSelects(t *testing.T) {
	cfg := Draw(3, false)
	name := cfg.Regions[0].Daemon(0)
	n := 0
	_, err := sim.Run(cfg, sim.Options{Trace: &sim.Trace{
		From: time.Second, To: 2 * time.Second, Daemons: []string{name}, States: true, Line: func(line string) {
			n++
			m := traceLine.FindStringSubmatch(line)
			at, err := time.ParseDuration(strings.Fields(line)[0] + "s")
			if m == nil || err != nil || at < time.Second || at > 2*time.Second || m[1] != name && m[1] != "*" {
				t.Errorf("%v: %s", err, line)
			}
		},
	}})
	if err != nil || n == 0 {
		t.Error(n, err)
	}
}
