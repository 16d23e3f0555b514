package node

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
)

// wavering are rights that go up and down within a window, at most those of
// shares.
type wavering struct {
	*shares
	d       *daemon
	version uint64
	least   uint64 // of 4 quarters
}

func (w *wavering) Version() uint64 { return w.version }

func (w *wavering) RegionAllotment(_, total uint64, _, _ int64) (uint64, epoch.Reason) {
	return total, epoch.ReasonEpoch
}

func (w *wavering) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	b, why := w.shares.Allotment(rule, total, x, carry, regional)
	return b * w.least / 4, why
}

func (w *wavering) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	b, why := w.shares.Former(rule, total, x, carry, regional)
	return b * w.least / 4, why
}

// storm is a cluster with random faults, and the admitted hits.
type storm struct {
	*cluster
	r        *rapid.T
	t        testing.TB
	keys     int
	maxKeys  int
	maxCells int
	waver    map[*daemon]*wavering
	limit    stormRule // the newest
	limits   map[*daemon]stormRule
	fronts   map[*daemon][2]*Matcher     // that in force, and the one before
	fixed    int64                       // the last window in which a daemon had fixed windows
	bound    map[int64]uint64            // by start of the window
	admitted map[string]map[int64]uint64 // by key and start of the window
	events   map[string][]*stormHit      // by key, in the order of time
	receipts []stormReceipt
	bent     bool
	log      []string
}

type stormRule struct {
	algorithm     string
	limit, budget int
	denied        bool
}

func (s stormRule) String() string {
	burst := ""
	if strings.HasSuffix(s.algorithm, "bucket") {
		burst = fmt.Sprintf(", burst: %d", s.limit)
	}
	return fmt.Sprintf("unit: second, unit_multiplier: 10, requests_per_unit: %d, algorithm: %s, overage_budget: %d%%, charge_denied: %v%s",
		s.limit, s.algorithm, s.budget, s.denied, burst)
}

func (s stormRule) total() uint64 { return uint64(s.limit + s.limit*s.budget/100) }

type stormHit struct {
	at int64
	n  uint64
}

type stormReceipt struct {
	d    *daemon
	node *Node
	key  string
	r    Receipt
	hit  *stormHit
}

func (s *storm) start(t testing.TB, d *daemon) {
	cfg := Default()
	cfg.Region, cfg.Name, cfg.MaxKeys = d.region, d.name, s.maxKeys
	cfg.Gossip.MaxCells = s.maxCells
	w := &wavering{shares: s.shares(d), d: d, least: 4}
	s.waver[d], cfg.Allotments = w, w
	s.born++
	n, err := New(cfg, rand.New(rand.NewPCG(s.born, 9)))
	if err != nil {
		t.Fatal(err)
	}
	d.node, d.start, d.wake = n, s.now, 0
	d.takeUp()
	if s.set != nil {
		s.reload(t, d)
	}
	s.members()
}

// reload puts the newest rules in force at a daemon.
func (s *storm) reload(t testing.TB, d *daemon) {
	d.node.SetRules(d.instant(s.now), s.set)
	s.fronts[d], s.limits[d] = [2]*Matcher{s.front, s.fronts[d][0]}, s.limit
}

// note updates the bounds of the windows around one.
func (s *storm) note(window int64) {
	for _, l := range s.limits {
		for _, x := range []int64{window - rightsWindow, window, window + rightsWindow} {
			s.bound[x] = max(s.bound[x], l.total())
		}
		if l.algorithm == "fixed_window" {
			s.fixed = max(s.fixed, window)
		}
	}
}

func (s *storm) noteRule(window int64, l *rules.Limit) {
	for _, x := range []int64{window - rightsWindow, window, window + rightsWindow} {
		s.bound[x] = max(s.bound[x], l.Total())
	}
	if l.Algorithm == rules.FixedWindow {
		s.fixed = max(s.fixed, window)
	}
}

// rule makes a rule the newest one.
func (s *storm) rule(t testing.TB) {
	all := s.daemons
	s.daemons = nil // they receive it later
	s.putRule(t, s.limit.String())
	s.daemons = all
}

// call decides some descriptors at a time.
func (s *storm) call(t testing.TB, d *daemon) {
	var call Call
	call.Domain = "d"
	call.Peek = rapid.IntRange(0, 9).Draw(s.r, "peek") == 0
	var names []string
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(s.r, "descriptors") {
		k := fmt.Sprint("v", rapid.IntRange(0, s.keys-1).Draw(s.r, "key"))
		names = append(names, k)
		call.Descriptors = append(call.Descriptors, rules.Descriptor{
			Entries: []rules.Entry{{Key: "k", Value: k}}, Hits: rapid.SampledFrom([]uint64{0, 1, 1, 1, 2, 5, 20}).Draw(s.r, "hits"),
		})
	}
	front := s.fronts[d][0]
	if old := s.fronts[d][1]; old != nil && rapid.IntRange(0, 9).Draw(s.r, "matched before the reload") == 0 {
		front = old
		window := scriptEpoch + s.now.Milliseconds()
		s.noteRule(window-window%rightsWindow, front.set.Rules()[0].Limit)
		if now := d.node.millis(d.instant(s.now)); true {
			s.noteRule(now-now%rightsWindow, front.set.Rules()[0].Limit)
		}
	}
	if err := front.Resolve(&call); err != nil {
		t.Fatal(err)
	}
	at := d.instant(s.now)
	d.node.Probe(at, call.Hits(), call.Statuses)
	front.Decide(&call)
	d.node.Charge(at, call.Hits(), call.Statuses)
	if call.Peek || !call.Decision.Allowed {
		s.drain(d)
		return
	}
	to := make([]Receipt, len(names))
	d.node.Receipts(at, call.Hits(), call.Statuses, to)
	now := d.node.now
	s.note(now - now%rightsWindow)
	for i, k := range names {
		h := &call.Hits()[i]
		if s.admitted[k] == nil {
			s.admitted[k] = map[int64]uint64{}
		}
		s.admitted[k][now-now%rightsWindow] += h.N
		s.events[k] = append(s.events[k], &stormHit{now, h.N})
		if to[i].Hits > 0 {
			s.receipts = append(s.receipts, stormReceipt{d, d.node, k, to[i], s.events[k][len(s.events[k])-1]})
		}
	}
	s.drain(d)
	s.check()
}

func (s *storm) refund() {
	if len(s.receipts) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.receipts)-1).Draw(s.r, "receipt")
	x := s.receipts[i]
	s.receipts = append(s.receipts[:i], s.receipts[i+1:]...)
	if x.d.node != x.node {
		return
	}
	back := x.node.Refund(x.d.instant(s.now), &x.r, x.r.Hits)
	x.hit.n -= back.Hits
	if s.windowed() {
		s.admitted[x.key][x.r.Window] -= back.Hits
	}
}

func (s *storm) windowed() bool { return strings.HasSuffix(s.limit.algorithm, "window") }

func (s *storm) check() {
	for k, windows := range s.admitted {
		for window, n := range windows {
			if s.windowed() && n > s.bound[window] {
				s.r.Fatalf("%s: %d admitted in window %d, want at most %d\n%s", k, n, window, s.bound[window], strings.Join(s.log, "\n"))
			}
			// Of sliding windows, as of now on the true clock.
			now := scriptEpoch + s.now.Milliseconds()
			if s.limit.algorithm == "sliding_window" && !s.bent && window > s.fixed && now-now%rightsWindow == window {
				prev := windows[window-rightsWindow] * uint64(window+rightsWindow-now) / uint64(rightsWindow)
				if n+prev > s.bound[window] {
					s.r.Fatalf("%s: %d + %d admitted in window %d, want at most %d\n%s", k, n, prev, window, s.bound[window], strings.Join(s.log, "\n"))
				}
			}
		}
		if !s.windowed() && !s.bent {
			s.checkEvents(k)
		}
	}
}

func (s *storm) checkEvents(k string) {
	all := s.events[k]
	total := s.limit.total()
	last := all[len(all)-1].at
	sum := uint64(0)
	l := s.set.Rules()[0].Limit
	for i := len(all) - 1; i >= 0; i-- {
		sum += all[i].n
		most := total
		if strings.HasSuffix(s.limit.algorithm, "bucket") {
			most += 1 + total*uint64(last-all[i].at+quota.Of(l).Step())/uint64(rightsWindow)
		} else if all[i].at <= last-rightsWindow {
			return
		}
		if sum > most {
			s.r.Fatalf("%s: %d admitted in %d ms, want at most %d\n%s", k, sum, last-all[i].at, most, strings.Join(s.log, "\n"))
		}
	}
}

func TestRightsStorm(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "token_bucket", "leaky_bucket", "sliding_log"} {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) { attackStorm(t, r, algorithm) })
		})
	}
}

func attackStorm(t *testing.T, r *rapid.T, algorithm string) {
	s := &storm{
		cluster: &cluster{
			delay: time.Millisecond, wan: rapid.SampledFrom([]time.Duration{5, 40, 800}).Draw(r, "wan") * time.Millisecond,
			rights: true, cuts: map[[2]string]bool{},
		},
		r: r, t: t, keys: rapid.IntRange(1, 4).Draw(r, "keys"), maxKeys: rapid.SampledFrom([]int{1, 2, 3, 100}).Draw(r, "max keys"),
		maxCells: rapid.SampledFrom([]int{1, 2, 3, 4, 6, 10, 100, 1000}).Draw(r, "max cells"),
		waver:    map[*daemon]*wavering{}, limits: map[*daemon]stormRule{}, fronts: map[*daemon][2]*Matcher{}, bound: map[int64]uint64{}, admitted: map[string]map[int64]uint64{}, events: map[string][]*stormHit{},
	}
	for _, n := range []string{"a1", "a2", "a3", "b1", "c1"}[:rapid.IntRange(2, 5).Draw(r, "daemons")] {
		s.daemons = append(s.daemons, &daemon{name: n, region: n[:1]})
	}
	for _, d := range s.daemons {
		s.start(t, d)
	}
	s.limit = stormRule{algorithm: algorithm, limit: rapid.IntRange(1, 80).Draw(r, "limit"), budget: rapid.IntRange(0, 50).Draw(r, "budget")}
	s.limit.denied = rapid.IntRange(0, 4).Draw(r, "charge denied") == 0
	s.rule(t)
	for _, d := range s.daemons {
		s.reload(t, d)
	}
	bends := rapid.IntRange(0, 2).Draw(r, "clocks bend") == 0
	for range rapid.IntRange(5, 80).Draw(r, "steps") {
		s.harm(t, bends)
	}
}

func (s *storm) pick() *daemon {
	return s.daemons[rapid.IntRange(0, len(s.daemons)-1).Draw(s.r, "daemon")]
}

func (s *storm) harm(t *testing.T, bends bool) {
	what, d := rapid.IntRange(0, 18).Draw(s.r, "what"), s.pick()
	switch {
	case what < 6 && d.node != nil:
		times := rapid.SampledFrom([]int{1, 2, 5, 30}).Draw(s.r, "times")
		s.log = append(s.log, fmt.Sprintf("%v ask %s %d", s.now, d.name, times))
		for range times {
			s.call(t, d)
		}
	case what < 9:
		s.pass(time.Duration(rapid.SampledFrom([]int{1, 3, 20, 100, 700, 3000, 9000}).Draw(s.r, "ms")) * time.Millisecond)
	case what == 9:
		if n := len(s.flight); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(s.r, "lost or twice")
			if rapid.Bool().Draw(s.r, "lost") {
				s.flight = append(s.flight[:i], s.flight[i+1:]...)
			} else {
				again := s.flight[i]
				again.at += time.Duration(rapid.IntRange(0, 12_000).Draw(s.r, "late")) * time.Millisecond
				s.flight = append(s.flight, again)
			}
		}
	case what == 10:
		to := s.pick()
		if rapid.IntRange(0, 2).Draw(s.r, "heal") == 0 {
			clear(s.cuts)
		} else {
			s.cuts[[2]string{d.name, to.name}] = true
		}
	case what == 11:
		verb := "start"
		switch {
		case d.node == nil:
			s.start(t, d)
		case rapid.Bool().Draw(s.r, "stop"):
			s.stop(t, d)
			verb = "stop"
		default:
			d.node = nil
			s.members()
			verb = "crash"
		}
		s.log = append(s.log, fmt.Sprintf("%v %s %s", s.now, verb, d.name))
	case what == 12:
		w := s.waver[d]
		w.version++
		w.least = rapid.Uint64Range(0, 4).Draw(s.r, "quarters")
		s.log = append(s.log, fmt.Sprintf("%v %s holds %d quarters", s.now, d.name, w.least))
	case what == 13:
		for range 3 {
			s.refund()
		}
	case what == 14 && bends:
		s.bent = true
		d.bend += time.Duration(rapid.SampledFrom([]int{-5000, -400, 100, 400, 900, 11_000, 60_000}).Draw(s.r, "bend")) * time.Millisecond
		s.log = append(s.log, fmt.Sprintf("%v %s bends to %v", s.now, d.name, d.bend))
	case what == 16:
		s.forge(d, s.pick())
	case what == 17 && d.node != nil:
		var peers []gossip.Peer
		for _, o := range s.daemons {
			if o.node != nil && rapid.Bool().Draw(s.r, "member") {
				peers = append(peers, gossip.Peer{ID: o.node.Incarnation(), Name: o.name, Region: o.region})
			}
		}
		d.node.Peers(d.instant(s.now), peers)
		s.drain(d)
	case what == 18 && d.node != nil:
		s.reload(t, d)
	case what == 15 && s.windowed():
		now := scriptEpoch + s.now.Milliseconds()
		s.note(now - now%rightsWindow)
		s.limit.limit = rapid.IntRange(1, 80).Draw(s.r, "limit")
		s.limit.budget = rapid.IntRange(0, 50).Draw(s.r, "budget")
		s.limit.algorithm = rapid.SampledFrom([]string{"fixed_window", "sliding_window"}).Draw(s.r, "algorithm")
		s.rule(t)
		for _, d := range s.daemons {
			if d.node != nil && rapid.IntRange(0, 3).Draw(s.r, "hears of the rule") > 0 {
				s.reload(t, d)
			}
		}
		s.note(now - now%rightsWindow)
		s.log = append(s.log, fmt.Sprintf("%v rule %v", s.now, s.limit))
	}
}

// forge sends a daemon invalid rights messages.
func (s *storm) forge(d, from *daemon) {
	if d.node == nil || from.node == nil || d == from {
		return
	}
	var call Call
	s.resolve(s.t, &call, fmt.Sprint("k=v", rapid.IntRange(0, s.keys-1).Draw(s.r, "key")))
	h := call.Hits()[0]
	now := d.node.millis(d.instant(s.now))
	x, _ := quota.Of(h.Limit).RightsWindow(now)
	m := gossip.Message{From: from.node.Incarnation(), To: d.node.Incarnation(), Shards: 1}
	any := func(name string) uint64 {
		return rapid.SampledFrom([]uint64{0, 1, 10, 1 << 40, 1<<64 - 1}).Draw(s.r, name)
	}
	for range rapid.IntRange(1, 5).Draw(s.r, "notes") {
		to := s.pick()
		n := gossip.RightsMessage{
			Kind: gossip.RightsMessageKind(rapid.IntRange(0, 7).Draw(s.r, "kind")), Key: h.Key, Rule: h.Rule.Shared(),
			Window: x + rapid.SampledFrom([]int64{0, 0, 0, -rightsWindow, rightsWindow}).Draw(s.r, "label"),
			Rights: any("rights"), Second: any("second"), Need: any("need"), For: crdt.Incarnation(any("for")),
		}
		if to.node != nil && rapid.Bool().Draw(s.r, "for one") {
			n.For = to.node.Incarnation()
		}
		m.RightsMessages = append(m.RightsMessages, n)
	}
	_ = d.node.Step(d.instant(s.now), &m)
	s.drain(d)
	s.log = append(s.log, fmt.Sprintf("%v %s hears %+v of %s", s.now, d.name, m.RightsMessages, from.name))
}
