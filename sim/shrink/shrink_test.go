package shrink

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/scenario"
)

// large is a scenario with more than it needs to fail.
const large = `name: large
seed: 7
duration: 40s
settle: 10s
regions: {a: 4, b: 3, c: 2}
shards: 4
gossip: {interval: 50ms, quiet: 1s}
links: {across: {delay: 10ms, loss: 5%}}
limits:
  domain: edge
  descriptors:
    - key: p
      rate_limit: {unit: second, requests_per_unit: 10}
    - key: q
      rate_limit: {unit: minute, requests_per_unit: 20}
    - key: r
      rate_limit: {unit: hour, requests_per_unit: 30}
workloads:
  - {descriptors: [{p: "*"}, {q: "*"}], rate: 50, keys: 5, failover: true}
  - {descriptors: [{r: "*"}], rate: 10, retry: {attempts: 2}}
faults:
  - {fault: cut, at: 1s, for: 5s, from: a, to: c}
  - {fault: crash, at: 2s, for: 1s, where: [b-1, c], stay: true}
  - {fault: pause, at: 3s, for: 1s, where: a}
  - {fault: crash, at: 30s, for: 1s, where: b}
  - {fault: amnesia, at: 31s, for: 1s}
outside: {c: lost}
`

// fails is a run with a rule in windows of a minute and a crash in region b.
func fails(c *sim.Config) bool {
	minute := false
	for _, r := range c.Rules.Rules() {
		minute = minute || r.Limit != nil && r.Limit.Window() == 60_000
	}
	for i := range c.Faults {
		f := &c.Faults[i]
		for _, place := range f.From {
			if minute && f.Kind == sim.Crash && strings.HasPrefix(place, "b") {
				return true
			}
		}
	}
	return false
}

// shrunk shrinks a scenario that fails in a way of the test's.
func shrunk(t *testing.T, file string, fails func(*sim.Config) bool, done func() bool) *search {
	t.Helper()
	s := &search{fails: fails, done: done}
	if err := s.run([]byte(file)); err != nil {
		t.Fatal(err)
	}
	return s
}

func never() bool { return false }

// TestTimeToAgreeIsKept: with less of it, daemons may not agree for another
// reason.
func TestTimeToAgreeIsKept(t *testing.T) {
	const slow = `duration: 1s
settle: 40s
regions: {a: 1, b: 1}
links: {across: {delay: 59s}}
limits: {domain: edge, descriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 1}}]}
workloads: [{descriptors: [{k: v}], rate: 5}]
`
	s, err := Shrink([]byte(slow), never)
	if err != nil || s == nil {
		t.Fatalf("shrunk to %v: %v", s, err)
	}
	if s.Way != disagreement || s.Config.Settle < 40*time.Second {
		t.Errorf("fails by %s with %v to agree, want %s with 40 s:\n%s", s.Way, s.Config.Settle, disagreement, s.File)
	}
}

func TestShrink(t *testing.T) {
	s := shrunk(t, large, fails, never)
	const want = `seed: 7
duration: 1ms
regions: {b: 2}
limits: {domain: edge, descriptors: [{key: q, rate_limit: {unit: minute}}]}
workloads: []
faults: [{fault: crash, where: [b-1]}]
`
	if string(s.file) != want {
		t.Errorf("after %d runs:\n%swant\n%s", s.runs, s.file, want)
	}
}

// TestShrinkEnds ends a search in its middle, with a run that fails.
func TestShrinkEnds(t *testing.T) {
	for most := 1; most < 30; most++ {
		n := 0
		small := shrunk(t, large, fails, func() bool { n++; return n > most }).file
		if c, err := scenario.Parse("small", small); err != nil || !fails(c) {
			t.Fatalf("after %d: %v\n%s", most, err, small)
		}
	}
}

// TestShrinkWithoutRegions shrinks a run of the default regions, and one that
// fails whatever is left of it.
func TestShrinkWithoutRegions(t *testing.T) {
	file := regexp.MustCompile(`(?m)^(regions|faults|  - \{fault|outside):? .*\n|^faults:\n`).ReplaceAllString(large, "")
	small := shrunk(t, file, func(*sim.Config) bool { return true }, never).file
	c, err := scenario.Parse("small", small)
	if err != nil || c.Daemons() != 1 || len(c.Rules.Rules()) != 0 {
		t.Errorf("%v\n%s\nof\n%s", err, small, file)
	}
}

// TestShrinkToLaterLimits drops a fault that brings limits into force, if these
// fail from the start, and rounds its times.
func TestShrinkToLaterLimits(t *testing.T) {
	const file = `version: 1
seed: 1
duration: 12.345678s
regions: {a: 1}
limits: {domain: edge, descriptors: [{key: p}]}
workloads: []
faults:
  - {fault: new_rules, at: 5s, limits: {domain: edge, descriptors: [{key: q, rate_limit: {unit: minute}}]}}
  - {fault: crash, at: 7.654321s, where: a}
`
	s := shrunk(t, file, func(c *sim.Config) bool {
		limited := func(r *rules.Set) bool { return r != nil && len(r.Rules()) > 0 && r.Rules()[0].Limit != nil }
		return slices.ContainsFunc(c.Faults, func(f sim.Fault) bool { return f.Kind == sim.Crash && f.At > 7*time.Second }) &&
			(limited(c.Rules) || slices.ContainsFunc(c.Faults, func(f sim.Fault) bool { return limited(f.Rules) }))
	}, never)
	const want = `version: 1
seed: 1
duration: 7.716s
regions: {a: 1}
limits: {domain: edge, descriptors: [{key: q, rate_limit: {unit: minute}}]}
workloads: []
faults: [{fault: crash, at: 7.7s}]
`
	if string(s.file) != want {
		t.Errorf("%swant\n%s", s.file, want)
	}
}

func TestShrinkOfARunThatPasses(t *testing.T) {
	passes := strings.Replace(large, "outside: {c: lost}", "", 1)
	if small, err := Shrink([]byte(passes), never); small != nil || err != nil {
		t.Error(small, err)
	}
	if _, err := Shrink([]byte("duration: x"), never); err == nil {
		t.Error("no error for a scenario that cannot be read")
	}
}
