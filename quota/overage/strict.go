package overage

import "fmt"

// explainStrict is Explain for a rule that its home holds, whatever the traffic.
func explainStrict(p *Report) [3]string {
	never := fmt.Sprintf("o window of %s ever admits more than the limit of %s hits",
		length(p.Rule.WindowMs), grouped(float64(p.Rule.Limit)))
	worst := "N" + never + ", whatever is late, cut off or crashes, while a majority of the home's replicas keeps its disks."
	if p.Rule.Open {
		worst = "While its home answers, n" + never + "; while it does not, on_failure: allow lets all pass, and " +
			"nothing bounds that."
	}
	why := "Its home counts a hit before it is admitted, and a majority of its replicas holds on disk that it did."
	if p.AchievedWorst.Hits > 0 {
		why += fmt.Sprintf(" %s over was the most seen.", pct(p.AchievedWorst.Ratio))
	}
	return [3]string{worst, why, fmt.Sprintf("No budget moves it: it costs %s where no rights to the key are kept, and what "+
		"on_failure says while the home cannot be reached; consistency: eventual with an overage_budget would cost "+
		"neither.", waits(p))}
}

// errStrict says that there is no budget to advise.
func errStrict(r *Rule) error {
	return fmt.Errorf("rule %q: a strict limit has no budget: its home holds it", r.Name)
}
