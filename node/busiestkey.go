package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// busiest keeps, of each rule in force that others count too, the key with the
// greatest count in the label that runs and in the one before. It costs a
// comparison a charge, allocates when rules change, and begins anew then: counts
// are those of cells, which do not.
type busiest struct {
	set   *rules.Set // that rules are of
	rules []leaders  // by Rule.Index
}

// leaders are those of one rule.
type leaders struct {
	width int64     // of a label in milliseconds, 0 for a rule that is not followed
	of    [2]leader // the label that runs, and the one before
}

// leader is the busiest key of one label. The zero value is of no label.
type leader struct {
	window  int64
	key     crdt.Key
	count   uint64
	refused Refused
}

// Refused is the hits that a daemon refused to a key while it was the busiest.
type Refused struct {
	// Rights is those that only the rights gate refused, Stranded those of them
	// that came while less than nine tenths of the limit were in use, and
	// Estimate all others.
	Rights, Stranded, Estimate uint64
}

// Busy is the busiest key of a rule in one label, as this node knows it.
type Busy struct {
	Rule *rules.Rule
	// Window is the start of the label in Unix milliseconds and Length its length.
	// Windows have their own labels. Those of a bucket are the ones its counts
	// are told under, those of a log as long as its window.
	Window, Length int64
	Key            crdt.Key
	// Count is the greatest count that was seen: of a window the hits of its
	// label, of a bucket what was in use, of a log its stamps.
	Count uint64
	Refused
}

// Fits is how many hits fit the label: the limit, and of a bucket its burst and
// what it mints in the label.
func (b *Busy) Fits() uint64 { return windowLimit(b.Rule.Limit, b.Length) }

// Over is how many hits more than fit were counted; of a bucket how many more than
// its burst were in use.
func (b *Busy) Over() uint64 {
	return b.Count - min(b.Count, quota.Of(b.Rule.Limit).Capacity())
}

func windowLimit(l *rules.Limit, width int64) uint64 {
	if !quota.Of(l).Drains() {
		return uint64(l.Requests)
	}
	return uint64(l.Burst) + uint64(l.Requests)*uint64(width)/uint64(l.Window())
}

// follows reports whether others count under a limit too.
func follows(l *rules.Limit) bool {
	return l != nil && !l.Unlimited && l.Scope != rules.NodeLocal && l.Window() > 0
}

// fit makes room for the rules in force.
func (b *busiest) fit(set *rules.Set) {
	if b.set == set {
		return
	}
	b.set, b.rules = set, make([]leaders, len(set.Rules()))
	for i, r := range set.Rules() {
		switch l := r.Limit; {
		case !follows(l):
		case quota.Of(l).Drains():
			_, b.rules[i].width, _ = quota.Of(l).Shared(&quota.Cell{}, 0)
		default:
			b.rules[i].width = l.Window()
		}
	}
}

// see takes in the count of a key under a label.
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
		s.key, s.refused = k, Refused{}
	}
	s.count = count
}

// busy takes in that hits were charged to an entry, or that it absorbed some of a
// label. What began as a copy of an overflow counter is of many keys.
func (n *Node) busy(e *entry, l *rules.Limit, window, now int64) {
	if n.replica == nil || e.rule < 0 || e.inherited() {
		return
	}
	n.busiest.fit(n.set)
	s := &n.busiest.rules[e.rule]
	switch {
	case s.width == 0:
	case quota.Of(l).Drains():
		s.see(e.key, now-now%s.width, quota.Of(l).Used(&e.cell, nil, now))
	case quota.Of(l).Stamped():
		s.see(e.key, now-now%s.width, e.cell.Count)
	case window == e.cell.Window-s.width:
		s.see(e.key, window, e.cell.Prev)
	default:
		s.see(e.key, e.cell.Window, e.cell.Count)
	}
}

// busyElsewhere takes in what others counted of a key that has no entry here.
func (n *Node) busyElsewhere(c *gossip.Change) {
	r := n.replica.shared[c.Span.Rule]
	if r == nil || !quota.Of(r.Limit).Windowed() {
		return // what is in use of it is not known
	}
	n.busiest.fit(n.set)
	if s := &n.busiest.rules[r.Index]; s.width == c.Span.WindowLength {
		s.see(c.Key, c.Window, n.replica.engine.Total(c.Key, c.Window))
	}
}

// busyRefused takes in that a hit was refused.
func (n *Node) busyRefused(h *Hit, st *Status) {
	i := n.ruleIndex(h.Rule)
	if n.replica == nil || i < 0 || h.Limit.Shadow && st.passed {
		return
	}
	n.busiest.fit(n.set)
	s := &n.busiest.rules[i].of[0]
	hits := min(h.N, 1<<32)
	switch {
	case s.key != h.Key || s.count == 0:
	case st.Gate != RightsGate:
		s.refused.Estimate += hits
	default:
		s.refused.Rights += hits
		if st.room > quota.Of(h.Limit).Capacity()/10 {
			s.refused.Stranded += hits
		}
	}
}

// busyKept is for how many milliseconds after its end a label is told of: late
// counts come in meanwhile.
const busyKept = 5_000

// Busiest calls yield for the busiest key of each rule that others count too, in
// the label that runs and in one that ended a moment ago, in the order of the
// rules and the later label first. Rules without hits in them are left out. What
// yield is handed is good until it returns.
func (n *Node) Busiest(at Instant, yield func(*Busy)) {
	if n.replica == nil || n.busiest.set != n.set {
		return
	}
	now, all := n.millis(at), n.set.Rules()
	var out Busy
	for i := range n.busiest.rules {
		s := &n.busiest.rules[i]
		for j := range s.of {
			if b := &s.of[j]; b.count > 0 && now < b.window+s.width+busyKept {
				out.Rule, out.Window, out.Length, out.Key = all[i], b.window, s.width, b.key
				out.Count, out.Refused = b.count, b.refused
				yield(&out)
			}
		}
	}
}

// RegionHits is what one region admitted.
type RegionHits struct {
	Region string
	Hits   uint64
}

// Admitted appends to dst what each region is known to have admitted of the key of
// b in its label, our own first. Of a log nothing is appended: its stamps are not
// told apart by label. What is known of a region that nobody lives in counts as
// our own.
func (n *Node) Admitted(dst []RegionHits, b *Busy) []RegionHits {
	if n.replica == nil || quota.Of(b.Rule.Limit).Stamped() {
		return dst
	}
	eng, own := n.replica.engine, len(dst)
	dst = append(dst, RegionHits{n.cfg.Region, eng.Total(b.Key, b.Window)})
	if b.Rule.Limit.Scope == rules.Region {
		return dst
	}
	n.replica.view.regions = eng.RemoteRegions(n.replica.view.regions[:0], b.Key, b.Window)
	for _, a := range n.replica.view.regions {
		dst = append(dst, RegionHits{a.Region, a.Used})
		dst[own].Hits -= min(dst[own].Hits, a.Used)
	}
	return dst
}
