package limits

import (
	"fmt"
	"strconv"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// MinRights is the least number of rights of a key and window that a daemon, or
// a region, should hold to decide calls from its own memory. With fewer, it
// denies calls too often while others still hold rights.
const MinRights = 10

// rights sets the number of rights, the shares of the regions, and the daemons
// that hold them.
func (b *builder) rights() {
	out := b.out
	b.setBudget()
	b.setPlacement()
	b.setWeights()
	b.pinRegion()
	if !out.HasRights() && !strict(out) {
		return
	}
	if why := b.options.NoRights; why != "" {
		needs, without := "overage_budget", "leave overage_budget out"
		origin := fromDefaults(b.own.budget, b.defaults.budget)
		if out.Consistency != rules.Eventual {
			needs, without = "consistency "+out.Consistency.String(), "write consistency: eventual"
			origin = b.consistencyOrigin()
		}
		b.Errorf(b.rightsAt(), "or "+without+" for a limit that is only estimated"+origin, "%s needs rights, and %s", needs, why)
		return
	}
	if out.Unit != rules.NoUnit {
		b.place()
		b.checkOwned()
	}
}

// rightsAt returns the position of the field that gives the limit its rights,
// or else of the limit.
func (b *builder) rightsAt() yamlpos.Position {
	if b.out.Consistency != rules.Eventual {
		return b.own.consistency.posOr(b.countAt())
	}
	return b.own.budget.posOr(b.countAt())
}

// setBudget sets the overage budget.
func (b *builder) setBudget() {
	out := b.out
	exact := out.Consistency != rules.Eventual
	alone := out.Scope == rules.NodeLocal
	budget := b.own.budget
	if budget.at == nil && !exact && !alone {
		budget = b.defaults.budget
	}
	switch most := b.mostBudget(); {
	case budget.at == nil:
	case alone:
		b.Errorf(budget.at.Pos, "drop it, or count in more than one daemon with scope: global or scope: region"+b.scopeOrigin(),
			"an overage_budget with scope node, where each daemon counts for itself and exactly")
		return
	case exact && budget.v != 0:
		b.Errorf(budget.at.Pos, "write 0%, drop it, or make it consistency: eventual"+b.consistencyOrigin(),
			"an overage_budget with consistency %s, whose point is that there is none", out.Consistency)
	case !exact && budget.v > most:
		b.Errorf(budget.at.Pos, "write at most "+most.String()+", or leave overage_budget out for a limit that is only estimated",
			"an overage_budget of %s: %d regions that each admit the whole limit are %s over, so more bounds nothing",
			budget.v.String(), len(b.options.Regions), most.String())
	}
	out.Budget, out.HasBudget = budget.v, budget.at != nil
}

// mostBudget returns the greatest budget that bounds anything: the overage of
// regions that each admit the whole limit. The number of daemons of one region
// is not bounded.
func (b *builder) mostBudget() rules.PPM {
	regions := uint64(len(b.options.Regions))
	if regions < 2 || b.out.Scope != rules.Global {
		return maxBudget
	}
	return rules.PPM(min((regions-1)*uint64(rules.Whole), uint64(maxBudget)))
}

// setPlacement sets the placement of the rights.
func (b *builder) setPlacement() {
	out := b.out
	// The limit of a region has its owner in the region.
	spreads := func(p rules.Placement) bool {
		return p == rules.Spread || p == rules.PerRegion && out.Scope != rules.Region
	}
	placement := b.own.placement
	if placement.at == nil && !(out.Consistency == rules.Strict && spreads(b.defaults.placement.v)) {
		placement = b.defaults.placement
	}
	if out.Consistency == rules.Strict && spreads(placement.v) {
		b.Errorf(placement.at.Pos, "write owner, or drop it"+b.consistencyOrigin(),
			"placement %s with consistency strict, where one daemon holds all rights of a key", placement.v)
	}
	out.Placement = placement.v
}

// cluster is the numbers of daemons and regions that share the rights of a
// limit; daemons is 0 when it is not known.
type cluster struct{ daemons, regions int }

func (b *builder) cluster() cluster {
	if b.out.Scope == rules.Region {
		return cluster{b.options.DaemonsOfRegion, 1}
	}
	return cluster{b.options.Daemons, max(len(b.options.Regions), 1)}
}

// place resolves the placement of the rights, adds a note about it, and warns
// where holders get so few that they deny calls while others have rights left.
func (b *builder) place() {
	out, c := b.out, b.cluster()
	if c.daemons <= 0 {
		return
	}
	total := rightsOf(out)
	out.Placed = resolve(out, total, c)
	holders, kind := c.daemons, "daemon"
	if out.Placed == rules.PerRegion {
		holders, kind = c.regions, "region"
	}
	switch {
	case total == 0, c.daemons == 1:
	case out.Placed != rules.Owner && holders > 1 && total < MinRights*uint64(holders):
		b.Warnf(b.own.placement.posOr(b.countAt()), raise(out, holders)+", or write placement: auto"+b.placementOrigin(),
			"placement %s of %s: a %s that has none left denies calls until others give it theirs",
			out.Placed, portion(total, holders, kind), kind)
	default:
		b.Notef(b.countAt(), "placement %s: %s", out.Placed, holdersOf(out, total, c))
	}
}

// raise returns how to give a limit enough rights for n holders.
func raise(out *rules.Limit, n int) string {
	field := "requests_per_unit"
	if out.Algorithm.Bucket() {
		field = "burst"
	}
	if out.Consistency == rules.Eventual {
		field += " or overage_budget"
	}
	return fmt.Sprintf("raise %s to %d rights", field, MinRights*n)
}

// resolve returns the placement of the rights of a limit. Rights that one
// daemon would grant to no other are spread: it holds all of them either way.
// The limit of a region has its owner in the region.
func resolve(out *rules.Limit, total uint64, c cluster) rules.Placement {
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

// holdersOf returns the number of rights and their holders, for a note.
func holdersOf(out *rules.Limit, total uint64, c cluster) string {
	rights := countRights(total)
	switch {
	case out.Placed == rules.PerRegion && c.regions == 1:
		return rights + ", which one daemon of the region grants"
	case out.Placed == rules.PerRegion:
		return fmt.Sprintf("%s over %d regions, which one daemon of each grants", rights, c.regions)
	case out.Placed == rules.Owner && out.Home != "":
		return rights + ", which one daemon of " + out.Home + " grants"
	case out.Placed == rules.Owner:
		return rights + ", which one daemon grants"
	}
	return fmt.Sprintf("%s over %d daemons", rights, c.daemons)
}

// rightsOf returns the number of rights of a key at one time: of a window, or
// of a full bucket.
func rightsOf(out *rules.Limit) uint64 {
	if out.Algorithm.Bucket() {
		return out.TotalBurst()
	}
	return out.Total()
}

// bySize returns the widest placement in which every holder has MinRights. No
// rights at all are spread.
func bySize(total uint64, c cluster) rules.Placement {
	switch {
	case total == 0, total >= MinRights*uint64(c.daemons):
		return rules.Spread
	case total >= MinRights*uint64(c.regions):
		return rules.PerRegion
	}
	return rules.Owner
}

// portion returns the number of rights of each holder: "5 rights over 9
// daemons, 0 or 1 each".
func portion(total uint64, holders int, kind string) string {
	n := uint64(holders)
	each := strconv.FormatUint(total/n, 10)
	if total%n != 0 {
		each += " or " + strconv.FormatUint(total/n+1, 10)
	}
	return fmt.Sprintf("%s over %d %ss, %s each", countRights(total), holders, kind, each)
}

func countRights(n uint64) string {
	if n == 1 {
		return "1 right"
	}
	return strconv.FormatUint(n, 10) + " rights"
}
