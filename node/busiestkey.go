package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
)

// busiestKeys keeps, for each rule in force whose counts are replicated, the
// key with the greatest count in the current window and in the one before. It
// costs a comparison per charge. It starts empty after a change of rules.
type busiestKeys struct {
	set   *rules.Set // of the rules
	rules []leaders  // by Rule.Index
}

// leaders are the busiest keys of one rule.
type leaders struct {
	length int64     // of a window in milliseconds; 0 for a rule that is not followed
	of     [2]leader // the current window, and the one before
}

// leader is the busiest key of one window. The zero value is of no window.
type leader struct {
	window int64
	key    crdt.Key
	count  uint64
	denied Denied
}

// Denied is the hits that a daemon denied to a key while it was the busiest.
type Denied struct {
	// Rights counts hits that only the rights gate denied. Stranded is the part
	// of them that was denied while more than a tenth of the limit was unused.
	// Estimate counts all other hits.
	Rights, Stranded, Estimate uint64
}

// Busy is the busiest key of a rule in one window, as this node knows it.
type Busy struct {
	Rule *rules.Rule
	// Window is the start of the window in Unix milliseconds, Length its
	// length. For a bucket it is the window of its shared counts, for a log it
	// is as long as the limit's.
	Window, Length int64
	Key            crdt.Key
	// Count is the greatest count seen: the hits in a window, the usage of a
	// bucket, or the stamps of a log.
	Count uint64
	Denied
}

// Fits returns the hits that fit the window: the limit, and of a bucket its
// burst and the refill in the window.
func (b *Busy) Fits() uint64 { return quota.Of(b.Rule.Limit).Fits(b.Length) }

// fit makes room for the rules in force.
func (b *busiestKeys) fit(set *rules.Set) {
	if b.set == set {
		return
	}
	b.set, b.rules = set, make([]leaders, len(set.Rules()))
	for i, r := range set.Rules() {
		if l := r.Limit; l != nil && !l.Unlimited && replicated(l) && l.Window() > 0 {
			b.rules[i].length = quota.Of(l).ReportLength()
		}
	}
}

// see counts the present usage of a key in a window.
func (s *leaders) see(k crdt.Key, window int64, count uint64) {
	switch {
	case window > s.of[0].window:
		s.of[1], s.of[0] = s.of[0], leader{window: window, key: k, count: count}
	case window == s.of[0].window:
		s.of[0].see(k, count)
	case window == s.of[1].window:
		s.of[1].see(k, count)
	}
}

func (s *leader) see(k crdt.Key, count uint64) {
	if count <= s.count {
		return
	}
	if s.key != k {
		s.key, s.denied = k, Denied{}
	}
	s.count = count
}

// charged notes that hits were charged to an entry, or merged into a window of
// it. An entry that started from an overflow counter counts many keys and is
// ignored.
func (b *busiestKeys) charged(set *rules.Set, e *keytable.Entry, l *rules.Limit, window, now int64) {
	if e.Rule < 0 || e.Inherited() {
		return
	}
	b.fit(set)
	s, f := &b.rules[e.Rule], quota.Of(l)
	switch {
	case s.length == 0:
	case f.Drains():
		s.see(e.Key, now-now%s.length, f.Used(&e.Cell, nil, now))
	case f.Stamped():
		s.see(e.Key, now-now%s.length, e.Cell.Count)
	case window == e.Cell.Window-s.length:
		s.see(e.Key, window, e.Cell.Prev)
	default:
		s.see(e.Key, e.Cell.Window, e.Cell.Count)
	}
}

// changed notes a count of other daemons on a key without an entry here, and
// the total of its window.
func (b *busiestKeys) changed(s *ruleset, c *gossip.Change, total uint64) {
	r := s.shares(c.Span.Rule)
	if r == nil || !quota.Of(r.Limit).Windowed() {
		return // the usage is not known
	}
	b.fit(s.set)
	if s := &b.rules[r.Index]; s.length == c.Span.WindowLength {
		s.see(c.Key, c.Window, total)
	}
}

// refused notes a denied hit. rule is the index of its rule, -1 for none.
func (b *busiestKeys) refused(set *rules.Set, h *Hit, st *Status, rule int32) {
	if rule < 0 || h.Limit.Shadow && st.decided.passed {
		return
	}
	b.fit(set)
	s := &b.rules[rule].of[0]
	hits := min(h.N, 1<<32)
	switch {
	case s.key != h.Key || s.count == 0:
	case st.Gate != RightsGate:
		s.denied.Estimate += hits
	default:
		s.denied.Rights += hits
		if st.probed.room > quota.Of(h.Limit).Capacity()/10 {
			s.denied.Stranded += hits
		}
	}
}

// busyKept is the time in milliseconds for which a window is reported after its
// end. Late counts still arrive in it.
const busyKept = 5_000

// Busiest calls yield for the busiest key of each rule with replicated counts,
// in the current window and in one that ended recently: in the order of the
// rules, the later window first, without windows that have no hits. The
// argument of yield is valid until yield returns.
func (n *Node) Busiest(at Instant, yield func(*Busy)) {
	if n.replica == nil || n.busiest.set != n.rules.set {
		return
	}
	now, all := n.millis(at), n.rules.set.Rules()
	var out Busy
	for i := range n.busiest.rules {
		s := &n.busiest.rules[i]
		for j := range s.of {
			if b := &s.of[j]; b.count > 0 && now < b.window+s.length+busyKept {
				out.Rule, out.Window, out.Length, out.Key = all[i], b.window, s.length, b.key
				out.Count, out.Denied = b.count, b.denied
				yield(&out)
			}
		}
	}
}

// RegionHits is the hits that one region admitted.
type RegionHits struct {
	Region string
	Hits   uint64
}

// Admitted appends to dst the known admitted hits of each region on the key of
// b in its window, the own region first. It appends nothing for a log, which
// has no common windows. Hits of a region without daemons count for the own
// region.
func (n *Node) Admitted(dst []RegionHits, b *Busy) []RegionHits {
	if n.replica == nil || quota.Of(b.Rule.Limit).Stamped() {
		return dst
	}
	eng, own := n.replica.engine, len(dst)
	dst = append(dst, RegionHits{n.cfg.Region, eng.Total(b.Key, b.Window)})
	if b.Rule.Limit.Scope == rules.Region {
		return dst
	}
	v := &n.replica.view
	v.regions = gossip.RemoteRegions(eng, v.regions[:0], b.Key, b.Window)
	for _, r := range v.regions {
		dst = append(dst, RegionHits{r.Region, r.Used})
		dst[own].Hits -= min(dst[own].Hits, r.Used)
	}
	return dst
}
