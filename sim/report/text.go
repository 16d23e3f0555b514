package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/georld/rld/sim"
)

// Text writes a result for a terminal: what ran, its rules, what watched it,
// and the verdict in the last lines. command is what runs the same again; it
// is printed when something was found.
func Text(w io.Writer, r *sim.Result, command string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d: %s, %s, %s s of virtual time in %s s\n", plain(r.Scenario), r.Seed,
		Plural(r.Regions, "region"), Plural(r.Daemons, "daemon"), short(r.VirtualSeconds), short(r.WallSeconds))
	fmt.Fprintf(&b, "%s, %s: %s hits admitted, %s denied\n\n", Plural(r.Events, "event"),
		Plural(r.Decisions, "decision"), Count(r.Admitted), Count(r.Denied))
	if r.Drawn != "" {
		b.WriteString("Drawn from the seed:\n")
		for line := range strings.Lines(r.Drawn) {
			b.WriteString("  " + plain(strings.TrimSuffix(line, "\n")) + "\n")
		}
		b.WriteByte('\n')
	}
	if len(r.Rules) > 0 {
		ruleTable(&b, r.Rules)
		b.WriteByte('\n')
	}
	if len(r.Grid) > 0 {
		gridTable(&b, r.Grid)
		b.WriteByte('\n')
	}
	if len(r.Auditors) > 0 {
		Auditors(&b, r.Auditors)
		b.WriteByte('\n')
	}
	rest(&b, r)
	closing(&b, r, command)
	_, err := io.WriteString(w, b.String())
	return err
}

// ruleTable writes a row a rule.
func ruleTable(b *strings.Builder, all []sim.RuleResult) {
	t := newTable(b)
	fmt.Fprintln(t, "RULE\tALGORITHM\tLIMIT\tADMITTED\tDENIED\tWINDOWS\tOVERAGE\tMEAN\tBOUND\tFALSE DENIALS")
	for _, r := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(r.Rule), r.Algorithm, Count(r.Limit),
			Count(r.Admitted), Count(r.Denied), Count(r.Windows), ratio(r.OverageRatioMax),
			ratio(r.OverageRatioMean), ratio(r.Bound), ratio(r.FalseDenialRatio))
	}
	_ = t.Flush() // into a strings.Builder: nothing can fail
}

// gridTable writes a block for each size, a row for each policy and a column
// for each pattern: mean and worst overage, and behind the bar the mean false
// denials. A second row has the figures of the design.
func gridTable(b *strings.Builder, all []sim.GridCell) {
	for _, size := range sizes(all) {
		fmt.Fprintf(b, "Windows of %s s, views %s s old: overage mean/worst | false denials\n",
			short(size.Window), short(size.Lag))
		t := newTable(b)
		fmt.Fprintln(t, "POLICY\t"+strings.ToUpper(strings.Join(size.Patterns, "\t")))
		for _, row := range size.Rows {
			is, design := plain(row.Policy), "  design"
			for _, c := range row.Cells {
				is += "\t" + figures(c.OverageMean, c.OverageWorst, c.FalseDenial)
				if c.Exceeded > 0 {
					is += fmt.Sprintf(" (%d over)", c.Exceeded)
				}
				if d := c.Design; d != nil {
					design += "\t" + figures(d.OverageMean, d.OverageWorst, d.FalseDenial)
				} else {
					design += "\t-"
				}
			}
			fmt.Fprintln(t, is)
			fmt.Fprintln(t, design)
		}
		_ = t.Flush() // as above
		b.WriteByte('\n')
	}
	b.WriteString("N over: windows above the sum of all rights; without rights, above the budget.\n")
}

func figures(mean, worst, denied float64) string {
	return fmt.Sprintf("%.1f/%.1f%% | %.1f%%", 100*mean, 100*worst, 100*denied)
}

// Auditors writes a row an auditor.
func Auditors(b *strings.Builder, all []sim.Audit) {
	t := newTable(b)
	fmt.Fprintln(t, "AUDITOR\tCHECKS\tVIOLATIONS")
	for _, a := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\n", plain(a.Name), Count(a.Checks), Count(a.Violations))
	}
	_ = t.Flush() // as above
}

// rest writes the figures of which there is one each.
func rest(b *strings.Builder, r *sim.Result) {
	s := r.Staleness
	t := newTable(b)
	if len(r.Grid) == 0 || s != (sim.Staleness{}) {
		fmt.Fprintf(t, "staleness\tp50 %s, p99 %s in a region; p50 %s, p99 %s across; unsent p99 %s\n",
			Millis(s.RegionP50Ms), Millis(s.RegionP99Ms), Millis(s.AcrossP50Ms), Millis(s.AcrossP99Ms),
			Millis(s.UnsentP99Ms))
	}
	if x := r.Rights; x != nil {
		fmt.Fprintf(t, "rights\t%s: denied %s by the estimate, %s by rights, %s by both; %s given, %s received, %s messages a decision, %s\n",
			plain(x.Policy), Count(x.ByEstimate), Count(x.ByRights), Count(x.ByBoth), Count(x.Given), Count(x.Received),
			short(x.PerDecision), Plural(x.Epochs, "epoch"))
		for i := range r.Rules {
			if e := &r.Rules[i]; e.Exceeded > 0 {
				fmt.Fprintf(t, "\t%s went over its budget of %s in %s, by %s at worst\n", plain(e.Rule),
					ratio(e.Budget), Plural(e.Exceeded, "window"), ratio(e.ExceededWorst))
			}
		}
	}
	if x := r.Strict; x != nil {
		strict(t, x)
	}
	n := r.Traffic
	fmt.Fprintf(t, "sent\t%s bytes a decision: %s of %s; %s lost, %s twice, %s damaged\n", short(r.BytesPerDecision),
		Plural(n.Frames, "frame"), Plural(n.Bytes, "byte"), Count(n.Lost+n.Overflowed), Count(n.Duplicated),
		Count(n.Mangled))
	if len(r.Seen) > 0 {
		var seen []string
		for _, name := range slices.Sorted(maps.Keys(r.Seen)) {
			seen = append(seen, name+" "+Count(r.Seen[name]))
		}
		fmt.Fprintf(t, "events\t%s\n", plain(strings.Join(seen, ", ")))
	}
	fmt.Fprintf(t, "trace hash\t%s\n", r.TraceHash)
	_ = t.Flush() // as above
}

// strict writes the figures of strict keys.
func strict(t io.Writer, x *sim.StrictResult) {
	fmt.Fprintf(t, "strict keys\t%s decisions, %s of them at once, %s without an owner; missed %s of the hits that windows could admit\n",
		Count(x.Decisions), ratio(x.LocalRatio), Count(x.Failed), ratio(x.UnderRatio))
	fmt.Fprintf(t, "\t%s waited: p50 %s, p99 %s, at most %s\n", Plural(x.Waited, "call"), Millis(x.WaitP50Ms),
		Millis(x.WaitP99Ms), Millis(x.WaitMaxMs))
	fmt.Fprintf(t, "\t%s messages a decision: %s, %s, %s, %s; at most %s a second at one daemon\n", short(x.PerDecision),
		Plural(x.Requests, "request"), Plural(x.Grants, "grant"), Plural(x.Accepts, "accept"), Plural(x.Accepted, "answer"),
		Plural(x.RequestsPerSecond, "request"))
	fmt.Fprintf(t, "\t%s lost to another owner, %s, %s\n", Plural(x.Takeovers, "ballot"),
		Plural(x.Layouts, "change")+" of layout", Plural(x.Syncs, "sync"))
}

// closing writes the verdict, the violations, and the command that repeats the
// run.
func closing(b *strings.Builder, r *sim.Result, command string) {
	b.WriteString("\n" + plain(judge(r).Text) + "\n")
	for _, a := range r.Auditors {
		if a.Violations > 0 && a.First != "" {
			fmt.Fprintf(b, "  %s: %s\n", plain(a.Name), plain(a.First))
		}
	}
	if r.Code() != sim.ExitFine && command != "" {
		fmt.Fprintf(b, "To run it again: %s\n", command)
	}
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 3, ' ', 0) }

// Plural is a number of things: "1 rule", "1,200 rules".
func Plural[N int | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Count(n) + " " + what + "s"
}

// plain keeps what came from a scenario from steering the terminal or breaking
// a table.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
