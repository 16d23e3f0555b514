package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/sim/scenario"
	"github.com/georld/rld/sim/shrink"
)

// shrinkTime is how long a run is shrunk.
const shrinkTime = 2 * time.Minute

// shrunk is what is left of a run that found a mutation.
type shrunk struct {
	Faults, Rules, Daemons, Runs int

	Way      string
	Seconds  float64 // of the search
	Scenario string
}

// shrink shrinks the run. It returns how the run fails, "" if it does not.
func (n *named) shrink() (small *shrunk, what string) {
	cfg, err := n.draw()
	if err != nil {
		return nil, err.Error()
	}
	file, err := scenario.Format(cfg)
	if err != nil {
		return nil, err.Error()
	}
	begin := time.Now()
	s, err := shrink.Shrink(file, func() bool { return time.Since(begin) > shrinkTime })
	if err != nil || s == nil {
		return nil, fmt.Sprintf("cannot be shrunk: %v", err)
	}
	return &shrunk{
		Faults: len(s.Config.Faults), Rules: len(s.Config.Rules.Rules()), Daemons: s.Config.Daemons(), Runs: s.Runs,
		Way: s.Way, Seconds: time.Since(begin).Seconds(), Scenario: string(s.File),
	}, s.Way
}

// shrinkAll shrinks the runs of mutations that the swarm catches, until there
// are as many as the options ask for, and prints the table. Mutations of all
// packages come in turn, in a drawn order.
func (r *runner) shrinkAll(ctx context.Context, list []*mutation, kept *results, out io.Writer) error {
	var rows [][4]float64
	fmt.Fprintln(out, "| mutation | seed | fails by | faults | rules | daemons | seconds |\n|---|---|---|---|---|---|---|")
	for _, m := range inTurn(list, r.o.seed) {
		if len(rows) == r.o.shrink {
			break
		}
		if _, err := r.try(ctx, m, kept); err != nil {
			return err
		}
		o, _ := kept.of(m, swarmSuite)
		if !o.Caught {
			continue
		}
		run, _, _ := strings.Cut(o.By, ":")
		if o.Shrunk == nil {
			f, err := r.play(ctx, []string{playCommand, "-seeds", fmt.Sprint(r.o.runs), "-run", run, "-shrink"}, r.bundle.numbers[m])
			if err != nil {
				return err
			}
			if f == nil || f.Shrunk == nil {
				return fmt.Errorf("%s: %s is not shrunk: %+v", m.Name, run, f)
			}
			o.Shrunk = f.Shrunk
			if err := kept.add(m, swarmSuite, o); err != nil {
				return err
			}
		}
		s := o.Shrunk
		rows = append(rows, [4]float64{float64(s.Faults), float64(s.Rules), float64(s.Daemons), s.Seconds})
		fmt.Fprintf(out, "| %s | %s | %s | %d | %d | %d | %.0f |\n", m.Name, strings.TrimPrefix(run, "seed "), s.Way,
			s.Faults, s.Rules, s.Daemons, s.Seconds)
	}
	if len(rows) == 0 {
		return fmt.Errorf("none of %d mutations is caught by the swarm", len(list))
	}
	fmt.Fprint(out, "| median of ", len(rows), " | | ")
	for column := range len(rows[0]) {
		slices.SortFunc(rows, func(a, b [4]float64) int { return int(1000 * (a[column] - b[column])) })
		fmt.Fprintf(out, "| %.0f ", rows[len(rows)/2][column])
	}
	_, err := fmt.Fprintln(out, "|")
	return err
}

// inTurn returns the mutations that are not equivalent, in a drawn order, with
// the first of each package before the second of any.
func inTurn(list []*mutation, seed uint64) []*mutation {
	list = slices.DeleteFunc(drawnOrder(list, seed), func(m *mutation) bool { return m.Equivalent != "" })
	turn, next := map[*mutation]int{}, map[string]int{}
	for _, m := range list {
		turn[m] = next[m.pkg()]
		next[m.pkg()]++
	}
	slices.SortStableFunc(list, func(a, b *mutation) int { return turn[a] - turn[b] })
	return list
}
