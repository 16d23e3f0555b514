package explore

import (
	"fmt"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// owner names the writer of a incarnation.
func (e *explorer) owner(s crdt.Incarnation) string {
	if r, ok := e.runs[s]; ok {
		if r.restarts > 0 {
			return fmt.Sprintf("%s, restart %d", e.names[r.daemon], r.restarts)
		}
		return e.names[r.daemon]
	}
	for d := range e.names {
		if gossip.RegionIncarnation(e.regions[d]) == s {
			return "region " + e.regions[d]
		}
		if gossip.LostIncarnation(e.regions[d]) == s {
			return "what region " + e.regions[d] + " lost"
		}
	}
	return s.String()
}

// checkHistory checks what an input did to one daemon.
func (e *explorer) checkHistory(was, is *history) error {
	name := e.names[is.daemon]
	if is.in.kind != inStart {
		for _, f := range was.facts {
			if e.over(f.window, e.now(is.in.tick)) {
				continue
			}
			if now := hitsOf(is.facts, f.kind, f.incarnation, f.window); now < f.hits {
				return e.violated("%s knew %d of %s and now %d", name, f.hits, e.owner(f.incarnation), now)
			}
		}
	}
	own := e.incarnations[is.daemon][is.cast[is.daemon]]
	for _, b := range is.counted {
		if now := hitsOf(is.facts, gossip.Daemon, b.incarnation, b.window); b.incarnation == own && now != b.hits && !e.over(b.window, e.now(is.in.tick)) {
			return e.violated("%s counted %d itself and knows %d of them", name, b.hits, now)
		}
	}
	if err := e.checkRow(is); err != nil {
		return err
	}
	if is.in.kind == inAsk {
		return e.checkVerdict(was, is)
	}
	return nil
}

// over reports whether a window is, so that its cells may be gone.
func (e *explorer) over(window int64, now time.Duration) bool {
	return !e.scope.fold().Drains() && e.millis(now) >= window+e.width()
}

// checkVerdict checks a decision against the counts that the daemon held.
func (e *explorer) checkVerdict(was, is *history) error {
	now := e.now(is.in.tick)
	known := e.used(now, func(window int64) uint64 { return e.known(was.daemon, was.facts, window) })
	limit := uint64(e.scope.Limit)
	switch {
	case !is.asked.allowed && is.asked.gate&node.RightsGate == 0 && known+1 <= limit:
		return e.violated("%s denied a hit although it knew %d of %d", e.names[is.daemon], known, limit)
	case is.asked.allowed && known+1 > limit+e.minted(now):
		return e.violated("%s admitted a hit although it knew %d of %d", e.names[is.daemon], known, limit)
	case is.asked.allowed:
		e.out.Admitted++
	default:
		e.out.Denied++
	}
	return nil
}

// used is how much of the limit is in use by the counts of windows:
// of a bucket all hits since the start, of which minted have come back.
func (e *explorer) used(now time.Duration, count func(window int64) uint64) uint64 {
	window, width := e.windowAt(now), e.width()
	n := count(window)
	if e.scope.fold().Weighted() {
		left := uint64(window + width - e.millis(now))
		n += (count(window-width)*left + uint64(width) - 1) / uint64(width)
	}
	return n
}

// minted is the most tokens that a bucket can have minted since the start.
func (e *explorer) minted(now time.Duration) uint64 {
	if !e.scope.fold().Drains() {
		return 0
	}
	ms := uint64((now - e.now(warmTicks)) / time.Millisecond)
	return (ms*uint64(e.scope.Limit) + uint64(e.width()) - 1) / uint64(e.width())
}

// hitsOf returns the count of an incarnation in a window, 0 for none.
func hitsOf(facts []fact, k gossip.Kind, s crdt.Incarnation, window int64) uint64 {
	for i := range facts {
		if f := &facts[i]; f.kind == k && f.incarnation == s && f.window == window {
			return f.hits
		}
	}
	return 0
}

// known is all that a daemon knows of a window by the facts that it holds.
func (e *explorer) known(daemon int, facts []fact, window int64) uint64 {
	estimated := uint64(0)
	for i := range facts {
		if f := &facts[i]; f.window == window && f.kind == gossip.Others {
			estimated = f.hits + hitsOf(facts, gossip.Daemon, f.incarnation, window)
		}
	}
	return max(e.held(daemon, facts, window), estimated)
}

// held is what a daemon holds of a window in cells of daemons and regions.
func (e *explorer) held(daemon int, facts []fact, window int64) uint64 {
	sum := uint64(0)
	own := gossip.RegionIncarnation(e.regions[daemon])
	for i := range facts {
		if f := &facts[i]; f.window == window && (f.kind == gossip.Daemon || f.kind == gossip.RegionSum && f.incarnation != own) {
			sum += f.hits
		}
	}
	return sum
}

// truth returns the hits counted in a window where a filter matches: by an
// incarnation, in a region, or anywhere.
func (e *explorer) truth(m *moment, window int64, matters func(daemon int, s crdt.Incarnation) bool) uint64 {
	sum := uint64(0)
	for d := range e.names {
		for _, b := range e.histories[m.at[d]].counted {
			if b.window == window && matters(d, b.incarnation) {
				sum += b.hits
			}
		}
	}
	return sum
}

func anywhere(int, crdt.Incarnation) bool { return true }

// check checks a state of the cluster.
func (e *explorer) check(m *moment) error {
	for d := range e.names {
		h := &e.histories[m.at[d]]
		for i := range h.facts {
			if err := e.checkFact(m, h, &h.facts[i]); err != nil {
				return err
			}
		}
		if err := e.checkTotals(m, h); err != nil {
			return err
		}
	}
	if len(e.path) == 0 {
		return nil
	}
	switch a := e.path[len(e.path)-1]; a.kind {
	case inAsk:
		return e.checkOverage(m, int(a.arg))
	case inFrame:
		return e.checkClaims(m, e.frames[a.arg].to)
	}
	return nil
}

// checkFact checks that nothing is invented.
func (e *explorer) checkFact(m *moment, h *history, f *fact) error {
	if !f.kind.Counts() {
		return e.checkTransfer(m, h, f)
	}
	most := e.truth(m, f.window, func(d int, s crdt.Incarnation) bool {
		switch {
		case f.kind == gossip.Others:
			return s != f.incarnation
		case f.incarnation == gossip.RegionIncarnation(e.regions[d]):
			return true
		case f.incarnation == gossip.LostIncarnation(e.regions[d]):
			return s != e.incarnations[d][e.histories[m.at[d]].cast[d]]
		}
		return s == f.incarnation
	})
	if f.hits > most {
		return e.violated("%s knows %d of %s, which counted %d", e.names[h.daemon], f.hits, e.owner(f.incarnation), most)
	}
	return nil
}

// checkTotals checks that no daemon knows of more than there is.
func (e *explorer) checkTotals(m *moment, h *history) error {
	for i := range h.facts {
		window := h.facts[i].window
		if i > 0 && h.facts[i-1].window == window {
			continue
		}
		if known, all := e.known(h.daemon, h.facts, window), e.truth(m, window, anywhere); known > all {
			return e.violated("%s knows %d hits of %d", e.names[h.daemon], known, all)
		}
	}
	return nil
}

// checkOverage checks the effect of the latest decision against Theorem 1, and
// against the cap of one limit per further process.
func (e *explorer) checkOverage(m *moment, daemon int) error {
	h := &e.histories[m.at[daemon]]
	if !h.asked.allowed {
		return nil
	}
	now := e.now(h.in.tick)
	limit := uint64(e.scope.Limit) + e.minted(now)
	total := e.used(now, func(window int64) uint64 { return e.truth(m, window, anywhere) })
	known := e.used(now, func(window int64) uint64 { return e.known(daemon, h.facts, window) })
	if total > limit+(total-known) {
		return e.violated("%d hits of %d passed, and %s knew %d of them", total, limit, e.names[daemon], known)
	}
	writers := uint64(0)
	for d := range e.names {
		for _, b := range e.histories[m.at[d]].counted {
			if b.window == h.asked.window {
				writers++
			}
		}
	}
	inWindow := e.truth(m, h.asked.window, anywhere)
	if inWindow > limit*writers {
		return e.violated("%d hits passed %d writers with a limit of %d", inWindow, writers, limit)
	}
	if rights := e.total(); e.scope.Rights && (inWindow > rights || total > rights) {
		return e.violated("%d hits passed, %d of one window, and all rights are %d", total, inWindow, rights)
	}
	e.out.Overage = max(e.out.Overage, total-min(total, limit))
	return nil
}

// checkClaims checks the ages that the links of a daemon state.
func (e *explorer) checkClaims(m *moment, daemon int) error {
	h := &e.histories[m.at[daemon]]
	for _, c := range h.ages {
		d := e.runs[c.peer].daemon
		if e.incarnations[d][e.histories[m.at[d]].cast[d]] != c.peer {
			continue
		}
		kind, incarnation := gossip.Daemon, c.peer
		if e.regions[d] == e.regions[daemon] && !c.kept {
			continue
		}
		if e.regions[d] != e.regions[daemon] {
			if !e.alone(d) || !e.alone(daemon) {
				continue // it sent sums, and others may have sent parts of them
			}
			kind, incarnation = gossip.RegionSum, gossip.RegionIncarnation(e.regions[d])
		}
		for _, b := range e.countedBefore(m.at[d], c.until) {
			known := hitsOf(h.facts, kind, incarnation, b.window)
			if b.incarnation == c.peer && known < b.hits && !e.over(b.window, e.now(h.in.tick)) {
				return e.violated("%s claims to know what %s counted before %v, and knows %d of %d",
					e.names[daemon], e.owner(c.peer), c.until, known, b.hits)
			}
		}
	}
	return nil
}

// countedBefore returns what the processes of a daemon had counted before a
// virtual time.
func (e *explorer) countedBefore(at int32, until time.Duration) []fact {
	for at != noHistory && e.now(e.histories[at].in.tick) >= until {
		at = e.histories[at].parent
	}
	if at == noHistory {
		return nil
	}
	return e.histories[at].counted
}

// alone reports whether a daemon is the only one of its region.
func (e *explorer) alone(daemon int) bool { return e.scope.Regions[e.regionIndex(daemon)] == 1 }
