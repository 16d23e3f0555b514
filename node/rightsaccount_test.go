package node

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// rightsCluster starts daemons, named by region and number, under one rule.
func rightsCluster(t testing.TB, rule string, names ...string) *cluster {
	t.Helper()
	c := &cluster{delay: time.Millisecond, wan: time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	for _, n := range names {
		c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.putRule(t, rule)
	c.pass(500 * time.Millisecond)
	return c
}

func (c *cluster) putRule(t testing.TB, rule string) {
	t.Helper()
	c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {"+rule+"}\n")
}

// grant sends a daemon n calls of one hit and returns how many it admitted.
func (c *cluster) grant(t testing.TB, d *daemon, text string, n int) (admitted uint64) {
	t.Helper()
	var call Call
	for range n {
		c.ask(t, d, &call, text)
		if call.Decision.Allowed {
			admitted++
		}
	}
	return admitted
}

const fixed100 = "unit: minute, unit_multiplier: 10, requests_per_unit: 100, overage_budget: 0%"

// Given rights count also for a key that is far from its limit. The requester's
// hits before its restart were never sent.
func TestShortcutAfterTransfer(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "a2")
	a1, a2 := c.daemons[0], c.daemons[1]
	c.cuts[[2]string{"a1", "a2"}] = true
	got := c.grant(t, a1, "k=v", 200)
	a1.node = nil
	c.members()
	clear(c.cuts)
	c.pass(time.Second)
	c.start(t, a1)
	c.pass(3 * time.Second)
	got += c.grant(t, a1, "k=v", 1) // it holds nothing, and requests rights
	c.pass(20 * time.Millisecond)   // the transfer arrives
	c.cuts[[2]string{"a1", "a2"}] = true
	got += c.grant(t, a1, "k=v", 200)
	got += c.grant(t, a2, "k=v", 200)
	if got > 100 {
		t.Errorf("%d admitted, want at most 100", got)
	}
}

// A new key twice in one call uses its rights once for each hit.
func TestNewKeyTwiceInACall(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "b1")
	for _, n := range [][]uint64{{50, 50}, {40, 40}, {20, 10, 30, 30}, {50, 0, 50}} {
		var call Call
		total := uint64(0)
		call.Domain = "d"
		for _, hits := range n {
			call.Descriptors = append(call.Descriptors, rules.Descriptor{
				Entries: []rules.Entry{{Key: "k", Value: fmt.Sprint("v", n)}}, Hits: hits,
			})
		}
		if err := c.front.Resolve(&call); err != nil {
			t.Fatal(err)
		}
		d := c.daemons[0]
		at := d.instant(c.now)
		d.node.Probe(at, call.Hits(), call.Statuses)
		c.front.Decide(&call)
		d.node.Charge(at, call.Hits(), call.Statuses)
		if call.Decision.Allowed {
			for _, hits := range n {
				total += hits
			}
		}
		if total > 50 {
			t.Errorf("%v: %d admitted in one call, want at most 50", n, total)
		}
	}
}

// There is no room for the own cell after rights were given.
func TestNoRoomAfterTransfer(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "a2")
	a1, a2 := c.daemons[0], c.daemons[1]
	got := c.grant(t, a1, "k=v", 40)
	c.pass(20 * time.Millisecond)
	c.cuts[[2]string{"a1", "a2"}] = true
	got += c.grant(t, a1, "k=v", 200)
	// As if Add had found no room.
	var call Call
	c.resolve(t, &call, "k=v")
	n := a2.node
	n.keys.live.Find(call.Hits()[0].Key).Inherit()
	got += c.grant(t, a2, "k=v", 200)
	if got > 100 {
		t.Errorf("%d admitted, want at most 100", got)
	}
}

// Keys of a bucket that share the overflow counter share its rights.
func TestBucketRightsInOverflowCounter(t *testing.T) {
	c := &cluster{delay: time.Millisecond, wan: time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	for _, n := range []string{"a1", "b1", "c1"} {
		d := &daemon{name: n, region: n[:1]}
		c.daemons = append(c.daemons, d)
	}
	for _, d := range c.daemons {
		c.start(t, d)
		resize(d.node, 1)
	}
	c.putRule(t, "unit: minute, requests_per_unit: 600, burst: 60, algorithm: token_bucket, overage_budget: 0%")
	for _, d := range c.daemons {
		c.grant(t, d, "k=first", 20)
	}
	got, from := uint64(0), c.now
	for range 600 { // a minute
		for _, d := range c.daemons {
			c.grant(t, d, "k=first", 1) // keeps its entry
			got += c.grant(t, d, "k=v", 3)
		}
		c.pass(100 * time.Millisecond)
	}
	span := (c.now - from).Seconds()
	if most := uint64(60 + 600*span/60 + 1); got > most {
		t.Errorf("%d admitted in %v s, want at most %d", got, span, most)
	}
}

// A rights message or a cell about an unlimited rule is ignored.
func TestRightsMessageOfUnlimitedRule(t *testing.T) {
	c := &cluster{delay: time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	c.daemons = []*daemon{{name: "a1", region: "a"}, {name: "a2", region: "a"}}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {"+fixed100+"}\n  - key: free\n    rate_limit: {unlimited: true}\n")
	for _, r := range c.set.Rules() {
		for kind := gossip.TransferRequest; kind <= gossip.MaxRightsMessage; kind++ {
			n := gossip.RightsMessage{Kind: kind, Key: crdt.Key(1<<32 | 2), Rule: r.Shared(), Rights: math.MaxUint64, Second: math.MaxUint64, Need: math.MaxUint64, For: c.daemons[1].node.Incarnation()}
			a1, a2 := c.daemons[0].node, c.daemons[1].node
			n.Window, _ = func() (int64, int64) {
				if r.Limit.Unlimited {
					return 0, 0
				}
				return quota.Of(r.Limit).RightsWindow(a1.millis(c.daemons[0].instant(c.now)))
			}()
			m := gossip.Message{From: a2.Incarnation(), To: a1.Incarnation(), Shards: 1, Part: gossip.Part{RightsMessages: []gossip.RightsMessage{n}}}
			m.Nonce = 1
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("rule %v, kind %d: panic: %v", r.Path, kind, p)
					}
				}()
				if err := a1.Step(c.daemons[0].instant(c.now), &m); err != nil {
					t.Fatal(err)
				}
			}()
		}
	}
	// A transfer under the unlimited rule for a key that has an account.
	c.grant(t, c.daemons[0], "k=v", 50)
	var call Call
	c.resolve(t, &call, "k=v")
	var free *rules.Rule
	for _, r := range c.set.Rules() {
		if r.Limit.Unlimited {
			free = r
		}
	}
	a1, a2 := c.daemons[0].node, c.daemons[1].node
	now := a1.millis(c.daemons[0].instant(c.now))
	m := gossip.Message{From: a2.Incarnation(), To: a1.Incarnation(), Shards: 1, Part: gossip.Part{Cells: []gossip.Cell{{
		CellID:   gossip.CellID{Key: call.Hits()[0].Key, Window: now - now%600_000, Kind: gossip.Given, Incarnation: a1.Incarnation()},
		CellMeta: gossip.CellMeta{Rule: free.Shared(), WindowLength: 600_000}, Value: crdt.PN{P: 1},
	}}}}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("gift under an unlimited rule: panic: %v", p)
		}
	}()
	if err := a1.Step(c.daemons[0].instant(c.now), &m); err != nil {
		t.Fatal(err)
	}
}

// A budget is disabled and enabled again within a window.
func TestBudgetOffAndOn(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "b1")
	c.cuts[[2]string{"a", "b"}], c.cuts[[2]string{"b", "a"}] = true, true
	got := uint64(0)
	for _, d := range c.daemons {
		got += c.grant(t, d, "k=v", 30) // makes accounts
	}
	c.putRule(t, "unit: minute, unit_multiplier: 10, requests_per_unit: 100")
	for _, d := range c.daemons {
		got += c.grant(t, d, "k=v", 20)
	}
	c.putRule(t, fixed100)
	for _, d := range c.daemons {
		got += c.grant(t, d, "k=v", 200)
	}
	if got > 100 {
		t.Errorf("%d admitted, want at most 100: without the budget each used no more than its rights", got)
	}
}

// A call that was matched before a reload must not cache the allotment of its
// former rule.
func TestAllotmentOfFormerRule(t *testing.T) {
	const regional = "unit: minute, unit_multiplier: 10, requests_per_unit: 100, overage_budget: 0%, scope: region"
	c := rightsCluster(t, regional, "a1", "b1")
	var calls [2]Call
	for i := range calls {
		c.resolve(t, &calls[i], "k=late") // one more key
	}
	c.putRule(t, fixed100)
	got := uint64(0)
	for i, d := range c.daemons {
		at := d.instant(c.now)
		d.node.Probe(at, calls[i].Hits(), calls[i].Statuses) // the first in force under the new rules
		c.front.Decide(&calls[i])
		d.node.Charge(at, calls[i].Hits(), calls[i].Statuses)
	}
	c.cuts[[2]string{"a", "b"}], c.cuts[[2]string{"b", "a"}] = true, true
	for _, d := range c.daemons {
		got += c.grant(t, d, "k=v", 200)
	}
	if got > 100 {
		t.Errorf("%d admitted of a key, want at most 100", got)
	}
}

// A rights message about a key under a rule of another grid is ignored.
func TestRightsMessageOfOtherRule(t *testing.T) {
	c := &cluster{delay: time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	c.daemons = []*daemon{{name: "a1", region: "a"}, {name: "b1", region: "b"}}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {"+fixed100+"}\n  - key: j\n    rate_limit: {unit: second, requests_per_unit: 100, overage_budget: 0%}\n")
	a1, b1 := c.daemons[0], c.daemons[1]
	c.cuts[[2]string{"a", "b"}], c.cuts[[2]string{"b", "a"}] = true, true
	got := c.grant(t, a1, "k=v", 200) + c.grant(t, b1, "k=v", 200)
	c.pass(2 * time.Second)
	var call Call
	c.resolve(t, &call, "k=v")
	now := a1.node.millis(a1.instant(c.now))
	for _, r := range c.set.Rules() {
		if r.Limit.Window() != 1000 {
			continue
		}
		m := gossip.Message{From: b1.node.Incarnation(), To: a1.node.Incarnation(), Shards: 1, Part: gossip.Part{RightsMessages: []gossip.RightsMessage{{
			Kind: gossip.TransferRefusal, Key: call.Hits()[0].Key, Rule: r.Shared(), Window: now - now%1000,
		}}}}
		if err := a1.node.Step(a1.instant(c.now), &m); err != nil {
			t.Fatal(err)
		}
	}
	got += c.grant(t, a1, "k=v", 200)
	if got > 100 {
		t.Errorf("%d admitted, want at most 100", got)
	}
}

// Denied hits that a bucket charges (charge_denied) are forgiven by its meter,
// and not by its account.
func TestBucketDebtInAccount(t *testing.T) {
	c := rightsCluster(t, "unit: minute, requests_per_unit: 600, burst: 60, algorithm: token_bucket, overage_budget: 0%, charge_denied: true", "a1", "b1")
	a1, got := c.daemons[0], uint64(0)
	c.grant(t, a1, "k=v", 20_000)
	for range 120 {
		c.pass(time.Second)
		got += c.grant(t, a1, "k=v", 1)
	}
	if got < 100 {
		t.Errorf("%d of 120 admitted in two minutes at a tenth of the limit", got)
	}
}

// TestExplainMovesNothing asks for the account of a key some windows later: the
// account stays as the latest hit left it.
func TestExplainMovesNothing(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log", "token_bucket, burst: 60"} {
		t.Run(algorithm, func(t *testing.T) {
			c := rightsCluster(t, "unit: second, requests_per_unit: 60, overage_budget: 0%, algorithm: "+algorithm, "a1", "b1")
			a1 := c.daemons[0]
			c.grant(t, a1, "k=v", 20)
			var call Call
			c.resolve(t, &call, "k=v")
			h := &call.Hits()[0]
			e := a1.node.keys.live.Find(h.Key)
			if e == nil {
				t.Fatal("the key has no counter")
			}
			account := a1.node.accountOf(h, ref{where: inLive, entry: e}, a1.node.millis(a1.instant(c.now)))
			was := account.Account
			c.now += 5 * time.Second
			if x := a1.node.Explain(a1.instant(c.now), h); x.Rights == nil || x.Rights.Left == 0 {
				t.Errorf("explained %+v, want rights that are left", x.Rights)
			}
			if !reflect.DeepEqual(account.Account, was) {
				t.Errorf("the account is %+v, and was %+v", account.Account, was)
			}
		})
	}
}
