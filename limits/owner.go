package limits

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// maxBucketRate bounds the hits a second of a bucket with an owner: the owner
// expresses its level as the instant at which it will have drained, in
// nanoseconds.
const maxBucketRate = 10_000_000

// strict reports whether one owner decides the hits of a limit, never one too
// many. A limit of one daemon needs no owner for that.
func strict(out *rules.Limit) bool {
	return out.Consistency == rules.Strict && out.Scope != rules.NodeLocal
}

// pinRegion sets the home region of the keys.
func (b *builder) pinRegion() {
	out, home := b.out, b.own.home
	if home.at == nil {
		return
	}
	owned := strict(out) || out.HasRights() && out.Placement == rules.Owner
	switch at := home.at.Pos; {
	case out.Scope != rules.Global:
		b.Errorf(at, "drop one of the two"+b.scopeOrigin(),
			"home region with scope %s, under which the regions share nothing", scopeNames[out.Scope])
	case !owned && out.HasRights():
		b.Errorf(at, "add placement: owner, or drop it"+b.placementOrigin(),
			"home region with placement %s, where not one daemon holds all rights of a key", out.Placement)
	case !owned:
		b.Errorf(at, "make it consistency: strict, or drop it"+b.consistencyOrigin(),
			"home region with consistency %s, where no daemon decides for the others", out.Consistency)
	case !b.options.knows(home.v):
		b.Errorf(at, b.options.regionHint(home.v), "home region %s, which is no region of the cluster", yamlpos.Quote(home.v))
	default:
		out.Home = home.v
	}
}

// onFailure sets the answer of a limit that needs an owner or rights, without
// them. That of the defaults is ignored for other limits.
func (b *builder) onFailure() {
	out, own := b.out, b.own.onFailure
	if out.Consistency != rules.Strict && !out.HasRights() {
		if own.at != nil {
			b.Errorf(own.at.Pos, "drop it, or bound the limit by an overage_budget or consistency: strict"+b.consistencyOrigin()+b.scopeOrigin(),
				"on_failure of a limit that needs neither rights nor an owner: the known counts decide it at all times")
		}
		return
	}
	f := own.or(b.defaults.onFailure)
	if f.v.answer == rules.Share && !b.shares(f) {
		return
	}
	out.OnFailure, out.ReserveShare = f.v.answer, f.v.share
	if out.OnFailure == rules.Share {
		b.checkReserves()
	}
}

// shares reports whether there are regions to reserve a share for. A share of
// the defaults is ignored for a limit that has none.
func (b *builder) shares(f positioned[failure]) bool {
	switch {
	case b.out.Consistency != rules.Strict:
		if b.own.onFailure.at != nil {
			b.Errorf(f.at.Pos, "write deny or allow, or make it consistency: strict"+b.consistencyOrigin(),
				"on_failure share with consistency %s: only strict limits have a regional reserve", b.out.Consistency)
		}
		return false
	case b.out.Scope != rules.Global:
		if b.own.onFailure.at != nil {
			b.Errorf(f.at.Pos, "write deny or allow"+b.scopeOrigin(),
				"on_failure share with scope %s: there is no other region to fall back in", scopeNames[b.out.Scope])
		}
		return false
	case len(b.options.Regions) == 1:
		return b.Errorf(f.at.Pos, "write deny or allow",
			"on_failure share in a cluster of one region: there is no other region to fall back in")
	}
	return true
}

// checkReserves rejects a share of which a region would get nothing, or which
// leaves nothing to the owner.
func (b *builder) checkReserves() {
	out, own := b.out, b.own.onFailure
	regions := len(b.options.Regions)
	if regions < 2 || out.Requests == 0 {
		return
	}
	requests, burst := out.Reserve(regions)
	owner := out.OwnerLimit(regions)
	bucket := out.Algorithm.Bucket()
	var fault string
	switch {
	case requests == 0 || bucket && burst == 0:
		fault = fmt.Sprintf("less than 1 for each of %d regions", regions)
	case owner.Requests == 0 || bucket && owner.Burst == 0:
		fault = "all of it, and nothing is left for the owner"
	default:
		return
	}
	amounts := fmt.Sprint(out.Requests)
	if bucket {
		amounts += fmt.Sprintf(" and a burst of %d", out.Burst)
	}
	b.Errorf(own.posOr(b.countAt()), reserveHint(out, regions)+fromDefaults(own, b.defaults.onFailure),
		"on_failure share %s of %s is %s", out.ReserveShare.String(), amounts, fault)
}

// reserveHint returns the share that works for a limit, and the limit that
// works for its share: one of which each region gets 1 and the owner more.
func reserveHint(out *rules.Limit, regions int) string {
	var hints []string
	n := uint64(out.Requests)
	if out.Algorithm.Bucket() {
		n = min(n, uint64(out.Burst))
	}
	whole := uint64(regions) * uint64(rules.Whole)
	if n > uint64(regions) {
		share := "share"
		least := rules.PPM(ceil(whole, n))
		if least < out.ReserveShare {
			share = "smaller share,"
		}
		hints = append(hints, "write a "+share+" of at least "+least.String())
	}
	if out.ReserveShare < rules.Whole {
		least := ceil(whole, uint64(out.ReserveShare))
		var low []string
		if uint64(out.Requests) < least {
			low = append(low, fRequests.String())
		}
		if out.Algorithm.Bucket() && uint64(out.Burst) < least {
			low = append(low, fBurst.String())
		}
		if len(low) > 0 {
			hints = append(hints, fmt.Sprintf("raise %s to %d", suggest.List(low), least))
		}
	}
	return strings.Join(append(hints, "write deny or allow"), ", or ")
}

func ceil(a, b uint64) uint64 { return (a + b - 1) / b }

// checkOwned rejects buckets that are too fast for an owner, and counts the
// limits with owners for reportOwned.
func (b *builder) checkOwned() {
	out := b.out
	if !out.Homed() {
		return
	}
	b.owned.count(b.Collector, b.countAt())
	if out.Algorithm.Bucket() && out.Requests > 0 && !b.options.Alone &&
		uint64(out.Burst)*uint64(out.Window()) < briefBucketMillis*uint64(out.Requests) {
		b.brief.count(b.Collector, b.countAt())
	}
	// Requests x 1000 > rate x milliseconds, in 128 bits.
	high, low := bits.Mul64(maxBucketRate, uint64(out.Window()))
	if out.Algorithm.Bucket() && high == 0 && out.Total()*1_000 > low {
		b.Errorf(b.countAt(), "use fixed_window"+b.algorithmOrigin()+
			", or let every daemon decide for itself with consistency: eventual",
			"a %s with an owner and more than %d hits a second: its level is an instant, and these are too close",
			out.Algorithm, maxBucketRate)
	}
}
