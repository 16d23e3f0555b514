package overage

import "fmt"

// explainStrict is Explain for a strict rule, whatever the traffic.
func explainStrict(p *Report) [3]string {
	never := fmt.Sprintf("o window of %s ever admits more than the limit of %s hits",
		length(p.Rule.WindowMs), grouped(float64(p.Rule.Limit)))
	worst := "N" + never + ", whatever is late, partitioned or crashes, while a majority of the strict voters keeps its disks."
	if p.Rule.Open {
		worst = "While its owner answers, n" + never + "; while it does not, on_failure: allow admits every hit, and " +
			"nothing bounds that."
	}
	why := "Its owner counts a hit before it is admitted, and a majority of the strict voters has that on disk."
	if p.AchievedWorst.Hits > 0 {
		why += fmt.Sprintf(" %s over was the most seen.", pct(p.AchievedWorst.Ratio))
	}
	return [3]string{worst, why, fmt.Sprintf("No budget moves it: it costs %s where no lease for the key is left, and the answers of "+
		"on_failure while the owner cannot be reached; consistency: eventual with an overage_budget would cost "+
		"neither.", waits(p))}
}
