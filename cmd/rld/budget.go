package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

func newBudget(p process) *cobra.Command {
	cmd := budgetQuery(nil, budgetTable).command(p, &cobra.Command{
		Use:   "budget",
		Short: "Show how far each limit may be exceeded, and was exceeded",
		Long: "Ask a running daemon how far the limits that daemons count together may be exceeded, and\n" +
			"were exceeded: the prediction for counts alone, the overage now and the greatest of the\n" +
			"last hour, and the bound. Rights bound a rule with an overage_budget, and one of\n" +
			"consistency partition, even if messages are late or lost, or regions are partitioned. Only the number\n" +
			"of regions bounds any other. Below the rules: the shares of the rights, and the\n" +
			"staleness of the view of each region. The exit code is 0 when there is an answer and 2\n" +
			"when there is none, also for wrong usage.",
		Example: "  rld budget\n" +
			"  rld budget explain login\n" +
			"  rld budget advise login --false-denials 0.1%",
		Args: noArguments,
	})
	cmd.AddCommand(newBudgetExplain(p), newBudgetAdvise(p))
	return cmd
}

func newBudgetExplain(p process) *cobra.Command {
	request := func(args []string) (url.Values, any, error) { return url.Values{"rule": args}, nil, nil }
	return budgetQuery(request, explainText).command(p, &cobra.Command{
		Use:   "explain RULE",
		Short: "Explain the worst case of a rule, its cause, and the setting that changes it",
		Long: "Explain in three sentences the worst case of a rule, its cause, and the setting that\n" +
			"changes it, from the measurements of the daemon that answers; then the holders of its\n" +
			"rights, and why this daemon holds none if so. RULE is the name of a limit or its path,\n" +
			"as rld budget shows it, with the domain in front where two have the same. The\n" +
			"exit code is 0 when there is an answer and 2 when there is none, also for a rule that is\n" +
			"not in force and for wrong usage.",
		Example: "  rld budget explain login\n" +
			"  rld budget explain 'edge: tenant=* > user_id'",
		Args: oneRule,
	})
}

func newBudgetAdvise(p process) *cobra.Command {
	target := "0.1%"
	q := budgetQuery(func(args []string) (url.Values, any, error) {
		if _, err := api.ParsePercent(target); err != nil {
			return nil, nil, fmt.Errorf("--false-denials: %w", err)
		}
		return url.Values{"rule": args, "false_denials": {target}}, nil, nil
	}, adviceText)
	q.verdict = noAdvice
	cmd := q.command(p, &cobra.Command{
		Use:   "advise RULE",
		Short: "Print the overage budget that keeps false denials of a rule to a target",
		Long: "Print the line to paste into the rate_limit of a rule, so that at most this part of the\n" +
			"hits that fit the limit is denied for lack of rights, and the effect of that budget. The\n" +
			"result follows from the demand of the windows that the answering daemon remembers. The\n" +
			"exit code is 0 when there is such a budget, 1 when there is none, 2 when there is no\n" +
			"answer, also for a rule that is not in force and for wrong usage.",
		Example: "  rld budget advise login --false-denials 0.1%",
		Args:    oneRule,
	})
	cmd.Flags().StringVar(&target, "false-denials", target, "part of the hits that may be denied falsely")
	return cmd
}

var oneRule = one("rules", "one, by the name of its limit or by its path", "")

// budgetQuery asks for rules.
func budgetQuery(
	request func([]string) (url.Values, any, error), text func(*api.BudgetAnswer) string,
) query[api.BudgetAnswer] {
	return query[api.BudgetAnswer]{
		path:    "/v1/budget",
		request: request,
		lacks:   func(a *api.BudgetAnswer) string { return unless(a.Rules != nil, "list of rules") },
		text: func(a *api.BudgetAnswer) string {
			if a.Alone {
				return alone + "It never exceeds a limit.\n"
			}
			if a.VoterOnly {
				return witnessText + "rld budget at a daemon of another region shows the limits.\n"
			}
			return text(a)
		},
	}
}

// noAdvice returns the cause of missing advice as an error, or nil.
func noAdvice(answer *api.BudgetAnswer) error {
	var problems []string
	for _, r := range answer.Rules {
		if r.Advice != nil && r.Advice.Problem != "" {
			problems = append(problems, ruleText(r.Domain, r.Rule, r.Name)+": "+printable(r.Advice.Problem))
		}
	}
	slices.Sort(problems)
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "\n"))
}

// budgetTable shows an answer to people: a row a rule, then the regions, then
// the agreements on rights.
func budgetTable(a *api.BudgetAnswer) string {
	if len(a.Rules) == 0 {
		return "No rule is counted by several daemons together.\n"
	}
	t := newTable("RULE", "LIMIT", "MODE", "PLACEMENT", "BUDGET", "PREDICTED", "NOW", "WORST 1H", "BOUND",
		"FALSE DENIALS", "HEADROOM")
	for _, r := range a.Rules {
		t.row(ruleText(r.Domain, r.Rule, r.Name), windowText(r.Limit, r.WindowSeconds), modeText(&r), or(r.Placement, "-"),
			percentShown(r.Budget), percentShown(r.Predicted), percentShown(r.Achieved), percentShown(r.AchievedWorst),
			boundText(&r), percentShown(r.FalseDenials), percentShown(r.Headroom))
	}
	text := t.String()
	if a.Omitted > 0 {
		text += fmt.Sprintf("and %d more that are not observed\n", a.Omitted)
	}
	return text + "\n" + sharesTable(a) + viewsLine(a) + rightsText(a) + alarmLines(a)
}

// sharesTable shows the share of each region in the rights of each rule and,
// for rules without rights, the hits that each region admitted.
func sharesTable(a *api.BudgetAnswer) string {
	t := newTable("RULE", "REGION", "WEIGHT", "RIGHTS", "ADMITTED")
	rows := 0
	for _, r := range a.Rules {
		used := func(s api.RegionShare) bool { return s.Admitted > 0 || s.Rights != nil }
		if !slices.ContainsFunc(r.Regions, used) {
			continue
		}
		rows++
		name := ruleText(r.Domain, r.Rule, r.Name)
		for _, s := range r.Regions {
			rights := "-"
			if s.Rights != nil {
				rights = strconv.FormatUint(*s.Rights, 10)
			}
			t.row(name, printable(s.Region), percentShown(s.Weight), rights, s.Admitted)
			name = ""
		}
	}
	if rows == 0 {
		return ""
	}
	return t.String() + "\n"
}

// viewsLine shows the staleness of each region's view.
func viewsLine(a *api.BudgetAnswer) string {
	var parts []string
	for _, v := range a.Views {
		age := "no data"
		if v.StalenessSeconds != nil {
			age = secondsShown(v.StalenessSeconds)
		}
		parts = append(parts, printable(v.Region)+" "+age)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Staleness of each region at %s: %s.\n", printable(a.Daemon), strings.Join(parts, ", "))
}

// rightsText describes the source of the daemon's rights, and the epochs that
// are not settled.
func rightsText(a *api.BudgetAnswer) string {
	r := a.Rights
	if r == nil {
		return "It holds no rights: state.dir is not set, and rules that need them are invalid.\n"
	}
	var b strings.Builder
	switch {
	case r.Holds && r.Since != nil:
		fmt.Fprintf(&b, "It has an allotment of rights in windows that start from %s on: "+
			"an earlier run or a former cluster may have used older ones.\n", r.Since.Format(time.RFC3339))
	case r.Holds:
		b.WriteString("It has an allotment of rights.\n")
	default:
		fmt.Fprintf(&b, "It has NO allotment of rights: %s.\n", printable(r.WhyNot))
	}
	if r.StoreFault != "" {
		fmt.Fprintf(&b, "It cannot store its promises: %s.\n", shortened(printable(r.StoreFault)))
	}
	b.WriteString(epochLines("regions", a.At, r.Regions) + epochLines("daemons of "+printable(a.Region), a.At, r.Daemons))
	return b.String()
}

// epochLines describes the epochs of a table.
func epochLines(what string, at time.Time, all []api.EpochState) string {
	var b strings.Builder
	for _, e := range all {
		state := "settled"
		switch {
		case !e.Settled && len(e.Unacknowledged) > 0:
			state = fmt.Sprintf("pending, waits for %s (here: %s)", few(printables(e.WaitsFor)), few(printables(e.Unacknowledged)))
		case !e.Settled && len(e.WaitsFor) > 0:
			state = "pending, waits for " + few(printables(e.WaitsFor))
		case !e.Settled:
			state = "pending"
		}
		since := "by configuration"
		if e.Since != nil {
			since = "proposed " + ago(at, e.Since) + " ago"
		}
		rows := ""
		if e.RuleWeights > 0 {
			rows = fmt.Sprintf(", and other weights for %s as above", suggest.Plural(e.RuleWeights, "rule"))
		}
		fmt.Fprintf(&b, "Shares of the %s: %s, %s: %s%s.\n", what, state, since, few(members(e.Members)), rows)
	}
	return b.String()
}

// members lists the members of an epoch with their shares.
func members(all []api.EpochMember) []string {
	sum := 0.0
	for _, m := range all {
		sum += float64(m.Weight)
	}
	out := make([]string, 0, len(all))
	for _, m := range all {
		part := 0.0
		if sum > 0 {
			part = float64(m.Weight) / sum
		}
		out = append(out, printable(m.Name)+" "+percentOf(part))
	}
	return out
}

func printables(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = printable(s)
	}
	return out
}

func alarmLines(a *api.BudgetAnswer) string {
	var b strings.Builder
	for _, r := range a.Rules {
		for _, text := range r.Alarms {
			fmt.Fprintf(&b, "! %s: %s\n", ruleText(r.Domain, r.Rule, r.Name), printable(text))
		}
	}
	return b.String()
}

// explainText is what rld budget explain prints.
func explainText(a *api.BudgetAnswer) string {
	var b strings.Builder
	for i, r := range a.Rules {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s, %s, %s\n\n", ruleText(r.Domain, r.Rule, r.Name), windowText(r.Limit, r.WindowSeconds), modeText(&r))
		for _, s := range r.Explanation {
			b.WriteString(printable(s) + "\n")
		}
		if r.Shadow {
			b.WriteString("It is in shadow mode: it denies nothing, and nothing bounds it. The above applies without shadow mode.\n")
		}
		b.WriteString(holdingText(a, &r))
		for _, text := range r.Alarms {
			fmt.Fprintf(&b, "! %s\n", printable(text))
		}
	}
	return b.String()
}

// holdingText describes the holders of a rule's rights.
func holdingText(a *api.BudgetAnswer, r *api.RuleBudget) string {
	if r.Budget == nil {
		return ""
	}
	var parts []string
	for _, s := range r.Regions {
		if s.Rights != nil {
			parts = append(parts, fmt.Sprintf("%s %d (%s)", printable(s.Region), *s.Rights, percentShown(s.Weight)))
		}
	}
	text := fmt.Sprintf("Rights of a window: %s; %s holds %d", strings.Join(parts, ", "), printable(a.Daemon), r.Held)
	if r.Held == 0 && r.WhyNot != "" {
		text += ": " + printable(r.WhyNot)
	}
	return text + ".\n"
}

// adviceText is what rld budget advise prints: what to paste goes first, as it
// is.
func adviceText(a *api.BudgetAnswer) string {
	var b strings.Builder
	for _, r := range a.Rules {
		if r.Advice == nil || r.Advice.Problem != "" {
			continue
		}
		for line := range strings.SplitSeq(r.Advice.YAML, "\n") {
			b.WriteString(printable(line) + "\n")
		}
		fmt.Fprintf(&b, "# %s: %s\n", ruleText(r.Domain, r.Rule, r.Name), printable(r.Advice.Text))
	}
	return b.String()
}

// ruleText is the name of a rule's limit, or else its path.
func ruleText(domain, rule, name string) string {
	return printable(cmp.Or(name, domain+": "+rule))
}

// windowText is a limit and its window: "300/10s".
func windowText(limit uint64, seconds float64) string {
	for _, u := range []struct {
		seconds float64
		name    string
	}{{86_400, "d"}, {3_600, "h"}, {60, "m"}} {
		if n := seconds / u.seconds; n >= 1 && n == math.Trunc(n) {
			return fmt.Sprintf("%d/%.0f%s", limit, n, u.name)
		}
	}
	return fmt.Sprintf("%d/%ss", limit, strconv.FormatFloat(seconds, 'f', -1, 64))
}

func modeText(r *api.RuleBudget) string {
	mode := or(printable(r.Consistency), "-")
	if r.Shadow {
		mode += ", shadow"
	}
	return mode
}

// boundText is the worst case, in brackets where no rights hold it.
func boundText(r *api.RuleBudget) string {
	switch {
	case r.Bound == nil:
		return "none"
	case r.Bounded:
		return percentOf(*r.Bound)
	}
	return "(" + percentOf(*r.Bound) + ")"
}

// percentShown is a part of 1 as a percentage, "-" for unknown.
func percentShown(v *float64) string {
	if v == nil {
		return "-"
	}
	return percentOf(*v)
}

func percentOf(v float64) string {
	switch p := v * 100; {
	case p <= 0:
		return "0%"
	case p < 0.005:
		return "<0.01%"
	case p < 10:
		return trimmed(p, 2) + "%"
	default:
		return trimmed(p, 1) + "%"
	}
}

// trimmed writes a number without zeros at its end.
func trimmed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
