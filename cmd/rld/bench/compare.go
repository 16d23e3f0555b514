package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/georld/rld/internal/load"
)

// comparison is the result of --compare as JSON.
type comparison struct {
	Load        loadReport `json:"load"`
	Target      string     `json:"target"`
	Compare     string     `json:"compare"`
	Interrupted bool       `json:"interrupted,omitempty"`
	Error       string     `json:"error,omitempty"` // which ended the rounds
	Warnings    []string   `json:"warnings,omitempty"`
	Figures     []figure   `json:"figures"`
	Rounds      [][2]run   `json:"rounds"` // target, then compare
}

// figure is one figure of both targets.
type figure struct {
	Name string `json:"name"`
	// Target and Compare are the medians of the rounds.
	Target  float64 `json:"target"`
	Compare float64 `json:"compare"`
	// Ratio is of the ratios target / compare of the rounds; nil where the
	// other target has 0 in a round.
	Ratio *spread `json:"ratio"`
}

// spread is the median of some values, and the least and the greatest of them.
type spread struct {
	Median  float64 `json:"median"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

// read is how a figure is read from a run.
type read struct {
	name string
	of   func(*run) float64
	show func(float64) string
}

var reads = []read{
	{"answered_per_second", func(r *run) float64 { return r.Answered }, func(v float64) string { return decimal(v) + "/s" }},
	{"p50", func(r *run) float64 { return r.Latency.P50 }, shown},
	{"p90", func(r *run) float64 { return r.Latency.P90 }, shown},
	{"p99", func(r *run) float64 { return r.Latency.P99 }, shown},
	{"p99_9", func(r *run) float64 { return r.Latency.P999 }, shown},
}

// figures compares the runs of the rounds, one at least.
func figures(rounds [][2]run) []figure {
	var all []figure
	for _, f := range reads {
		var a, b, ratios []float64
		for i := range rounds {
			x, y := f.of(&rounds[i][0]), f.of(&rounds[i][1])
			a, b = append(a, x), append(b, y)
			if y > 0 {
				ratios = append(ratios, x/y)
			}
		}
		out := figure{Name: f.name, Target: load.Median(a), Compare: load.Median(b)}
		if len(ratios) == len(rounds) {
			out.Ratio = &spread{load.Median(ratios), slices.Min(ratios), slices.Max(ratios)}
		}
		all = append(all, out)
	}
	return all
}

// runRounds measures both targets in each round, the other one first in each
// second round, and prints the comparison of the whole rounds. A run without an
// answer ends the rounds.
func (o *options) runRounds(ctx context.Context, targets []*target, out, progress io.Writer) error {
	c := comparison{Load: o.load(), Target: o.target, Compare: o.compare, Rounds: [][2]run{}}
	order := []int{0, 1}
	var failure error
	for n := range o.rounds {
		var pair [2]run
		for _, i := range order {
			counts, elapsed := o.measure(ctx, targets[i], progress, fmt.Sprintf("round %d of %d, %s: ", n+1, o.rounds, targets[i].addr))
			pair[i] = newRun(targets[i].addr, &counts, elapsed)
			if ctx.Err() != nil {
				break
			}
			if failure = measured(&pair[i]); failure != nil {
				failure = fmt.Errorf("round %d, %s: %w", n+1, targets[i].addr, failure)
				c.Error = failure.Error()
				break
			}
		}
		if c.Interrupted = ctx.Err() != nil; c.Interrupted || failure != nil {
			break
		}
		c.Rounds = append(c.Rounds, pair)
		slices.Reverse(order)
	}
	switch {
	case len(c.Rounds) > 0:
	case failure != nil:
		return failure
	default:
		return errors.New("nothing was compared: the load ended in the first round")
	}
	c.Figures = figures(c.Rounds)
	for side, t := range targets {
		sum := c.sum(side)
		c.Warnings = append(c.Warnings, o.warnings(t.addr, &sum)...)
	}
	err := o.write(out, &c, c.text(o))
	warn(progress, c.Warnings)
	return errors.Join(err, failure)
}

// text returns the comparison for people.
func (c *comparison) text(o *options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "target   %s\ncompare  %s\nload     %s\n", printable(c.Target), printable(c.Compare), o.describe())
	fmt.Fprintf(&b, "rounds   %d", len(c.Rounds))
	if len(c.Rounds) < o.rounds {
		fmt.Fprintf(&b, " of %d: ended in the next one, which does not count", o.rounds)
	}
	b.WriteString("\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "medians\ttarget\tcompare\tratio\tlowest to highest\n")
	for i, f := range c.Figures {
		ratio, from := "-", "-"
		if f.Ratio != nil {
			ratio = fmt.Sprintf("%.3f", f.Ratio.Median)
			from = fmt.Sprintf("%.3f to %.3f", f.Ratio.Lowest, f.Ratio.Highest)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", strings.NewReplacer("_per_second", "", "_", ".").Replace(f.Name),
			reads[i].show(f.Target), reads[i].show(f.Compare), ratio, from)
	}
	_ = w.Flush() // the writer below is a strings.Builder: nothing can fail
	for side, name := range []string{"target", "compare"} {
		sum := c.sum(side)
		fmt.Fprintf(&b, "\ncalls of %s  %s", name, sum.text())
	}
	b.WriteString("\n")
	return b.String()
}

// sum returns the calls of a side in all rounds.
func (c *comparison) sum(side int) (sum calls) {
	for i := range c.Rounds {
		sum.add(&c.Rounds[i][side].Calls)
	}
	return sum
}

func (c *calls) add(more *calls) {
	c.Due += more.Due
	c.Allowed += more.Allowed
	c.Denied += more.Denied
	c.Failed += more.Failed
	c.Unsent += more.Unsent
	c.SentLate += more.SentLate
}
