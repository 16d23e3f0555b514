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
	if len(r.Rules) > 0 {
		ruleTable(&b, r.Rules)
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
	fmt.Fprintln(t, "RULE\tALGORITHM\tLIMIT\tADMITTED\tDENIED\tLABELS\tOVERAGE\tMEAN\tBOUND\tFALSE DENIALS")
	for _, r := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(r.Rule), r.Algorithm, Count(r.Limit),
			Count(r.Admitted), Count(r.Denied), Count(r.Labels), Ratio(r.OverageRatioMax),
			Ratio(r.OverageRatioMean), Ratio(r.Bound), Ratio(r.FalseDenialRatio))
	}
	_ = t.Flush() // into a strings.Builder: nothing can fail
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
	fmt.Fprintf(t, "staleness\tp50 %s, p99 %s in a region; p50 %s, p99 %s across; unsent p99 %s\n",
		Millis(s.RegionP50Ms), Millis(s.RegionP99Ms), Millis(s.AcrossP50Ms), Millis(s.AcrossP99Ms),
		Millis(s.UnsentP99Ms))
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

// closing writes the verdict, what was found, and how to see it again.
func closing(b *strings.Builder, r *sim.Result, command string) {
	b.WriteString("\n" + plain(judge(r).Text) + "\n")
	for _, a := range r.Auditors {
		if a.Violations > 0 && a.First != "" {
			fmt.Fprintf(b, "  %s: %s\n", plain(a.Name), plain(a.First))
		}
	}
	if r.Code() != sim.ExitFine && command != "" {
		fmt.Fprintf(b, "The same again: %s\n", command)
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
