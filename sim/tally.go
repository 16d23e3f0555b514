package sim

import "github.com/georld/rld/rules"

// tallies counts what became of the hits of each rule, whatever set it is in.
type tallies struct {
	regions   int
	rules     []ruleTally
	decisions uint64
	admitted  uint64 // hits
	denied    uint64 // hits
	degraded  uint64 // descriptors
}

// ruleTally is one rule's. By region in step is what came since the last row
// of the series.
type ruleTally struct {
	id       rules.ID
	name     string
	limit    *rules.Limit // of the newest set
	admitted uint64
	denied   uint64

	stepAdmitted []float64
	stepDenied   float64
}

// RuleName is what results call a rule: its domain and path.
func RuleName(r *rules.Rule) string { return r.Domain + ": " + r.Path }

// place returns the number of a rule's tally, -1 for one that limits nothing.
// It is that of the rule's identity, whatever set the rule is of.
func (t *tallies) place(r *rules.Rule) int {
	if r.Limit == nil || r.Limit.Unlimited {
		return -1
	}
	for i := range t.rules {
		if t.rules[i].id == r.ID {
			return i
		}
	}
	t.rules = append(t.rules, ruleTally{
		id: r.ID, name: RuleName(r), limit: r.Limit, stepAdmitted: make([]float64, t.regions),
	})
	return len(t.rules) - 1
}

// note counts the hits of one descriptor.
func (t *tallies) note(rule, region int, hits uint64, allowed, refused bool) {
	if rule < 0 {
		return
	}
	r := &t.rules[rule]
	switch {
	case allowed:
		r.admitted += hits
		r.stepAdmitted[region] += float64(hits)
	case refused:
		r.denied += hits
		r.stepDenied += float64(hits)
	}
}

// decision counts a call.
func (t *tallies) decision(hits uint64, allowed bool) {
	t.decisions++
	if allowed {
		t.admitted += hits
	} else {
		t.denied += hits
	}
}
