package overage

import (
	"fmt"

	"github.com/georld/rld/internal/sat"
)

// maxAlarms bounds the alarms of one report: of many stale views, the first.
const maxAlarms = 8

// alarms describes the conditions that need the operator's attention now. It
// checks the latest window, the present ages and, for broken bounds, all kept
// windows.
func (h *History) alarms(p *Report) []string {
	if p.Rule.Mode == Strict {
		return nil // the owner enforces it, however old the views are
	}
	var list []string
	if hits, all := h.excess(); hits > 0 {
		// More was admitted than the rights allow.
		list = append(list, fmt.Sprintf("%s hits more than the rights of %s were "+
			"admitted in a window: what was removed as stopped still runs, or this is a "+
			"fault of rld to report",
			grouped(float64(hits)), grouped(float64(all))))
	}
	if b, bounded := p.Rule.gated(); bounded {
		if p.PredictedNow.Ratio > b.Ratio() {
			// The rights gate holds the bound now.
			list = append(list, fmt.Sprintf("counts alone would go %s over the limit "+
				"now, the budget is %v: the rights of each region hold it",
				pct(p.PredictedNow.Ratio), b))
		}
	}
	if hits := h.strandedNow(); hits > 0 {
		list = append(list, fmt.Sprintf("%s hits were denied for want of rights in the "+
			"latest window while less than 90%% of the limit was used",
			grouped(float64(hits))))
	}
	remains := "its own rights still bound it"
	switch _, gated := p.Rule.gated(); {
	case !gated:
		remains = "it admits up to the limit of its own"
	case p.Rule.Open:
		remains += " while it has any"
	}
	for i := range h.regions {
		for j := range h.regions {
			if l := h.link(i, j); l.AgeP99Ms > 0 && l.AgeNowMs > 3*l.AgeP99Ms && len(list) < maxAlarms {
				list = append(list, fmt.Sprintf("%s has received nothing from %s for %s, usually %s: %s",
					p.Rule.Regions[i], p.Rule.Regions[j], length(l.AgeNowMs), length(l.AgeP99Ms), remains))
			}
		}
	}
	return list
}

// excess returns the hits of the worst window beyond its rights, and these
// rights; 0 if all windows kept to them.
func (h *History) excess() (hits, all uint64) {
	for k := range h.count {
		w := h.at(k)
		if !w.Gated {
			continue
		}
		admitted, _ := w.totals()
		held := rights(w.Limit, w.Budget)
		if beyond := sat.Sub(admitted, held); beyond > hits {
			hits, all = beyond, held
		}
	}
	return hits, all
}

// strandedNow returns the stranded hits of the latest window.
func (h *History) strandedNow() uint64 {
	if h.count == 0 {
		return 0
	}
	sum, latest := uint64(0), h.at(h.count-1).StartMs
	for k := h.count - 1; k >= 0 && h.at(k).StartMs == latest; k-- {
		for i := range h.regions {
			sum = clip(sum + clip(h.at(k).Regions[i].Stranded))
		}
	}
	return sum
}
