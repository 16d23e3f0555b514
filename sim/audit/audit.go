package audit

import (
	"slices"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// All returns the auditors of a world, for sim.Options.
func All(w *sim.World) []*sim.Auditor { return build(w, nil) }

// Only returns a function like All for the auditors of some names.
func Only(names ...string) func(w *sim.World) []*sim.Auditor {
	return func(w *sim.World) []*sim.Auditor { return build(w, names) }
}

// build returns the auditors of the names, all for nil. The first one keeps the
// ground truth that the others share, and reports nothing.
func build(w *sim.World, names []string) []*sim.Auditor {
	t := newTruth(w)
	hasRights, hasOwners := w.Config().HasRights(), w.Config().HasOwners()
	all := []*sim.Auditor{t.auditor()}
	for _, a := range []struct {
		name  string
		build func(*sim.Auditor, *truth)
		runs  bool
	}{
		{"messages", messages, true},
		{"views", views, true},
		{"hlc", clocks, true},
		{"bounds", bounds, true},
		{"overage", overage, true},
		{"denials", denials, true},
		{"progress", progress, true},
		{"liveness", liveness, t.world.Config().Liveness > 0},
		{"cells", cells, true},
		{"refunds", refunds, true},
		{"decisions", decisions, true},
		{"convergence", convergence, true},
		{"status", status, true},
		{"rights", rights, hasRights},
		{"admitted", admitted, hasRights || hasOwners},
		{"strict", strict, hasOwners},
		{"control", controlLog, t.world.Config().Control != nil},
	} {
		if a.runs && (names == nil || slices.Contains(names, a.name)) {
			auditor := &sim.Auditor{Found: sim.Audit{Name: a.name}}
			a.build(auditor, t)
			all = append(all, auditor)
		}
	}
	return all
}

// finding is an auditor at work: what all of them need to report.
type finding struct {
	*sim.Auditor
	*truth
}

// ok counts a check that held, and returns whether it did. fail counts and
// describes one that did not; its arguments are made only then.
func (f *finding) ok(held bool) bool {
	if held {
		f.Pass(1)
	}
	return held
}

func (f *finding) fail(format string, args ...any) { f.Fail(f.world.Now(), format, args...) }

// check is ok and fail in one, for checks that are rare: its arguments are made
// each time.
func (f *finding) check(held bool, format string, args ...any) {
	if !f.ok(held) {
		f.fail(format, args...)
	}
}

// recordOf returns the record of a key, a new one at first.
func recordOf[K comparable, T any](all map[K]*T, k K) *T {
	r := all[k]
	if r == nil {
		r = new(T)
		all[k] = r
	}
	return r
}

// perRule keeps a record of each rule.
type perRule[T any] struct {
	byID   map[rules.ID]*T
	byName map[string]*T // by sim.RuleName
}

func newPerRule[T any]() perRule[T] {
	return perRule[T]{make(map[rules.ID]*T), make(map[string]*T)}
}

// of returns the record of a rule, a new one at first.
func (p *perRule[T]) of(r *rules.Rule) *T {
	s := p.byID[r.ID]
	if s == nil {
		s = recordOf(p.byName, sim.RuleName(r))
		p.byID[r.ID] = s
	}
	return s
}

// unknown is the time of what never happened.
const unknown = time.Duration(-1 << 63)
