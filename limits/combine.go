package limits

import "github.com/georld/rld/rules"

// combine fills in what a limit and the defaults of its file say together, and
// refuses what cannot be had together.
//
// What a limit is - algorithm, unit_multiplier, scope, consistency - it takes
// from the defaults wherever it does not say. The other fields only make sense
// for some of those; as a default they are left out where they do not, written
// beside the limit itself they are refused.
func (l *loader) combine(out *rules.Limit, own, defaults *added, d *record, counted bool) {
	out.Algorithm = own.algorithm.or(defaults.algorithm).v
	out.Scope = own.scope.or(defaults.scope).v
	out.Consistency = own.consistency.or(defaults.consistency).v
	l.window(out, own, defaults, d.limit)
	if counted {
		l.burst(out, own, defaults)
		l.checkLog(out, own, defaults, d.limit)
	}
	l.carryDebt(out, own, defaults)
	l.chargeDenied(out, own, defaults)
	l.rights(out, own, defaults, d.limit)
	l.answer(out, own, defaults, d.limit)
	if n := own.consistency.at; n != nil && out.Scope == rules.NodeLocal && own.consistency.v != rules.Eventual {
		l.warnf(n.pos, "drop one of the two",
			"consistency has no effect on a limit of scope node: it is exact by itself")
	}
}

// window sets the length of the window, and counts the short ones.
func (l *loader) window(out *rules.Limit, own, defaults *added, r *record) {
	m := own.multiplier.or(defaults.multiplier)
	if m.at == nil || out.Unit == rules.NoUnit {
		m.v = 1
	}
	if int64(m.v) > maxWindowMillis/max(out.Unit.Millis(), 1) {
		l.errorf(m.at.pos, "at most 100 years", "a window of %d %ss is too long", m.v, out.Unit)
		m.v = 1
	}
	out.Multiplier = m.v
	windowed := out.Algorithm == rules.FixedWindow || out.Algorithm == rules.SlidingWindow
	if windowed && out.Unit != rules.NoUnit && out.Scope != rules.NodeLocal && out.Window() < shortWindowMillis {
		l.short.count(r.set[fUnit].pos(), l.source)
	}
}

// burst sets the size of a bucket.
func (l *loader) burst(out *rules.Limit, own, defaults *added) {
	if !out.Algorithm.Bucket() {
		if n := own.burst.at; n != nil {
			l.errorf(n.pos, "drop it, or make it a token_bucket or leaky_bucket"+
				origin(own.algorithm.at, defaults.algorithm.at),
				"burst is the size of a bucket, and %s has none", out.Algorithm)
		}
		return
	}
	if out.Requests == 0 {
		// A bucket that is never filled holds nothing.
		if n := own.burst.at; n != nil {
			l.errorf(n.pos, "raise requests_per_unit, or drop burst to refuse everything",
				"burst beside requests_per_unit 0: the bucket is never filled")
		}
		return
	}
	out.Burst = out.Requests
	if s := own.burst.or(defaults.burst); s.at != nil {
		out.Burst = s.v
	}
}

// origin says, for a hint, that an algorithm or consistency comes from the
// defaults and not from the limit; "" otherwise.
func origin(own, defaults *node) string {
	if own != nil || defaults == nil {
		return ""
	}
	return " (the defaults in line " + itoa(defaults.pos.Line) + " make it so)"
}

// checkLog refuses a log that would fill the memory.
func (l *loader) checkLog(out *rules.Limit, own, defaults *added, r *record) {
	if out.Algorithm != rules.SlidingLog {
		return
	}
	shared := l.options.Replicated && out.Consistency != rules.Strict && out.Scope != rules.NodeLocal
	if shared && out.Requests > MaxSharedLogHits && out.Requests <= MaxLogHits {
		l.errorf(r.set[fRequests].pos(), "use sliding_window, consistency: strict, or scope: node"+
			origin(own.algorithm.at, defaults.algorithm.at),
			"requests_per_unit %d with sliding_log: every hit goes to the other daemons as a cell of its own, "+
				"so at most %d", out.Requests, MaxSharedLogHits)
	}
	if out.Requests <= MaxLogHits {
		return
	}
	l.errorf(r.set[fRequests].pos(), "use sliding_window, which keeps two counts"+
		origin(own.algorithm.at, defaults.algorithm.at),
		"requests_per_unit %d with sliding_log: a log keeps a cell for each hit until it leaves the window, "+
			"so at most %d", out.Requests, MaxLogHits)
}

// carryDebt sets whether what went over is paid back.
func (l *loader) carryDebt(out *rules.Limit, own, defaults *added) {
	if out.Algorithm == rules.SlidingLog {
		if n := own.carryDebt.at; n != nil && own.carryDebt.v {
			l.errorf(n.pos, "drop it: what went over stays counted until it leaves the window anyway",
				"carry_debt with sliding_log")
		}
		return
	}
	if strict(out) {
		if n := own.carryDebt.at; n != nil && own.carryDebt.v {
			l.errorf(n.pos, "drop it: never a hit too many passes, so there is no debt"+
				origin(own.consistency.at, defaults.consistency.at), "carry_debt with consistency strict")
		}
		return
	}
	out.CarryDebt = own.carryDebt.or(defaults.carryDebt).v
}

// chargeDenied sets whether refused hits are charged too. A home charges what
// it grants, and nothing else.
func (l *loader) chargeDenied(out *rules.Limit, own, defaults *added) {
	if strict(out) {
		if n := own.chargeDenied.at; n != nil && own.chargeDenied.v {
			l.errorf(n.pos, "drop it, or make it consistency: eventual"+origin(own.consistency.at, defaults.consistency.at),
				"charge_denied with consistency strict, where what is refused is not charged at the home")
		}
		return
	}
	out.ChargeDenied = l.options.ChargeDenied
	if s := own.chargeDenied.or(defaults.chargeDenied); s.at != nil {
		out.ChargeDenied = s.v
	}
}
