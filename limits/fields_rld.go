package limits

import (
	"strings"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// The words of the fields that package rules has no names for.
var (
	scopeNames       = []string{"global", "region", "node"}
	consistencyNames = []string{"eventual", "partition", "strict"}
	failureNames     = []string{"deny", "allow", "share"}
)

// positioned is the value of a field and its node; at is nil for a field that
// is not set.
type positioned[T any] struct {
	v  T
	at *yamlpos.Node
}

// or returns o where the field is not set.
func (p positioned[T]) or(o positioned[T]) positioned[T] {
	if p.at != nil {
		return p
	}
	return o
}

// posOr returns the position of the field, or at when it is not set.
func (p positioned[T]) posOr(at yamlpos.Position) yamlpos.Position {
	if p.at != nil {
		return p.at.Pos
	}
	return at
}

// failure is the value of on_failure.
type failure struct {
	answer rules.OnFailure
	share  rules.PPM
}

// rldFields are the fields of a rate_limit, or of defaults, that
// envoyproxy/ratelimit does not have.
type rldFields struct {
	algorithm    positioned[rules.Algorithm]
	burst        positioned[uint32]
	multiplier   positioned[uint32]
	scope        positioned[rules.Scope]
	consistency  positioned[rules.Consistency]
	placement    positioned[rules.Placement]
	home         positioned[string]
	budget       positioned[rules.PPM]
	weights      positioned[[]rules.Weight]
	onFailure    positioned[failure]
	carryDebt    positioned[bool]
	chargeDenied positioned[bool]
}

// defaults reads the defaults of a file.
func (l *loader) defaults(file *decoded) rldFields {
	s := file.set[fDefaults]
	var r decoded
	if !s.given() || !l.apply(s.Value, inDefaults, &r) {
		return rldFields{}
	}
	return l.rldFields(&r)
}

// rldFields reads rld's own fields of a map, each for itself.
func (l *loader) rldFields(r *decoded) rldFields {
	return rldFields{
		algorithm:    choice[rules.Algorithm](l, r, fAlgorithm, rules.Algorithms()),
		burst:        field(r, fBurst, l.positive),
		multiplier:   field(r, fMultiplier, l.positive),
		scope:        choice[rules.Scope](l, r, fScope, scopeNames),
		consistency:  choice[rules.Consistency](l, r, fConsistency, consistencyNames),
		placement:    choice[rules.Placement](l, r, fPlacement, rules.Placements()),
		home:         field(r, fHome, l.region),
		budget:       field(r, fBudget, l.budget),
		weights:      field(r, fWeights, l.weights),
		onFailure:    field(r, fOnFailure, l.onFailure),
		carryDebt:    field(r, fCarryDebt, l.Bool),
		chargeDenied: field(r, fChargeDenied, l.Bool),
	}
}

// field reads one field; into makes the reader for a variable.
func field[T any](r *decoded, f fieldID, into func(*T) yamlpos.Reader) positioned[T] {
	var v T
	if s := r.set[f]; s.given() && into(&v)(s.Value, f.String()) {
		return positioned[T]{v, s.Value}
	}
	return positioned[T]{}
}

func choice[T ~uint8](l *loader, r *decoded, f fieldID, words []string) positioned[T] {
	return field(r, f, func(out *T) yamlpos.Reader { return yamlpos.Word(&l.Collector, out, words) })
}

func (l *loader) positive(out *uint32) yamlpos.Reader {
	return yamlpos.Whole(&l.Collector, out, 1, ^uint32(0))
}

// region reads the name of a region.
func (l *loader) region(out *string) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		ok := l.Text(out)(n, name)
		if ok && *out == "" {
			l.Errorf(n.Pos, "name a region, or drop it", "home region without a name")
		}
		return ok && *out != ""
	}
}

// maxBudget is the greatest overage budget: 100 times the limit.
const maxBudget = 10_000 * rules.Percent

func (l *loader) budget(out *rules.PPM) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		ok := yamlpos.Percent(&l.Collector, out, "2%")(n, name)
		if ok && *out > maxBudget {
			l.Errorf(n.Pos, "leave overage_budget out for a limit that is only estimated",
				"an overage_budget above 10000%% bounds nothing")
		}
		return ok && *out <= maxBudget
	}
}

// onFailure reads deny, allow, "share: N%" or the map {share: N%}.
func (l *loader) onFailure(out *failure) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		share := n // the percentage
		switch {
		case n.Kind == yamlpos.Map && len(n.Pairs) == 1 && n.Pairs[0].Key.Text == "share":
			share = n.Pairs[0].Value
		case n.Kind != yamlpos.Scalar:
			return l.Errorf(n.Pos, "write deny, allow or {share: 10%}", "on_failure is %s", n.Kind)
		case strings.HasPrefix(n.Text, "share:"):
			share = &yamlpos.Node{Pos: n.Pos, Text: strings.TrimSpace(n.Text[len("share:"):])}
		default:
			if !yamlpos.Word(&l.Collector, &out.answer, failureNames)(n, name) {
				return false
			}
			if out.answer == rules.Share {
				l.Errorf(n.Pos, "write {share: 10%}", "on_failure: share without its size")
			}
			return out.answer != rules.Share
		}
		if !yamlpos.Percent(&l.Collector, &out.share, "10%")(share, "share") {
			return false
		}
		if out.share == 0 || out.share > rules.Whole {
			return l.Errorf(share.Pos, "write more than 0% and at most 100%", "a share of %s", yamlpos.Quote(share.Text))
		}
		out.answer = rules.Share
		return true
	}
}
