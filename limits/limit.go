package limits

import (
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// limit reads the rate_limit of a descriptor; nil when it has none. The limit
// that it returns after a fault only serves to find more faults.
func (l *loader) limit(d *decoded, defaults *rldFields) *rules.Limit {
	r := d.limit
	if r == nil {
		return nil
	}
	out := &rules.Limit{Multiplier: 1}
	out.Shadow, _ = l.boolean(d.set[fShadowMode], fShadowMode)
	out.Quota, _ = l.boolean(d.set[fQuotaMode], fQuotaMode)
	out.Name, _ = l.text(r.set[fName], "name")
	out.Replaces = l.replaces(r.set[fReplaces], out.Name)
	counted := true
	if s := r.set[fRequests]; s.given() {
		counted = yamlpos.Whole(&l.Collector, &out.Requests, 0, ^uint32(0))(s.Value, fRequests.String())
	}
	unlimited, known := l.boolean(r.set[fUnlimited], fUnlimited)
	own := l.rldFields(r)
	if unlimited {
		out.Unlimited, out.Requests = true, 0
		l.checkUnlimited(r)
		return out
	}
	if known {
		out.Unit = l.unit(r)
	}
	b := builder{
		Collector: &l.Collector, options: &l.options, short: &l.short, brief: &l.brief, owned: &l.owned,
		out: out, own: &own, defaults: defaults, limit: r,
	}
	b.build(counted)
	return out
}

// checkUnlimited reports the fields that a limit without a count cannot have.
func (l *loader) checkUnlimited(r *decoded) {
	unit := r.set[fUnit]
	if text, ok := l.text(unit, "unit"); ok && unit.given() {
		if unitOf(text) != rules.NoUnit {
			l.Errorf(unit.pos(), "drop one of the two", "unlimited with a unit")
		} else if text != "" {
			l.Warnf(unit.pos(), "drop it", "unlimited with a unit, %s, which is none", yamlpos.Quote(text))
		}
	}
	for id := firstOwn; id < fieldCount; id++ {
		if s := r.set[id]; s.given() {
			l.Errorf(s.Key.Pos, "drop one of the two", "unlimited counts nothing, so %s has no meaning", id)
		}
	}
}

// unitOf returns the unit of a name in any letter case, NoUnit for none.
func unitOf(name string) rules.Unit {
	for i, u := range rules.Units() {
		if strings.EqualFold(u, name) {
			return rules.Second + rules.Unit(i)
		}
	}
	return rules.NoUnit
}

func (l *loader) unit(r *decoded) rules.Unit {
	s := r.set[fUnit]
	text, ok := l.text(s, "unit")
	u, units := unitOf(text), rules.Units()
	switch {
	case !ok, u != rules.NoUnit:
	case text != "":
		low := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), "s")
		l.Errorf(s.pos(), suggest.Hint(low, units, "it is one of "+suggest.List(units)+"; for other lengths add unit_multiplier"),
			"unknown unit %s", yamlpos.Quote(text))
	case !r.meant[fUnit] && !r.meant[fUnlimited]:
		l.Errorf(s.posOr(r.at.Pos), "add unit: "+strings.Join(units, ", ")+", or unlimited: true", "rate_limit without a unit")
	}
	return u
}

// replaces reads the names of the limits that a limit replaces.
func (l *loader) replaces(s setting, own string) []string {
	if !s.given() {
		return nil
	}
	if s.Value.Kind != yamlpos.List {
		l.Errorf(s.Value.Pos, "write a list: [{name: other}]", "replaces is %s", s.Value.Describe())
		return nil
	}
	var names []string
	for _, item := range s.Value.Items {
		var r decoded
		if !l.isMap(item) || !l.apply(item, inReplaces, &r) {
			continue
		}
		at := r.set[fName].posOr(item.Pos)
		name, ok := l.text(r.set[fName], "name")
		switch {
		case !ok, name == "" && r.meant[fName]:
		case name == "":
			l.Errorf(at, "write - name: other", "replaces a limit without a name")
		case name == own:
			l.Errorf(at, "name another limit, or drop it", "the limit %s replaces itself", yamlpos.Quote(name))
		default:
			names = append(names, name)
		}
	}
	return names
}
