package node

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// scriptEpoch is where scripts start: 2026-01-01T00:00:00Z, the start of a
// window of every unit up to a day.
const scriptEpoch = int64(1_767_225_600_000)

// TestScripts replays testdata/single. The commands:
//
//	limits              puts the rules of the YAML below it in force
//	at T                moves both clocks to T after the start
//	step D              bends the wall clock by D, and not the monotonic one
//	call D k=v,k=v ...  asks in domain D, an argument a descriptor;
//	                    hits=N for all of them, times=N repeats the call
//	tick                lets expired keys go
//	keys                prints how many keys are live
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/single", func(t *testing.T, path string) {
		r := newRig(t, Default())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return r.run(t, d)
		})
	})
}

// rig is one node with clocks that a test turns by hand.
type rig struct {
	node  *Node
	front *Matcher
	mono  time.Duration
	bend  time.Duration
	call  Call
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	n, err := New(cfg, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{node: n}
	r.put(t, "domain: none")
	return r
}

// put puts limits in force.
func (r *rig) put(t testing.TB, yaml string) {
	t.Helper()
	set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(yaml)}}, limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	r.front = NewMatcher(set, rules.NewHasher([rules.SecretBytes]byte{1}), MatcherOptions{})
	r.node.SetRules(r.instant(), set)
}

func (r *rig) instant() Instant {
	wall := scriptEpoch*int64(time.Millisecond) + int64(r.mono+r.bend)
	return Instant{Mono: r.mono, Wall: wall}
}

// ask decides a call on the one node.
func (r *rig) ask(domain string, hits uint64, descriptors ...string) error {
	r.call.Reset()
	r.call.Domain = domain
	for _, text := range descriptors {
		d := rules.Descriptor{Hits: hits}
		for pair := range strings.SplitSeq(text, ",") {
			k, v, _ := strings.Cut(pair, "=")
			d.Entries = append(d.Entries, rules.Entry{Key: k, Value: v})
		}
		r.call.Descriptors = append(r.call.Descriptors, d)
	}
	if err := r.front.Resolve(&r.call); err != nil {
		return err
	}
	at := r.instant()
	r.node.Probe(at, r.call.Hits(), r.call.Statuses)
	r.front.Decide(&r.call)
	r.node.Charge(at, r.call.Hits(), r.call.Statuses)
	return nil
}

func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "limits":
		r.put(t, d.Input)
		return fmt.Sprintf("%d rules\n", len(r.front.Rules().Rules()))
	case "at":
		to, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil || to < r.mono {
			d.Fatalf(t, "at %s: want a time from %v on", d.CmdArgs[0].Key, r.mono)
		}
		r.mono = to
		return ""
	case "step":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		r.bend += by
		return ""
	case "call":
		return r.runCall(t, d)
	case "tick":
		r.node.Tick(r.instant())
		return ""
	case "keys":
		return fmt.Sprintf("%d live\n", r.node.Stats().LiveKeys)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (r *rig) runCall(t *testing.T, d *datadriven.TestData) string {
	domain, hits, times := d.CmdArgs[0].Key, uint64(1), 1
	var descriptors []string
	for _, a := range d.CmdArgs[1:] {
		text := a.String()
		switch a.Key {
		case "hits":
			hits, _ = strconv.ParseUint(a.Vals[0], 10, 64)
		case "times":
			times, _ = strconv.Atoi(a.Vals[0])
		default:
			descriptors = append(descriptors, text)
		}
	}
	allowed := 0
	for range times {
		if err := r.ask(domain, hits, descriptors...); err != nil {
			return err.Error() + "\n"
		}
		if r.call.Decision.Allowed {
			allowed++
		}
	}
	return r.render(times, allowed)
}

// render prints the verdict, then a line a descriptor.
func (r *rig) render(times, allowed int) string {
	var b strings.Builder
	switch {
	case times > 1:
		fmt.Fprintf(&b, "%d of %d allowed\n", allowed, times)
	case allowed == 1:
		b.WriteString("allowed\n")
	default:
		refused := &r.call.Statuses[r.call.Decision.Refused]
		fmt.Fprintf(&b, "refused by %s\n", refused.Rule.Path)
	}
	for i := range r.call.Statuses {
		st := &r.call.Statuses[i]
		if st.Limit == nil {
			b.WriteString("  no limit\n")
			continue
		}
		fmt.Fprintf(&b, "  %s: %d left, whole in %v", st.Rule.Path, st.Remaining, st.Reset)
		switch {
		case st.Never:
			b.WriteString(", over, never fits")
		case st.Over:
			fmt.Fprintf(&b, ", over, retry in %v", st.Retry)
		}
		if st.Delay > 0 {
			fmt.Fprintf(&b, ", wait %v", st.Delay)
		}
		if st.Degraded != NotDegraded {
			fmt.Fprintf(&b, ", degraded: %v", st.Degraded)
		}
		b.WriteString("\n")
	}
	return b.String()
}
