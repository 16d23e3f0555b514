package overage

import (
	"fmt"

	"github.com/georld/rld/internal/sat"
)

// AlarmKind says what an alarm is about.
type AlarmKind uint8

// The kinds of alarm.
const (
	// CapProtects: the overage expected of the counts alone is above the
	// budget. The rights gate is what holds the bound now.
	CapProtects AlarmKind = iota
	// Stranded: a region ran out of rights while the limit had room.
	Stranded
	// Deaf: a region heard nothing from another for three times the usual
	// age. It decides by its own rights and the last counts.
	Deaf
	// BoundBroken: more was admitted than the rights allow. An operator's word was
	// not true, or this is a fault of rld or of what was measured.
	BoundBroken
)

var alarmNames = [...]string{"cap protects", "stranded rights", "deaf region", "bound broken"}

// String returns a name for people.
func (k AlarmKind) String() string {
	if int(k) >= len(alarmNames) {
		return "unknown"
	}
	return alarmNames[k]
}

// Alarm is something an operator should know of now.
type Alarm struct {
	Kind AlarmKind
	Text string
}

// maxAlarms bounds the alarms of one report: of many deaf links, the first.
const maxAlarms = 8

// alarms looks at the latest label and the ages of now, and for broken bounds
// at all windows kept.
func (h *History) alarms(p *Report) []Alarm {
	if p.Rule.Mode == Strict {
		return nil // a home holds it, whatever is heard
	}
	var list []Alarm
	if hits, all := h.excess(&p.Rule); hits > 0 {
		list = append(list, Alarm{BoundBroken, fmt.Sprintf("%s hits more than the rights of %s were "+
			"admitted in a window: rights.first_start or a retire was said that was not true, or this is a "+
			"fault of rld to report",
			grouped(float64(hits)), grouped(float64(all)))})
	}
	if b, bounded := p.Rule.gated(); bounded {
		if p.PredictedNow.Ratio > b.Ratio() {
			list = append(list, Alarm{CapProtects, fmt.Sprintf("counts alone would go %s over the limit "+
				"now, the budget is %v: the rights of each region hold it",
				pct(p.PredictedNow.Ratio), b)})
		}
	}
	if hits := h.strandedNow(); hits > 0 {
		list = append(list, Alarm{Stranded, fmt.Sprintf("%s hits were denied for want of rights in the "+
			"latest window while less than 90%% of the limit was used",
			grouped(float64(hits)))})
	}
	remains := "its own rights still bound it"
	if !p.Bounded {
		remains = "it admits up to the limit of its own"
	}
	for i := range h.regions {
		for j := range h.regions {
			if l := h.link(i, j); l.AgeP99Ms > 0 && l.AgeNowMs > 3*l.AgeP99Ms && len(list) < maxAlarms {
				list = append(list, Alarm{Deaf, fmt.Sprintf("%s has not heard from %s for %s, usually %s: %s",
					p.Rule.Regions[i], p.Rule.Regions[j], length(l.AgeNowMs), length(l.AgeP99Ms), remains)})
			}
		}
	}
	return list
}

// excess returns by how many hits a window went beyond its rights, and these
// rights: of the worst window, 0 when all kept to them.
func (h *History) excess(r *Rule) (hits, all uint64) {
	for k := range h.count {
		w := h.at(k)
		if !w.Gated {
			continue
		}
		held := rights(limitOf(w, r), w.Budget)
		if beyond := sat.Sub(admittedOf(w), held); beyond > hits {
			hits, all = beyond, held
		}
	}
	return hits, all
}

// strandedNow sums the stranded hits of the latest label.
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
