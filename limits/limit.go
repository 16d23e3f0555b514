package limits

import (
	"strings"

	"github.com/georld/rld/rules"
)

// limit reads the rate_limit of a descriptor; nil when it has none. What it
// returns after a fault is used for nothing but looking for more.
func (l *loader) limit(d *record, defaults *added) *rules.Limit {
	r := d.limit
	if r == nil {
		return nil
	}
	out := &rules.Limit{Multiplier: 1}
	out.Shadow, _ = l.boolean(d.set[fShadowMode], fShadowMode)
	out.Quota, _ = l.boolean(d.set[fQuotaMode], fQuotaMode)
	out.Name, _ = l.text(r.set[fName], "name")
	out.Replaces = l.replaces(r.set[fReplaces], out.Name)
	requests, counted := l.whole(r.set[fRequests], fRequests, 0)
	unlimited, known := l.boolean(r.set[fUnlimited], fUnlimited)
	own := l.added(r)
	if unlimited {
		out.Unlimited = true
		l.checkUnlimited(r)
		return out
	}
	out.Requests = requests
	if known {
		out.Unit = l.unit(r)
	}
	l.combine(out, &own, defaults, d, counted)
	return out
}

// checkUnlimited refuses what a limit that counts nothing cannot have.
func (l *loader) checkUnlimited(r *record) {
	unit := r.set[fUnit]
	if text, ok := l.text(unit, "unit"); ok && unit.given() {
		if unitOf(text) != rules.NoUnit {
			l.errorf(unit.pos(), "drop one of the two", "unlimited with a unit")
		} else if text != "" {
			l.warnf(unit.pos(), "drop it", "unlimited with a unit, %s, which is none", quote(text))
		}
	}
	for id := firstOwn; id < fieldCount; id++ {
		if s := r.set[id]; s.given() {
			l.errorf(s.key.pos, "drop one of the two", "unlimited counts nothing, so %s has no meaning", id)
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

func (l *loader) unit(r *record) rules.Unit {
	s := r.set[fUnit]
	text, ok := l.text(s, "unit")
	if !ok {
		return rules.NoUnit
	}
	if u := unitOf(text); u != rules.NoUnit {
		return u
	}
	units := rules.Units()
	if text == "" && (r.meant[fUnit] || r.meant[fUnlimited]) {
		return rules.NoUnit
	}
	if text == "" {
		at := r.at.pos
		if s.value != nil {
			at = s.value.pos
		}
		l.errorf(at, "add unit: "+strings.Join(units, ", ")+", or unlimited: true", "rate_limit without a unit")
		return rules.NoUnit
	}
	low := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), "s")
	hint := "it is one of " + join(units) + "; for other lengths add unit_multiplier"
	if best := Closest(low, units); best != "" {
		hint = "did you mean " + best + "?"
	} else if best := unique(low, units); best != "" {
		hint = "did you mean " + best + "?"
	}
	l.errorf(s.pos(), hint, "unknown unit %s", quote(text))
	return rules.NoUnit
}

// replaces reads the names that a limit drops.
func (l *loader) replaces(s setting, own string) []string {
	if !s.given() {
		return nil
	}
	if s.value.kind != sequence {
		l.errorf(s.value.pos, "write a list: [{name: other}]", "replaces is %s", describe(s.value))
		return nil
	}
	var names []string
	for _, item := range s.value.items {
		var r record
		if !l.isMap(item) || !l.apply(item, inReplaces, &r) {
			continue
		}
		at := item.pos
		if v := r.set[fName].value; v != nil {
			at = v.pos
		}
		name, ok := l.text(r.set[fName], "name")
		switch {
		case !ok, name == "" && r.meant[fName]:
		case name == "":
			l.errorf(at, "write - name: other", "replaces a limit without a name")
		case name == own:
			l.errorf(at, "name another limit, or drop it", "the limit %s replaces itself", quote(name))
		default:
			names = append(names, name)
		}
	}
	return names
}
