package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/report"
)

// tally adds up the runs of a swarm.
type tally struct {
	seeds uint64
	met   []met // all situations
	sum   sim.Result
	walls []float32 // seconds of each run, for the median

	// Of the runs that were played by merged counts alone: how many, how many
	// of them exceeded what rights would have summed to, and the worst.
	naive, exceeded uint64
	worst           float64 // as a ratio of all rights
	worstSeed       uint64
}

// met is a situation that took effect: in how many seeds, and the lowest of
// them.
type met struct {
	name         string
	seeds, first uint64
}

// addSituations takes the situations that took effect in a seed.
func (t *tally) addSituations(r *sim.Result) {
	for i, s := range r.Situations {
		if i == len(t.met) {
			t.met = append(t.met, met{name: s.Name})
		}
		if m := &t.met[i]; s.Times > 0 {
			if m.seeds++; m.seeds == 1 || r.Seed < m.first {
				m.first = r.Seed
			}
		}
	}
}

// writeSituations prints a table of all situations.
func (t *tally) writeSituations(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-40s %7s   %s\n", "SITUATION", "SEEDS", "ONE OF THEM")
	for _, m := range t.met {
		first := "-"
		if m.seeds > 0 {
			first = fmt.Sprint(m.first)
		}
		fmt.Fprintf(b, "%-40s %7s   %s\n", m.name, report.Count(m.seeds), first)
	}
}

// maxWalls bounds the durations kept for the median; they are the first ones.
const maxWalls = 1 << 20

// add takes one seed, r nil when it has no result.
func (t *tally) add(r *sim.Result) {
	t.seeds++
	if r == nil {
		return
	}
	t.sum.Include(r)
	t.addSituations(r)
	if len(t.walls) < maxWalls {
		t.walls = append(t.walls, float32(r.WallSeconds))
	}
}

// addNaive takes what merged counts alone made of a seed.
func (t *tally) addNaive(o *outcome) {
	if o.naive == nil {
		return
	}
	t.naive++
	windows, worst := o.naive.Exceeded()
	if windows == 0 {
		return
	}
	t.exceeded++
	// Seeds come in no order: of equals the lowest counts.
	if worst > t.worst || worst == t.worst && o.seed < t.worstSeed {
		t.worst, t.worstSeed = worst, o.seed
	}
}

// writeNaive prints how merged counts alone would have done.
func (t *tally) writeNaive(b *strings.Builder, o *swarmOptions) {
	fmt.Fprintf(b, "\nMerged counts alone exceeded the sum of all rights in %s of %s with rights",
		report.Count(t.exceeded), report.Plural(t.naive, "run"))
	if t.exceeded > 0 {
		fmt.Fprintf(b, ", at worst by %.0f %%:\n  %s --policy %s", 100*t.worst, o.command(t.worstSeed), sim.Naive)
	}
	b.WriteByte('\n')
}

// write prints the sums: the runs, the auditors, and the reached paths.
func (t *tally) write(b *strings.Builder, o *swarmOptions, wall time.Duration) {
	virtual := time.Duration(t.sum.VirtualSeconds * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(b, "%s, %s and %s of virtual time in %s", report.Plural(t.sum.Events, "event"),
		report.Plural(t.sum.Decisions, "decision"), virtual, wall.Round(100*time.Millisecond))
	if n := len(t.walls); n > 0 {
		slices.Sort(t.walls)
		fmt.Fprintf(b, "; a median run takes %s", report.Millis(float64(t.walls[n/2])*1000))
	}
	b.WriteByte('\n')
	if t.seeds == 0 {
		return
	}
	if audits := t.sum.Auditors; len(audits) > 0 {
		slices.SortFunc(audits, func(x, y sim.Audit) int { return cmp.Compare(x.Name, y.Name) })
		b.WriteByte('\n')
		report.Auditors(b, audits)
	}
	if t.naive > 0 {
		t.writeNaive(b, o)
	}
	if o.situations {
		t.writeSituations(b)
	}
	var missed []string
	for _, k := range gossip.EventKinds() {
		if t.sum.Seen[k.String()] == 0 {
			missed = append(missed, k.String())
		}
	}
	fmt.Fprintf(b, "\n%d of %d kinds of events were seen", len(gossip.EventKinds())-len(missed), len(gossip.EventKinds()))
	if len(missed) > 0 {
		fmt.Fprintf(b, ", not: %s", strings.Join(missed, ", "))
	}
	b.WriteByte('\n')
}

// features names the features that a run reached: events of daemons, auditors
// that made checks, each of them under each kind of faults, and pairs of these
// kinds.
func features(cfg *sim.Config, r *sim.Result) []string {
	reached := slices.Sorted(maps.Keys(r.Seen))
	for _, a := range r.Auditors {
		if a.Checks > 0 {
			reached = append(reached, "check:"+a.Name)
		}
	}
	var kinds []string
	for i := range cfg.Faults {
		kinds = append(kinds, cfg.Faults[i].Kind.String())
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	all := slices.Clone(reached)
	for i, kind := range kinds {
		for _, name := range slices.Concat(reached, kinds[i+1:]) {
			all = append(all, kind+"+"+name)
		}
	}
	return all
}

// maxReached bounds the names that a summary lists.
const maxReached = 8

// writeReached prints how many features the corpus had and how many are new.
func (s *swarm) writeReached(b *strings.Builder) {
	entries := s.corpus.Entries()
	fmt.Fprintf(b, "\nCorpus %s: %s played first, %d of another version dropped, now %s\n", s.o.corpus,
		report.Plural(uint64(len(s.first)), "seed"), s.dropped, report.Plural(uint64(len(entries)), "seed"))
	if len(s.added) == 0 {
		b.WriteString("Nothing was reached for the first time\n")
		return
	}
	b.WriteString("Reached for the first time:\n")
	for i, e := range s.added {
		if i == maxReached {
			fmt.Fprintf(b, "  and more by %s\n", report.Plural(uint64(len(s.added)-i), "seed"))
			break
		}
		names := e.First[:min(len(e.First), maxReached)]
		fmt.Fprintf(b, "  seed %d: %s", e.Seed, strings.Join(names, ", "))
		if more := len(e.First) - len(names); more > 0 {
			fmt.Fprintf(b, " and %d more", more)
		}
		b.WriteByte('\n')
	}
}

// writeAgain prints the version, and the command that plays the same seeds.
func (s *swarm) writeAgain(b *strings.Builder) {
	fresh := min(s.next.Load(), s.tally.seeds)
	fresh -= min(fresh, uint64(len(s.first)))
	if fresh == 0 {
		return
	}
	known := ""
	if s.o.known {
		known = " --known"
	}
	fmt.Fprintf(b, "\nrld %s; the same seeds: rld sim swarm --seed %d --runs %d%s\n", version(), s.o.seed, fresh, known)
}
