package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server/admin/api"
)

func newExplain(p process) *cobra.Command {
	// What may be asked is what `rld check` may ask, at another listener.
	o := checkOptions{hits: 1}
	var call *rldv1.CheckRequest
	cmd := query[api.ExplainAnswer]{
		path: "/v1/explain",
		request: func(args []string) (_ url.Values, _ any, err error) {
			if o.hits == 0 {
				return nil, nil, errors.New("--hits 0 asks for nothing: use 1 or more")
			}
			if call, err = o.question(args); err != nil {
				return nil, nil, err
			}
			return nil, explainQuery(call), nil
		},
		lacks: func(a *api.ExplainAnswer) string {
			if n := len(call.GetDescriptors()); len(a.Descriptors) != n {
				return fmt.Sprintf("%d of %s explained", len(a.Descriptors), suggest.Plural(n, "descriptor"))
			}
			return ""
		},
		text: func(a *api.ExplainAnswer) string { return callExplained(call, a) },
	}.command(p, &cobra.Command{
		Use:   "explain --domain DOMAIN KEY=VALUE...",
		Short: "Explain how a running daemon would decide a request",
		Long: "Ask a running daemon how it would decide a request now, and why: the rule and its place\n" +
			"in the files, the owner of the key and whether it is reachable, the counts of each\n" +
			"region and their age, the rights, the results of both gates, and the headers of the\n" +
			"answer. Nothing is charged. The KEY=VALUE arguments and --descriptor are those of rld\n" +
			"check. The exit code is 0 when there is an answer, admitted or denied, and 2 when there\n" +
			"is none, also for wrong usage.",
		Example: "  rld explain --domain edge endpoint=/login user=abc\n" +
			"  rld explain --domain edge --descriptor org=acme --descriptor org=acme,key=k1 -o json",
		Args: cobra.ArbitraryArgs,
	})
	o.addFlags(cmd, "hits that each descriptor would be charged")
	return cmd
}

// explainQuery puts a question as the admin listener takes it.
func explainQuery(q *rldv1.CheckRequest) *api.ExplainQuery {
	out := &api.ExplainQuery{Domain: q.GetDomain(), Hits: q.GetHits()}
	for _, d := range q.GetDescriptors() {
		var entries []api.ExplainEntry
		for _, e := range d.GetEntries() {
			entries = append(entries, api.ExplainEntry{Key: e.GetKey(), Value: e.GetValue()})
		}
		out.Descriptors = append(out.Descriptors, api.ExplainDescriptor{Entries: entries})
	}
	return out
}

// callExplained formats an answer: the verdict, a block of lines for each
// descriptor, and the status and headers of the HTTP answer.
func callExplained(q *rldv1.CheckRequest, a *api.ExplainAnswer) string {
	var b strings.Builder
	verdict := "ALLOWED"
	if !a.Allowed {
		verdict = "DENIED"
	}
	if a.RefusedBy != "" {
		verdict += " by " + printable(a.RefusedBy)
	}
	if a.Shadow && !a.Allowed {
		verdict += ", but admitted: the daemon is in shadow mode"
	}
	fmt.Fprintf(&b, "%s (nothing was charged), as seen by %s\n", verdict, daemonText(&a.Self))
	for i := range a.Descriptors {
		fmt.Fprintf(&b, "\n%s\n", descriptorText(q.GetDescriptors()[i]))
		t := lines{tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)}
		t.descriptor(a, &a.Descriptors[i])
		t.end()
	}
	if a.HTTPStatus > 0 {
		fmt.Fprintf(&b, "\nOver HTTP: %d\n", a.HTTPStatus)
		for _, h := range a.Headers {
			fmt.Fprintf(&b, "  %s: %s\n", printable(h.Name), printable(h.Value))
		}
	}
	return b.String()
}

// lines writes aligned pairs of a name and a value.
type lines struct{ t *tabwriter.Writer }

// add writes a pair and escapes unprintable characters of the value.
func (l lines) add(name, format string, args ...any) {
	fmt.Fprintf(l.t, "  %s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
}

// end flushes the pairs. Writes to the strings.Builder below cannot fail.
func (l lines) end() { _ = l.t.Flush() }

// descriptor adds the lines of a descriptor.
func (l lines) descriptor(a *api.ExplainAnswer, d *api.Explained) {
	l.rule(a.Domain, d)
	if d.Limit == nil {
		return
	}
	l.add("limit", "%s", limitInForce(d.Limit))
	l.add("key", "%s", d.Key)
	if d.NextKey != "" {
		l.add("next key", "%s, of the next cluster secret: block and reset both", d.NextKey)
	}
	l.strictKey("", a.At, d.StrictKey)
	l.strictKey("reserve ", a.At, d.Reserve)
	if len(d.Counts) > 0 {
		l.add("counts", "%s", countsText(d.Counts))
	}
	if g := d.Estimate; g != nil {
		l.add("estimate", "%s: %d counted + %d expected at peers + %d requested, capacity %d",
			gateText(g.Passes), g.Counted, g.Extrapolated, a.Hits, g.Capacity)
	}
	l.rights(d.Rights)
	l.verdict(d.Verdict)
}

func (l lines) rule(domain string, d *api.Explained) {
	if d.Rule == nil {
		text := "none"
		if d.WhyNoRule != "" {
			text += ": " + d.WhyNoRule
		}
		if d.Closest != "" {
			text += fmt.Sprintf(" (did you mean %q?)", d.Closest)
		}
		l.add("rule", "%s", text)
		return
	}
	text := domain + ": " + d.Rule.Path
	if d.Rule.Name != "" {
		text += ", named " + d.Rule.Name
	}
	if d.Rule.File != "" {
		text += fmt.Sprintf(", at %s:%d", d.Rule.File, d.Rule.Line)
	}
	l.add("rule", "%s", text)
	if d.Limit == nil {
		l.add("limit", "none: %s", noLimitText(d.WhyNoLimit))
	}
}

func noLimitText(why api.WhyNoLimit) string {
	switch why {
	case api.LimitUnlimited:
		return "the rule is unlimited"
	case api.LimitReplaced:
		return "another limit of the call replaces it"
	case api.LimitNone:
		return "the rule has none"
	}
	return string(why)
}

// limitInForce is a limit in few words: "5/1m fixed_window, strict, placement
// owner".
func limitInForce(l *api.LimitInForce) string {
	parts := []string{
		windowText(l.Requests, l.WindowSeconds) + " " + l.Algorithm,
	}
	if l.Burst > 0 {
		parts = append(parts, fmt.Sprintf("burst %d", l.Burst))
	}
	parts = append(parts, l.Consistency, "scope "+l.Scope)
	if l.Placement != "" {
		parts = append(parts, "placement "+l.Placement)
	}
	if l.Budget != nil {
		parts = append(parts, "overage budget "+percentOf(*l.Budget))
	}
	if l.OnFailure != "" {
		parts = append(parts, "on failure "+l.OnFailure)
	}
	for _, is := range []struct {
		so   bool
		text string
	}{{l.Quota, "quota"}, {l.Shadow, "shadow"}, {l.Override, "came with the call"}, {l.Blocked, "blocked by an operator"}} {
		if is.so {
			parts = append(parts, is.text)
		}
	}
	if l.ResetAt != nil {
		parts = append(parts, "reset by an operator at "+timeShown(l.ResetAt))
	}
	return strings.Join(parts, ", ")
}

func countsText(all []api.RegionCount) string {
	parts := make([]string, 0, len(all))
	for _, c := range all {
		text := fmt.Sprintf("%s %d", c.Region, c.Hits)
		switch {
		case c.StalenessSeconds == nil:
			text += " (no data)"
		case c.Stamp == "":
			text += fmt.Sprintf(" (%s old)", secondsShown(c.StalenessSeconds))
		default:
			text += fmt.Sprintf(" (%s old, stamp %s)", secondsShown(c.StalenessSeconds), c.Stamp)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func gateText(passes bool) string {
	if passes {
		return "passes"
	}
	return "denies"
}

func (l lines) rights(g *api.RightsGate) {
	if g == nil {
		return
	}
	gate := gateText(g.Passes)
	if g.Passes && g.Left == 0 && g.WhyNot != "" {
		gate += " by on_failure"
	}
	text := fmt.Sprintf("%s: %d allotted + %d received - %d given - %d used: %d left", gate,
		g.Allotment, g.Received, g.Given, g.Used, g.Left)
	if g.Window != nil {
		text += ", window " + windowStart(g.Window)
	}
	if g.WhyNot != "" {
		text += "; no allotment: " + g.WhyNot
	}
	l.add("rights", "%s", text)
}

func (l lines) verdict(v *api.Verdict) {
	if v == nil {
		return
	}
	text := "allowed"
	if !v.Allowed {
		text = "denied"
	}
	text += fmt.Sprintf(", remaining %d, reset in %s", v.Remaining, secondsShown(&v.ResetSeconds))
	switch {
	case v.RetrySeconds != nil:
		text += ", retry in " + secondsShown(v.RetrySeconds)
	case v.Never:
		text += ", retry never"
	}
	if v.DelaySeconds > 0 {
		text += ", hold back " + secondsShown(&v.DelaySeconds)
	}
	if v.Degraded != "" {
		text += ", degraded: " + v.Degraded
		if v.Degraded == "keys_full" {
			text += " (no room for one more key of this rule)"
		}
	}
	l.add("verdict", "%s", text)
}

// windowStart formats the start of a window.
func windowStart(t *time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// daemonText returns region/name, or the incarnation of an unknown daemon.
func daemonText(d *api.DaemonRef) string {
	switch {
	case d.Name == "" && d.Incarnation == "":
		return "a daemon alone"
	case d.Name == "":
		return printable(d.Incarnation)
	case d.Region == "":
		return printable(d.Name)
	}
	return printable(d.Region + "/" + d.Name)
}
