package demo

import (
	"fmt"
	"strings"
)

// Plain returns a report as one line, for where there is no terminal.
func Plain(r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s up %d/%d", clock(r.Seconds), r.Daemons.Up, r.Daemons.Of)
	if r.Daemons.SeeLeast != r.Daemons.Up {
		fmt.Fprintf(&b, " (seen %s)", fromTo(r.Daemons.SeeLeast, r.Daemons.SeeMost))
	}
	fmt.Fprintf(&b, " %.0f/s", r.Traffic.PerSecond)
	if r.Traffic.Failed > 0 {
		fmt.Fprintf(&b, " failed %d", r.Traffic.Failed)
	}
	for i := range r.Rules {
		rule := &r.Rules[i]
		fmt.Fprintf(&b, " | %s %d/%d", rule.Rule, rule.Total, rule.Limit)
		if rule.Budget != nil {
			fmt.Fprintf(&b, " budget %s", rule.boundText())
		}
		if rule.Strict {
			fmt.Fprintf(&b, " strict, worst %s %s", rule.windowName(), rule.fullest())
		}
		if worst := rule.shown(); worst > 0 {
			fmt.Fprintf(&b, " over %s worst %s", share(rule.Over), share(worst))
		}
		if rule.Rule == "spread" {
			b.WriteString(" (")
			for j, region := range r.Regions {
				if j > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%s %d", region, rule.Admitted[region])
			}
			b.WriteString(")")
		}
	}
	oldest := StalenessReport{Seconds: -2}
	for _, s := range r.Staleness {
		if s.Seconds > oldest.Seconds && s.In != s.Of {
			oldest = s
		}
	}
	if oldest.Seconds >= 0 {
		fmt.Fprintf(&b, " | oldest view %.2f s (in %s of %s)", oldest.Seconds, oldest.In, oldest.Of)
	}
	if len(r.WAN.Cuts) > 0 {
		fmt.Fprintf(&b, " | cut in %d", len(r.WAN.Parts))
	}
	if r.Converging {
		b.WriteString(" | converging")
	} else if r.Convergence != nil {
		fmt.Fprintf(&b, " | converged in %.2f s", *r.Convergence)
	}
	return b.String()
}
