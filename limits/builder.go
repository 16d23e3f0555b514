package limits

import (
	"strconv"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// builder completes one limit from its own fields and the defaults of its
// file, and rejects combinations that cannot be had.
//
// A limit takes algorithm, unit_multiplier, scope and consistency from the
// defaults wherever it does not set them. The other fields are meaningful only
// for some of those: as a default they are ignored elsewhere, but a limit that
// sets one itself is rejected.
type builder struct {
	*yamlpos.Collector
	options             *Options
	short, brief, owned *tally
	out                 *rules.Limit
	own, defaults       *rldFields
	limit               *decoded // the rate_limit itself
}

// build completes the limit. counted is false when its requests_per_unit is a
// fault.
func (b *builder) build(counted bool) {
	out, own, defaults := b.out, b.own, b.defaults
	out.Algorithm = own.algorithm.or(defaults.algorithm).v
	out.Scope = own.scope.or(defaults.scope).v
	out.Consistency = own.consistency.or(defaults.consistency).v
	b.window()
	if counted {
		b.burst()
		b.checkLog()
	}
	b.carryDebt()
	b.chargeDenied()
	b.rights()
	b.onFailure()
	if n := own.consistency.at; n != nil && out.Scope == rules.NodeLocal && own.consistency.v != rules.Eventual {
		b.Warnf(n.Pos, "drop one of the two",
			"consistency has no effect on a limit of scope node: it is exact by itself")
	}
}

// fromDefaults returns, for a hint, that a field comes from the defaults of the
// file; "" when the limit sets it itself.
func fromDefaults[T any](own, defaults positioned[T]) string {
	if own.at != nil || defaults.at == nil {
		return ""
	}
	return " (the defaults in line " + strconv.Itoa(defaults.at.Pos.Line) + " make it so)"
}

func (b *builder) algorithmOrigin() string {
	return fromDefaults(b.own.algorithm, b.defaults.algorithm)
}

func (b *builder) scopeOrigin() string { return fromDefaults(b.own.scope, b.defaults.scope) }

func (b *builder) consistencyOrigin() string {
	return fromDefaults(b.own.consistency, b.defaults.consistency)
}

func (b *builder) placementOrigin() string {
	return fromDefaults(b.own.placement, b.defaults.placement)
}

// window sets the window length, and counts short windows.
func (b *builder) window() {
	out := b.out
	m := b.own.multiplier.or(b.defaults.multiplier)
	if m.at == nil || out.Unit == rules.NoUnit {
		m.v = 1
	}
	if int64(m.v) > maxWindowMillis/max(out.Unit.Millis(), 1) {
		b.Errorf(m.at.Pos, "at most 100 years", "a window of %d %ss is too long", m.v, out.Unit)
		m.v = 1
	}
	out.Multiplier = m.v
	windowed := out.Algorithm == rules.FixedWindow || out.Algorithm == rules.SlidingWindow
	if windowed && out.Unit != rules.NoUnit && out.Scope != rules.NodeLocal && out.Window() < shortWindowMillis {
		b.short.count(b.Collector, b.limit.set[fUnit].pos())
	}
}

// burst sets the size of a bucket.
func (b *builder) burst() {
	out, own := b.out, b.own.burst
	switch {
	case !out.Algorithm.Bucket():
		if own.at != nil {
			b.Errorf(own.at.Pos, "drop it, or make it a token_bucket or leaky_bucket"+b.algorithmOrigin(),
				"burst is the size of a bucket, and %s has none", out.Algorithm)
		}
	case out.Requests == 0:
		// A bucket that is never filled holds nothing.
		if own.at != nil {
			b.Errorf(own.at.Pos, "raise requests_per_unit, or drop burst to deny everything",
				"burst beside requests_per_unit 0: the bucket is never filled")
		}
	default:
		out.Burst = out.Requests
		if s := own.or(b.defaults.burst); s.at != nil {
			out.Burst = s.v
		}
	}
}

// checkLog rejects a sliding log that would need too much memory.
func (b *builder) checkLog() {
	out := b.out
	shared := b.options.Replicated && out.Consistency != rules.Strict && out.Scope != rules.NodeLocal
	switch at := b.limit.set[fRequests].pos(); {
	case out.Algorithm != rules.SlidingLog:
	case out.Requests > MaxLogHits:
		b.Errorf(at, "use sliding_window, which keeps two counts"+b.algorithmOrigin(),
			"requests_per_unit %d with sliding_log: a log keeps a cell for each hit until it leaves the window, "+
				"so at most %d", out.Requests, MaxLogHits)
	case shared && out.Requests > MaxSharedLogHits:
		b.Errorf(at, "use sliding_window, consistency: strict, or scope: node"+b.algorithmOrigin(),
			"requests_per_unit %d with sliding_log: every hit goes to the other daemons as a cell of its own, "+
				"so at most %d", out.Requests, MaxSharedLogHits)
	}
}

// carryDebt sets whether the overage of a window is deducted from the next.
func (b *builder) carryDebt() {
	own := b.own.carryDebt
	set := own.at != nil && own.v
	switch {
	case b.out.Algorithm == rules.SlidingLog:
		if set {
			b.Errorf(own.at.Pos, "drop it: overage stays counted until it leaves the window anyway",
				"carry_debt with sliding_log")
		}
	case strict(b.out):
		if set {
			b.Errorf(own.at.Pos, "drop it: never a hit too many passes, so there is no debt"+b.consistencyOrigin(),
				"carry_debt with consistency strict")
		}
	default:
		b.out.CarryDebt = own.or(b.defaults.carryDebt).v
	}
}

// chargeDenied sets whether denied hits are charged too. An owner charges the
// hits that it grants and no others.
func (b *builder) chargeDenied() {
	own := b.own.chargeDenied
	if strict(b.out) {
		if own.at != nil && own.v {
			b.Errorf(own.at.Pos, "drop it, or make it consistency: eventual"+b.consistencyOrigin(),
				"charge_denied with consistency strict, where the owner charges only what it grants")
		}
		return
	}
	b.out.ChargeDenied = b.options.ChargeDenied
	if s := own.or(b.defaults.chargeDenied); s.at != nil {
		b.out.ChargeDenied = s.v
	}
}

// countAt returns the position of requests_per_unit, or else of the limit.
func (b *builder) countAt() yamlpos.Position {
	if s := b.limit.set[fRequests]; s.given() {
		return s.pos()
	}
	return b.limit.at.Pos
}
