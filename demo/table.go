package demo

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The table is made for a terminal of tableWidth columns, whatever it has.
const tableWidth = 80

// The widths of the columns beside those of the regions.
const (
	ruleWidth  = 8
	limitWidth = 11
	totalWidth = 7
	overWidth  = 8
	worstWidth = 7
	boundWidth = 7
	widest     = 11 // of a region's column
)

// Table returns a report as lines of at most tableWidth columns. How many
// there are depends on the regions and rules alone.
func Table(r *Report) []string {
	out := []string{r.title(), r.network(), ""}
	out = append(out, r.ruleLines(r.Regions)...)
	out = append(out, "")
	out = append(out, r.staleLines(r.Regions)...)
	out = append(out, r.knownLine(), r.healLine())
	for i := range out {
		out[i] = fitTo(strings.TrimRight(out[i], " "), tableWidth)
	}
	return out
}

func (r *Report) title() string {
	d := &r.Daemons
	s := fmt.Sprintf("rld demo %s  %d/%d daemons up, each sees %s", clock(r.Seconds), d.Up, d.Of,
		fromTo(d.SeeLeast, d.SeeMost))
	if d.Ghosts > 0 {
		s += fmt.Sprintf(" and %d dead", d.Ghosts)
	}
	s += fmt.Sprintf("  %.0f/s", r.Traffic.PerSecond)
	if n := r.Traffic.Failed; n > 0 {
		s += fmt.Sprintf(", %s failed", count(int(n)))
	}
	return s
}

func (r *Report) network() string {
	w := &r.WAN
	if len(w.Cuts) == 0 {
		return fmt.Sprintf("network %s, not partitioned: limits hold, except for hits in transit", w.Profile)
	}
	var parts []string
	for _, p := range w.Parts {
		parts = append(parts, strings.Join(p, "+"))
	}
	if len(w.Parts) == 1 {
		var cuts []string
		for _, c := range w.Cuts {
			cuts = append(cuts, c[0]+" and "+c[1])
		}
		return "CUT between " + strings.Join(cuts, ", ")
	}
	return fmt.Sprintf("CUT in %d, rules without rights can go %s over: %s", len(w.Parts), share(w.bound()), strings.Join(parts, " | "))
}

// bound is the overage that the parts of a network can come to: each of them
// may admit a whole limit.
func (w *WANReport) bound() float64 { return float64(max(len(w.Parts)-1, 0)) }

func (r *Report) ruleLines(regions []string) []string {
	width := regionWidth(len(regions), tableWidth-ruleWidth-limitWidth-totalWidth-overWidth-worstWidth-boundWidth)
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s%*s", ruleWidth, "RULE", limitWidth, "LIMIT")
	for _, name := range regions {
		fmt.Fprintf(&b, "%*s", width, shorten(name, width-1))
	}
	fmt.Fprintf(&b, "%*s%*s%*s%*s", totalWidth, "TOTAL", overWidth, "OVERAGE", worstWidth, "WORST", boundWidth, "BOUND")
	out := []string{b.String()}
	for i := range r.Rules {
		rule := &r.Rules[i]
		b.Reset()
		fmt.Fprintf(&b, "%-*s%*s", ruleWidth, shorten(rule.Rule, ruleWidth-1),
			limitWidth, fmt.Sprintf("%s/%ds", count(rule.Limit), rule.Window))
		for _, name := range regions {
			fmt.Fprintf(&b, "%*s", width, count(rule.Admitted[name]))
		}
		fmt.Fprintf(&b, "%*s%*s%*s%*s", totalWidth, count(rule.Total),
			overWidth, share(rule.Over), worstWidth, rule.worstText(), boundWidth, rule.boundText())
		out = append(out, b.String())
	}
	return out
}

// worstText is the worst overage, and of a strict rule, which has none, what
// its fullest window came to, where that fits.
func (r *RuleReport) worstText() string {
	if text := r.fullest(); r.Strict && r.shown() == 0 && len(text) < worstWidth {
		return text
	}
	return share(r.shown())
}

func (r *Report) staleLines(regions []string) []string {
	width := regionWidth(len(regions), tableWidth-2*widest)
	ages := make(map[[2]string]float64)
	for _, s := range r.Staleness {
		ages[[2]string{s.In, s.Of}] = s.Seconds
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s", 2*widest, "AGE OF THE VIEW OF")
	for _, name := range regions {
		fmt.Fprintf(&b, "%*s", width, shorten(name, width-2))
	}
	out := []string{b.String()}
	for _, in := range regions {
		b.Reset()
		fmt.Fprintf(&b, "%-*s", 2*widest, shorten("in "+in, 2*widest-1))
		for _, of := range regions {
			text := "-"
			if v, ok := ages[[2]string{in, of}]; ok && v >= 0 {
				text = fmt.Sprintf("%.2f s", v)
			}
			fmt.Fprintf(&b, "%*s", width, text)
		}
		out = append(out, b.String())
	}
	return out
}

func (r *Report) knownLine() string {
	k := &r.KnownAfter
	if k.InRegion.Samples+k.Across.Samples == 0 {
		return "propagation: not measured yet"
	}
	s := "propagation"
	if q := k.InRegion; q.Samples > 0 {
		s += fmt.Sprintf(" in the region %.2f s (p99 %.2f)", q.P50, q.P99)
	}
	if q := k.Across; q.Samples > 0 {
		s += fmt.Sprintf(", across regions %.2f s (p99 %.2f)", q.P50, q.P99)
	}
	return s
}

func (r *Report) healLine() string {
	switch {
	case r.Converging:
		return "healed: counts still converge"
	case r.Convergence != nil:
		return fmt.Sprintf("counts converged %.2f s after the last heal", *r.Convergence)
	case len(r.WAN.Cuts) > 0:
		return "use heal to end the cut"
	}
	return "use help for the commands, such as cut and heal"
}

// regionWidth returns how wide a column of each of n regions may be.
func regionWidth(n, room int) int { return min(room/max(n, 1), widest) }

// clock writes seconds as minutes and seconds.
func clock(s float64) string { return fmt.Sprintf("%d:%02d", int(s)/60, int(s)%60) }

func fromTo(low, high int) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// share writes a share as a percentage, with a dash for none.
func share(v float64) string {
	switch p := v * 100; {
	case p <= 0:
		return "-"
	case p < 100:
		return fmt.Sprintf("%.1f%%", p)
	case p < 100_000:
		return fmt.Sprintf("%.0f%%", p)
	}
	return ">999x"
}

// count writes a number in at most six letters.
func count(n int) string {
	switch {
	case n < 100_000:
		return fmt.Sprint(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", min(n/1_000_000, 99_999))
}

// shorten shortens a name to a width but keeps its last letter: the end of a
// region's name often distinguishes it from others.
func shorten(s string, width int) string {
	n := utf8.RuneCountInString(s)
	if n <= width || width < 3 {
		return fitTo(s, width)
	}
	r := []rune(s)
	return string(r[:width-2]) + "~" + string(r[n-1:])
}

func fitTo(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width, 0)])
}
