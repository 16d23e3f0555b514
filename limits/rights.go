package limits

import (
	"fmt"
	"slices"

	"github.com/georld/rld/rules"
)

// MinRights is how many rights of a label a daemon, or a region, should hold
// for calls to be decided on the spot: below it, calls are refused too often
// while others still hold rights.
const MinRights = 10

// rights sets how many rights there are, how the regions share them, and where
// they sit.
func (l *loader) rights(out *rules.Limit, own, defaults *added, r *record) {
	l.setBudget(out, own, defaults)
	l.setPlacement(out, own, defaults)
	l.setWeights(out, own, defaults)
	l.setHome(out, own, defaults)
	if !out.HasRights() && !strict(out) {
		return
	}
	if why := l.options.NoRights; why != "" {
		l.errorf(r.rightsAt(out, own), "or "+withoutRights(out)+
			" for a limit that is only estimated"+rightsOrigin(out, own, defaults),
			"%s needs rights, and %s", needs(out), why)
		return
	}
	if out.Unit != rules.NoUnit {
		l.place(out, own, defaults, r)
		l.checkHomed(out, own, defaults, r)
	}
}

// needs names what gives a limit rights.
func needs(out *rules.Limit) string {
	if out.Consistency != rules.Eventual {
		return "consistency " + out.Consistency.String()
	}
	return "overage_budget"
}

// withoutRights says how a limit does without rights.
func withoutRights(out *rules.Limit) string {
	if out.Consistency != rules.Eventual {
		return "write consistency: eventual"
	}
	return "leave overage_budget out"
}

// rightsOrigin says that a limit has rights because of the defaults.
func rightsOrigin(out *rules.Limit, own, defaults *added) string {
	if out.Consistency != rules.Eventual {
		return origin(own.consistency.at, defaults.consistency.at)
	}
	return origin(own.budget.at, defaults.budget.at)
}

// raise says how a limit has enough rights for n holders.
func raise(out *rules.Limit, n int) string {
	what := "requests_per_unit"
	if out.Algorithm.Bucket() {
		what = "burst"
	}
	if out.Consistency == rules.Eventual {
		what += " or overage_budget"
	}
	return "raise " + what + " to " + utoa(MinRights*uint64(n)) + " rights"
}

// rightsAt returns where the limit itself says that it has rights, else where
// it is.
func (r *record) rightsAt(out *rules.Limit, own *added) rules.Position {
	switch {
	case out.Consistency != rules.Eventual && own.consistency.at != nil:
		return own.consistency.at.pos
	case out.Consistency == rules.Eventual && own.budget.at != nil:
		return own.budget.at.pos
	}
	return r.countAt()
}

// countAt returns where the limit says how many hits, else where it is.
func (r *record) countAt() rules.Position {
	if s := r.set[fRequests]; s.given() {
		return s.pos()
	}
	return r.at.pos
}

// setBudget sets the overage budget.
func (l *loader) setBudget(out *rules.Limit, own, defaults *added) {
	exact := out.Consistency != rules.Eventual
	alone := out.Scope == rules.NodeLocal
	budget := own.budget
	if budget.at == nil && !exact && !alone {
		budget = defaults.budget
	}
	switch {
	case budget.at == nil:
	case alone:
		l.errorf(budget.at.pos, "drop it, or count in more than one daemon with scope: global or scope: region"+
			origin(own.scope.at, defaults.scope.at),
			"an overage_budget with scope node, where each daemon counts for itself and exactly")
		return
	case exact && budget.v != 0:
		l.errorf(budget.at.pos, "write 0%, drop it, or make it consistency: eventual"+
			origin(own.consistency.at, defaults.consistency.at),
			"an overage_budget with consistency %s, whose point is that there is none", out.Consistency)
	case !exact && budget.v > l.mostBudget(out):
		l.errorf(budget.at.pos, "write at most "+percent(l.mostBudget(out))+
			", or leave overage_budget out for a limit that is only estimated",
			"an overage_budget of %s: %d regions that each admit the whole limit are %s over, so more bounds nothing",
			percent(budget.v), len(l.options.Regions), percent(l.mostBudget(out)))
	}
	out.Budget, out.HasBudget = budget.v, budget.at != nil
}

// mostBudget returns the greatest budget that bounds anything: what regions
// that each admit the whole limit exceed it by. Daemons of one region are
// taken for as many as there may ever be.
func (l *loader) mostBudget(out *rules.Limit) rules.PPM {
	regions := uint64(len(l.options.Regions))
	if regions < 2 || out.Scope != rules.Global {
		return maxBudget
	}
	return rules.PPM(min((regions-1)*uint64(rules.Whole), uint64(maxBudget)))
}

// setPlacement sets where the rights are wanted.
func (l *loader) setPlacement(out *rules.Limit, own, defaults *added) {
	// A region's own limit is at home in the region.
	spreads := func(p rules.Placement) bool {
		return p == rules.Spread || p == rules.PerRegion && out.Scope != rules.Region
	}
	placement := own.placement
	if placement.at == nil && !(out.Consistency == rules.Strict && spreads(defaults.placement.v)) {
		placement = defaults.placement
	}
	if out.Consistency == rules.Strict && spreads(placement.v) {
		l.errorf(placement.at.pos, "write owner, or drop it"+origin(own.consistency.at, defaults.consistency.at),
			"placement %s with consistency strict, where one daemon holds all rights of a key", placement.v)
	}
	out.Placement = placement.v
}

// crowd is who shares the rights of a limit; daemons is 0 when it is not known.
type crowd struct{ daemons, regions int }

func (l *loader) crowd(out *rules.Limit) crowd {
	if out.Scope == rules.Region {
		return crowd{l.options.DaemonsOfRegion, 1}
	}
	return crowd{l.options.Daemons, max(len(l.options.Regions), 1)}
}

// place resolves where the rights of a limit sit, says so, and warns where
// holders get so few that they refuse calls while others have rights left.
func (l *loader) place(out *rules.Limit, own, defaults *added, r *record) {
	c := l.crowd(out)
	if c.daemons <= 0 {
		return
	}
	total := rightsOf(out)
	out.Placed = resolve(out, total, c)
	holders, what := c.daemons, "daemon"
	if out.Placed == rules.PerRegion {
		holders, what = c.regions, "region"
	}
	few := total < MinRights*uint64(holders)
	switch {
	case total == 0, c.daemons == 1:
	case out.Placed != rules.Owner && holders > 1 && few:
		l.warnf(r.placementAt(own), raise(out, holders)+", or write placement: auto"+origin(own.placement.at, defaults.placement.at),
			"placement %s of %s: a %s that has none left refuses calls until others give it theirs",
			out.Placed, portion(total, holders, what), what)
	default:
		l.notef(r.countAt(), "placement %s: %s", out.Placed, seat(out, total, c))
	}
}

// resolve returns where the rights of a limit sit. What one daemon would grant
// to none but itself is spread: it holds all of it either way. The limit of a
// region is at home in the region.
func resolve(out *rules.Limit, total uint64, c crowd) rules.Placement {
	p := out.Placement
	switch {
	case strict(out):
		p = rules.Owner
	case p == rules.Auto:
		p = bySize(total, c)
	}
	if p == rules.Owner && out.Scope == rules.Region {
		p = rules.PerRegion
	}
	alone := p == rules.PerRegion && c.daemons <= c.regions || p == rules.Owner && c.daemons == 1
	if alone && !strict(out) {
		return rules.Spread
	}
	return p
}

// seat says who holds how many rights.
func seat(out *rules.Limit, total uint64, c crowd) string {
	rights := countRights(total)
	switch {
	case out.Placed == rules.PerRegion && c.regions == 1:
		return rights + ", which one daemon of the region grants"
	case out.Placed == rules.PerRegion:
		return rights + " over " + itoa(c.regions) + " regions, which one daemon of each grants"
	case out.Placed == rules.Owner && out.Home != "":
		return rights + ", which one daemon of " + out.Home + " grants"
	case out.Placed == rules.Owner:
		return rights + ", which one daemon grants"
	}
	return rights + " over " + itoa(c.daemons) + " daemons"
}

// rightsOf returns how many rights a label has at once: a bucket holds its
// burst, and what it is filled with is minted over time.
func rightsOf(out *rules.Limit) uint64 {
	if out.Algorithm.Bucket() {
		return out.TotalBurst()
	}
	return out.Total()
}

// bySize picks the widest placement in which all holders have rights to decide
// with. Without any rights there is nothing to hold together.
func bySize(total uint64, c crowd) rules.Placement {
	switch {
	case total == 0, total >= MinRights*uint64(c.daemons):
		return rules.Spread
	case total >= MinRights*uint64(c.regions):
		return rules.PerRegion
	}
	return rules.Owner
}

// placementAt returns where the limit itself says its placement, else where it
// says how many hits.
func (r *record) placementAt(own *added) rules.Position {
	if n := own.placement.at; n != nil {
		return n.pos
	}
	return r.countAt()
}

// portion says how many rights each holder gets: "5 rights over 9 daemons, 0
// or 1 each".
func portion(total uint64, holders int, what string) string {
	n := uint64(holders)
	each := utoa(total / n)
	if total%n != 0 {
		each += " or " + utoa(total/n+1)
	}
	return fmt.Sprintf("%s over %d %ss, %s each", countRights(total), holders, what, each)
}

func countRights(n uint64) string {
	if n == 1 {
		return "1 right"
	}
	return utoa(n) + " rights"
}

// knows reports whether a region is one of the cluster, as far as is known.
func (o *Options) knows(region string) bool {
	return o.Regions == nil || slices.Contains(o.Regions, region)
}
