package node

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// slip is a receipt and the node that wrote it, and when its hits came.
type slip struct {
	node    *Node
	receipt Receipt
	window  int64 // of rightsWindow
	at      int64 // Unix milliseconds
}

// charge asks once at a daemon and returns the slip of it, nil when there is
// none.
func (c *cluster) charge(t testing.TB, d *daemon, call *Call, text string) *slip {
	t.Helper()
	c.ask(t, d, call, text)
	to := make([]Receipt, 1)
	d.node.Receipts(d.instant(c.now), call.Hits(), call.Statuses, to)
	if to[0].Hits == 0 {
		return nil
	}
	now := d.node.now
	return &slip{d.node, to[0], now - now%rightsWindow, now}
}

// remaining is the remaining hits that a daemon reports.
func (c *cluster) remaining(t testing.TB, name, text string) uint64 {
	t.Helper()
	var call Call
	c.resolve(t, &call, text)
	call.Peek = true
	d := c.find(t, name)
	at := d.instant(c.now)
	d.node.Probe(at, call.Hits(), call.Statuses)
	c.front.Decide(&call)
	d.node.Charge(at, call.Hits(), call.Statuses)
	return call.Statuses[0].Remaining
}

// Refunded hits may be used again, at once at the daemon itself and elsewhere
// when the refund has arrived, in this region and others.
func TestRefundsReachOtherDaemons(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log", "token_bucket", "leaky_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			c := newCluster(t, "{unit: hour, requests_per_unit: 10, algorithm: "+algorithm+"}", "a1", "a2", "b1", "c1")
			var all []*slip
			var call Call
			for range 6 {
				all = append(all, c.charge(t, c.find(t, "a1"), &call, "user=u"))
			}
			c.admit(t, "b1", 2)
			c.pass(3 * time.Second)
			for _, s := range all[:4] {
				at := c.find(t, "a1").instant(c.now)
				if got := s.node.Refund(at, &s.receipt, 1); got != (Refunded{Hits: 1}) {
					t.Fatalf("refund: %+v", got)
				}
			}
			if got := c.remaining(t, "a1", "user=u"); got != 6 {
				t.Errorf("a1 itself has %d left, want 6", got)
			}
			c.pass(3 * time.Second)
			for _, d := range c.daemons {
				if got := c.remaining(t, d.name, "user=u"); got != 6 {
					t.Errorf("%s has %d left, want 6", d.name, got)
				}
			}
			if got := c.admit(t, "c1", 10); got != 6 {
				t.Errorf("c1 admits %d, want 6", got)
			}
		})
	}
}

// Hits and refunds that arrive while a rule is not in force here count once it
// is again: after a reload without it, and after one with another grid.
func TestRefundsArriveWhileTheRuleIsGone(t *testing.T) {
	for _, algorithm := range rules.Algorithms() {
		for _, other := range []string{"{unit: day, requests_per_unit: 5}", ""} {
			t.Run(algorithm+other, func(t *testing.T) {
				c := newCluster(t, "{unit: hour, requests_per_unit: 10, algorithm: "+algorithm+"}", "a1", "a2")
				a1, a2 := c.find(t, "a1"), c.find(t, "a2")
				var all []*slip
				var call Call
				for range 6 {
					all = append(all, c.charge(t, a1, &call, "user=u"))
				}
				c.admit(t, "a2", 1)
				c.pass(time.Second)
				set, front := c.set, c.front
				c.put(t, "domain: d\ndescriptors:\n  - key: user\n"+map[bool]string{true: "    rate_limit: " + other}[other != ""])
				a1.node.SetRules(a1.instant(c.now), set)
				c.front = front
				c.admit(t, "a1", 1)
				for _, s := range all[:4] {
					if got := s.node.Refund(a1.instant(c.now), &s.receipt, 1); got != (Refunded{Hits: 1}) {
						t.Fatalf("refund: %+v", got)
					}
				}
				c.pass(time.Second)
				a2.node.SetRules(a2.instant(c.now), set)
				c.set = set
				for _, d := range c.daemons {
					if got := c.remaining(t, d.name, "user=u"); got != 6 {
						t.Errorf("%s has %d left, want 6", d.name, got)
					}
				}
			})
		}
	}
}

func TestRefundRefusals(t *testing.T) {
	alone := &cluster{}
	d := &daemon{name: "x"}
	alone.daemons = append(alone.daemons, d)
	alone.start(t, d)
	for _, tt := range []struct {
		algorithm string
		after     time.Duration // a window is ten seconds
		want      Refunded
		left      uint64
	}{
		{"fixed_window", 9 * time.Second, Refunded{Hits: 3}, 5},
		{"fixed_window", 10 * time.Second, Refunded{Expired: true}, 5},
		{"sliding_window", 10 * time.Second, Refunded{Hits: 3}, 5},
		{"sliding_window", 20 * time.Second, Refunded{Expired: true}, 5},
		{"sliding_log", 9999 * time.Millisecond, Refunded{Hits: 3}, 5},
		{"sliding_log", 10 * time.Second, Refunded{Expired: true}, 5},
		{"token_bucket", time.Second, Refunded{Hits: 3}, 5},
		{"token_bucket", 10 * time.Second, Refunded{Expired: true}, 5},
	} {
		alone.now = (alone.now + 2*time.Minute).Truncate(time.Minute)
		limit := "{unit: second, unit_multiplier: 10, requests_per_unit: 5, algorithm: " + tt.algorithm + "}"
		alone.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: "+limit+"\n")
		var call Call
		alone.resolve(t, &call, "k="+fmt.Sprint(alone.now, tt.algorithm))
		call.Hits()[0].N = 3
		at := d.instant(alone.now)
		d.node.Take(at, call.Hits(), call.Statuses)
		to := make([]Receipt, 1)
		d.node.Receipts(at, call.Hits(), call.Statuses, to)
		if to[0].Hits != 3 || !to[0].Alone {
			t.Fatalf("%s: receipt %+v", tt.algorithm, to[0])
		}
		alone.now += tt.after
		if got := d.node.Refund(d.instant(alone.now), &to[0], 99); got != tt.want {
			t.Errorf("%s after %v: %+v, want %+v", tt.algorithm, tt.after, got, tt.want)
		}
		d.node.Probe(d.instant(alone.now), call.Hits(), call.Statuses)
		d.node.Charge(d.instant(alone.now), call.Hits()[:0], nil)
		if st := &call.Statuses[0]; st.Over {
			t.Errorf("%s after %v: 3 of 5 do not fit", tt.algorithm, tt.after)
		}
	}
}

// There is no receipt for hits that were denied, peeked, or counted with other
// keys.
func TestNoReceipt(t *testing.T) {
	c := &cluster{}
	d := &daemon{name: "x"}
	c.daemons = append(c.daemons, d)
	c.start(t, d)
	c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: hour, requests_per_unit: 1}\n")
	resize(d.node, 1)
	var call Call
	if c.charge(t, d, &call, "k=a") == nil {
		t.Error("no receipt for an admitted hit")
	}
	if s := c.charge(t, d, &call, "k=a"); s != nil || call.Decision.Allowed {
		t.Errorf("a refused hit: %+v", s)
	}
	if s := c.charge(t, d, &call, "k=b"); s != nil || call.Statuses[0].Degraded != KeysFull || !call.Decision.Allowed {
		t.Errorf("a hit on an overflow counter: %+v", s)
	}
	gone := &Receipt{ID: 99, Rule: 99, Window: d.node.now, Hits: 1, Alone: true}
	if got := d.node.Refund(d.instant(c.now), gone, 1); !got.Expired {
		t.Errorf("of a rule that is not there: %+v", got)
	}
	bad := &Receipt{Length: math.MaxInt64, Window: math.MaxInt64, Until: math.MaxInt64, Hits: 1}
	if got := d.node.Refund(d.instant(c.now), bad, 1); !got.Expired {
		t.Errorf("of an endless window: %+v", got)
	}
}

// The hits of an override come back too: it has no rule to be found by.
func TestRefundOfOverride(t *testing.T) {
	c := newCluster(t, tenAMinute, "a1", "a2")
	h := []Hit{{Key: testKeyOf(c, t), Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 5}, N: 4}}
	out, to := []Status{{Limit: h[0].Limit}}, make([]Receipt, 1)
	a1, a2 := c.find(t, "a1"), c.find(t, "a2")
	a1.node.Take(a1.instant(c.now), h, out)
	a1.node.Receipts(a1.instant(c.now), h, out, to)
	c.drain(a1)
	c.pass(time.Second)
	if got := a1.node.Refund(a1.instant(c.now), &to[0], 4); got != (Refunded{Hits: 4}) {
		t.Fatalf("%+v of %+v", got, to[0])
	}
	c.pass(time.Second)
	h[0].N = 5
	if a2.node.Take(a2.instant(c.now), h, out); out[0].Over {
		t.Errorf("5 of 5 do not fit at a2, %d left", out[0].Remaining)
	}
}

func testKeyOf(c *cluster, t testing.TB) crdt.Key {
	t.Helper()
	var call Call
	c.resolve(t, &call, "user=override")
	return call.Hits()[0].Key
}

// The rights that a refund returns are those of the window that they were used
// in, and no others: an account that was made before and one that is made after
// report the same.
func TestRefundReturnsRights(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log", "token_bucket"} {
		c := &cluster{delay: time.Millisecond, wan: 40 * time.Millisecond, rights: true, cuts: map[[2]string]bool{
			{"a", "b"}: true, {"b", "a"}: true,
		}}
		for _, n := range []string{"a1", "b1"} {
			c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
		}
		for _, d := range c.daemons {
			c.start(t, d)
		}
		c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: hour, requests_per_unit: 20,"+
			" algorithm: "+algorithm+", consistency: partition}\n")
		c.pass(time.Second)
		a1 := c.find(t, "a1")
		var call Call
		var all []*slip
		for range 12 {
			if s := c.charge(t, a1, &call, "k=v"); s != nil {
				all = append(all, s)
			}
		}
		if len(all) != 10 {
			t.Fatalf("%s: %d admitted of 20 by one of two daemons, want 10", algorithm, len(all))
		}
		for _, s := range all[:4] {
			s.node.Refund(a1.instant(c.now), &s.receipt, 1)
		}
		want := 0
		if algorithm == "fixed_window" || algorithm == "sliding_window" {
			want = 4
		}
		again := 0
		for range 10 {
			if c.ask(t, a1, &call, "k=v"); call.Decision.Allowed {
				again++
			}
		}
		if again != want {
			t.Errorf("%s: %d admitted after 4 refunds, want %d", algorithm, again, want)
		}
	}
}

// These schedules break the limit of 10, of which a1 has the rights to 5, where
// a refund is applied carelessly. The number of hits that a1 uses in a window
// distinguishes the present rule from the broken one:
//
//	schedule    the broken rule                               used, of 5
//	Twice       a receipt is used as often as it is passed in 6: hits of another are refunded
//	NextWindow  a refund counts in the window of its arrival  6: likewise
func TestMutationRefundTwice(t *testing.T) {
	mutated(t, func(broken bool) int {
		w := halves(t)
		slips := w.use(t, 10)
		w.refund(slips[0])
		if broken {
			slips[0].receipt.Number += 1 << 32 // as if it was forgotten
		}
		w.refund(slips[0])
		return len(slips) - 1 + len(w.use(t, 10))
	}, 5, 6)
}

func TestMutationRefundInTheNextWindow(t *testing.T) {
	mutated(t, func(broken bool) int {
		w := halves(t)
		old := w.use(t, 10)[0]
		w.c.pass(time.Minute)
		slips := w.use(t, 10)
		if broken {
			old.receipt.Window = slips[0].receipt.Window
		}
		w.refund(old)
		return len(slips) + len(w.use(t, 10))
	}, 5, 6)
}

// half is a daemon with one half of the rights.
type half struct {
	c *cluster
	d *daemon
}

// halves starts two regions that cannot reach each other.
func halves(t *testing.T) *half {
	c := &cluster{delay: time.Millisecond, wan: time.Millisecond, rights: true}
	c.cuts = map[[2]string]bool{{"a", "b"}: true, {"b", "a"}: true}
	for _, n := range []string{"a1", "b1"} {
		c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: minute, requests_per_unit: 10, consistency: partition}\n")
	c.pass(time.Second)
	return &half{c, c.daemons[0]}
}

// use sends n calls and returns the receipts of the admitted ones.
func (w *half) use(t *testing.T, n int) (all []*slip) {
	var call Call
	for range n {
		if s := w.c.charge(t, w.d, &call, "k=v"); s != nil {
			all = append(all, s)
		}
	}
	return all
}

func (w *half) refund(s *slip) { w.d.node.Refund(w.d.instant(w.c.now), &s.receipt, 1) }

// Two daemons of another region may report its sum with more hits and fewer
// refunds, and then with more refunds again. However often that happens, no
// count falls below the known one: a daemon that considered its own hits
// refunded would admit more than its rights.
func TestRefundsOfSumsTakeNoOthersHits(t *testing.T) {
	c := newCluster(t, "{unit: hour, requests_per_unit: 100, consistency: partition}", "a1", "b1")
	a1, b1 := c.find(t, "a1"), c.find(t, "b1")
	var call Call
	s := c.charge(t, a1, &call, "user=u")
	for range 4 {
		c.charge(t, a1, &call, "user=u")
	}
	c.pass(time.Second)
	c.cuts[[2]string{"b", "a"}] = true
	id := gossip.CellID{Key: s.receipt.Key, Window: s.receipt.Window, Kind: gossip.RegionSum, Incarnation: gossip.RegionIncarnation("b")}
	span := gossip.CellMeta{Rule: s.receipt.Rule, WindowLength: s.receipt.Length}
	for i := range uint64(5) {
		for _, n := range []uint64{0, 9} {
			m := gossip.Message{From: b1.node.Incarnation(), To: a1.node.Incarnation(), Shards: 1}
			m.Stamp, m.Nonce = b1.node.clock.Now(b1.instant(c.now)), 1<<40+2*i+n
			m.Cells = []gossip.Cell{{CellID: id, CellMeta: span, Value: crdt.PN{P: 10 + i, N: n}}}
			if err := a1.node.Step(a1.instant(c.now), &m); err != nil {
				t.Fatal(err)
			}
		}
		known := a1.node.replica.engine.Total(id.Key, id.Window)
		if held := a1.node.keys.live.Find(id.Key).Cell.Count; held < known || known != 5+1+i {
			t.Fatalf("round %d: %d hits count, %d are known, want %d", i, held, known, 6+i)
		}
	}
}
