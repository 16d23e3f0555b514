package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/report"
)

// tally adds up the runs of a swarm.
type tally struct {
	seeds     uint64
	events    uint64
	decisions uint64
	virtual   float64   // seconds
	walls     []float32 // seconds of each run, for the median
	audits    []sim.Audit
	seen      map[string]uint64

	// Of the runs that were played by merged counts alone: how many, how many
	// of them exceeded what rights would have summed to, and the worst.
	naive, exceeded uint64
	worst           sim.Exceeded
	worstSeed       uint64
}

// maxWalls bounds what is kept for the median; it is that of the first ones.
const maxWalls = 1 << 20

// add takes one seed, r nil when it has no result.
func (t *tally) add(r *sim.Result) {
	t.seeds++
	if r == nil {
		return
	}
	t.events += r.Events
	t.decisions += r.Decisions
	t.virtual += r.VirtualSeconds
	if len(t.walls) < maxWalls {
		t.walls = append(t.walls, float32(r.WallSeconds))
	}
	for _, a := range r.Auditors {
		i := slices.IndexFunc(t.audits, func(b sim.Audit) bool { return a.Name == b.Name })
		if i < 0 {
			t.audits = append(t.audits, sim.Audit{Name: a.Name})
			i = len(t.audits) - 1
		}
		t.audits[i].Checks += a.Checks
		t.audits[i].Violations += a.Violations
	}
	if t.seen == nil {
		t.seen = make(map[string]uint64)
	}
	for name, n := range r.Seen {
		t.seen[name] += n
	}
}

// addNaive takes what merged counts alone made of a seed.
func (t *tally) addNaive(o *outcome) {
	if o.naive == nil {
		return
	}
	t.naive++
	if o.naive.Windows == 0 {
		return
	}
	t.exceeded++
	// Seeds come in no order: of equals the lowest counts.
	if o.naive.Worst > t.worst.Worst || o.naive.Worst == t.worst.Worst && o.seed < t.worstSeed {
		t.worst, t.worstSeed = *o.naive, o.seed
	}
}

// writeNaive prints how merged counts alone would have done.
func (t *tally) writeNaive(b *strings.Builder) {
	fmt.Fprintf(b, "\nMerged counts alone exceeded what all rights sum to in %s of %s with rights",
		report.Count(t.exceeded), report.Plural(t.naive, "run"))
	if t.exceeded > 0 {
		fmt.Fprintf(b, ", at worst by %.0f %%:\n  %s --policy %s", 100*t.worst.Worst, swarmCommand(t.worstSeed), sim.Naive)
	}
	b.WriteByte('\n')
}

// write prints the sums: what ran, who watched, and which paths were reached.
func (t *tally) write(b *strings.Builder, wall time.Duration) {
	virtual := time.Duration(t.virtual * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(b, "%s, %s and %s of virtual time in %s", report.Plural(t.events, "event"),
		report.Plural(t.decisions, "decision"), virtual, wall.Round(100*time.Millisecond))
	if n := len(t.walls); n > 0 {
		slices.Sort(t.walls)
		fmt.Fprintf(b, "; a median run takes %s", report.Millis(float64(t.walls[n/2])*1000))
	}
	b.WriteByte('\n')
	if t.seeds == 0 {
		return
	}
	if len(t.audits) > 0 {
		slices.SortFunc(t.audits, func(x, y sim.Audit) int { return cmp.Compare(x.Name, y.Name) })
		b.WriteByte('\n')
		report.Auditors(b, t.audits)
	}
	if t.naive > 0 {
		t.writeNaive(b)
	}
	var missed []string
	for _, k := range gossip.EventKinds() {
		if t.seen[k.String()] == 0 {
			missed = append(missed, k.String())
		}
	}
	fmt.Fprintf(b, "\n%d of %d kinds of events were seen", len(gossip.EventKinds())-len(missed), len(gossip.EventKinds()))
	if len(missed) > 0 {
		fmt.Fprintf(b, ", not: %s", strings.Join(missed, ", "))
	}
	b.WriteByte('\n')
}
