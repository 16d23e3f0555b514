package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/replica"
)

// ControlLanguage returns the limits language of the control log in a region.
func ControlLanguage(region string) control.Language {
	return replica.Language(region, limits.Options{MergeDomains: true})
}

// changeRegion draws a note or a change of a region.
func (a *faults) changeRegion(w *World) control.Change {
	change := control.Change{Note: &control.Note{Text: fmt.Sprint("note ", a.rng.IntN(100))}}
	if a.rng.IntN(2) == 0 {
		ops := []control.RegionOp{control.AddRegion, control.WeighRegion, control.DrainRegion, control.RemoveRegion}
		names := append(slices.Clone(w.regions), "new-1", "new-2")
		change = control.Change{Region: &control.RegionChange{
			Op: ops[a.rng.IntN(len(ops))], Name: names[a.rng.IntN(len(names))], Weight: uint32(a.rng.IntN(control.Whole)),
		}}
	}
	return change
}

// change draws a change of the limits for a daemon: rules, a version before, or
// an override. Half of the changes are of nothing here.
func (a *faults) change(d *Daemon) control.Change {
	c := &control.LimitsChange{}
	switch a.rng.IntN(8) {
	case 0, 1:
		set, err := control.NewRuleSet(a.ruleFiles())
		if err != nil {
			return control.Change{}
		}
		c.Rules = &control.RulesChange{Set: set}
	case 2:
		v := control.Version{Index: uint64(a.rng.IntN(50))}
		if r := d.control.Record(); r != nil && len(r.Limits.Applied) > 0 && a.rng.IntN(4) > 0 {
			v = r.Limits.Applied[a.rng.IntN(len(r.Limits.Applied))].Version
		}
		c.Rules = &control.RulesChange{Rollback: &v}
	case 3:
		o := &control.OverrideChange{Unset: a.rng.IntN(3) == 0}
		o.Target, o.Setting = a.target()
		o.For = int64(a.rng.IntN(30_000))
		if a.rng.IntN(4) == 0 && o.Key == "" && !o.Unset {
			o.Setting = control.Setting{Mode: []control.Mode{control.ModeShadow, control.ModeEnforce}[a.rng.IntN(2)]}
		}
		c.Override = o
	default:
		return control.Change{}
	}
	return control.Change{Limits: c}
}

// target draws a rule or a key, and what an override sets.
func (a *faults) target() (control.Target, control.Setting) {
	if a.rng.IntN(4) == 0 {
		return control.Target{Key: fmt.Sprintf("%032x", a.rng.IntN(3))}, control.Setting{Block: true}
	}
	return control.Target{Domain: "log", Rule: []string{"user", "path"}[a.rng.IntN(2)]}, control.Setting{Requests: new(uint32(a.rng.IntN(200)))}
}

// emergency draws an emergency override.
func (a *faults) emergency(wall int64) control.Emergency {
	e := control.Emergency{Author: "operator", Until: wall/int64(time.Millisecond) + int64(a.rng.IntN(60_000))}
	e.Target, e.Setting = a.target()
	return e
}

// ruleFiles draws small rules, one of them with a fault now and then.
func (a *faults) ruleFiles() []control.RuleFile {
	var b strings.Builder
	b.WriteString("domain: log\ndescriptors:\n")
	for _, key := range []string{"user", "path"} {
		if a.rng.IntN(4) == 0 {
			continue
		}
		unit := []string{"second", "minute", "furlong"}[min(2, a.rng.IntN(20)/9)]
		fmt.Fprintf(&b, "  - key: %s\n    rate_limit: {unit: %s, requests_per_unit: %d", key, unit, a.rng.IntN(200))
		b.WriteString([]string{"", "", ", algorithm: token_bucket", ", overage_budget: 5%", ", consistency: strict"}[a.rng.IntN(5)] + "}\n")
	}
	return []control.RuleFile{{Name: "log.yaml", Text: b.String()}}
}
