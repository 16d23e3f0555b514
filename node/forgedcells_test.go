package node

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// A fixed window becomes a sliding one; hits of the window before still weigh.
func TestFixedBecomesSliding(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "b1", "c1", "d1")
	for _, x := range c.daemons {
		for _, y := range c.daemons {
			if x != y {
				c.cuts[[2]string{x.name, y.name}] = true
			}
		}
	}
	prev := uint64(0)
	for _, d := range c.daemons {
		prev += c.grant(t, d, "k=v", 12)
	}
	c.putRule(t, fixed100+", algorithm: sliding_window")
	c.pass(10*time.Minute + 10*time.Second - c.now)
	got := uint64(0)
	for _, d := range c.daemons {
		got += c.grant(t, d, "k=v", 100)
	}
	w := (20*time.Minute - c.now).Seconds() / 600
	if sum := float64(got) + float64(prev)*w; sum > 100 {
		t.Errorf("%d and %d before, at %.3f: %.1f, want at most 100", got, prev, w, sum)
	}
}

// A refused hit at the aggregator of its key, as a flood of them costs.
func BenchmarkDeniedAtAggregator(b *testing.B) {
	for _, sliding := range []string{fixed100} {
		c := rightsCluster(b, sliding, "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b1", "c1")
		var call Call
		for _, d := range c.daemons {
			c.grant(b, d, "k=v", 40)
			c.pass(300 * time.Millisecond)
		}
		for _, d := range c.daemons[:9] {
			c.resolve(b, &call, "k=v")
			if !d.node.replica.engine.Aggregates(call.Hits()[0].Key) {
				continue
			}
			at := d.instant(c.now)
			b.ReportAllocs()
			for b.Loop() {
				at.Mono += 1000
				at.Wall += 1000
				d.node.Take(at, call.Hits(), call.Statuses)
			}
		}
	}
}

// Cells and notes that make no sense, of rules of all kinds.
func TestForgedCells(t *testing.T) {
	const yaml = `domain: d
descriptors:
  - {key: a, rate_limit: {unlimited: true}}
  - {key: b, rate_limit: {unit: second, requests_per_unit: 10, overage_budget: 5%}}
  - {key: c, rate_limit: {unit: year, requests_per_unit: 10, overage_budget: 5%, algorithm: sliding_window}}
  - {key: e, rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: 10, overage_budget: 5%, algorithm: sliding_log}}
  - {key: f, rate_limit: {unit: minute, requests_per_unit: 10, burst: 10, overage_budget: 5%, algorithm: token_bucket}}
  - {key: g, rate_limit: {unit: minute, requests_per_unit: 0, overage_budget: 5%, algorithm: token_bucket}}
  - {key: h, rate_limit: {unit: minute, requests_per_unit: 5, scope: node}}
  - {key: i, rate_limit: {unit: minute, requests_per_unit: 0, overage_budget: 5%}}
  - {key: j, rate_limit: {unit: minute, requests_per_unit: 4, overage_budget: 5%, scope: region}}
  - {key: l, rate_limit: {unit: minute, requests_per_unit: 4, overage_budget: 5%, carry_debt: true}}
  - {key: m}
`
	rapid.Check(t, func(r *rapid.T) {
		c := &cluster{delay: time.Millisecond, wan: time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
		c.daemons = []*daemon{{name: "a1", region: "a"}, {name: "a2", region: "a"}, {name: "b1", region: "b"}}
		for _, d := range c.daemons {
			c.start(t, d)
		}
		c.put(t, yaml)
		keys := []string{"a", "b", "c", "e", "f", "g", "h", "i", "j", "l", "m"}
		num := rapid.SampledFrom([]uint64{0, 1, 3, 100, 1 << 32, crdt.Max - 1, crdt.Max, 1 << 63, math.MaxUint64})
		sig := rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, 50, 1000, 60_000, 1 << 40, math.MaxInt64 - 1, math.MaxInt64})
		for range rapid.IntRange(3, 40).Draw(r, "steps") {
			d, from := c.daemons[rapid.IntRange(0, 2).Draw(r, "d")], c.daemons[rapid.IntRange(0, 2).Draw(r, "from")]
			if rapid.IntRange(0, 2).Draw(r, "what") == 0 {
				c.grant(t, d, rapid.SampledFrom(keys).Draw(r, "k")+"=v", 5)
				c.pass(time.Duration(rapid.IntRange(1, 400).Draw(r, "ms")) * time.Millisecond)
				continue
			}
			if d == from {
				continue
			}
			var call Call
			c.resolve(t, &call, rapid.SampledFrom(keys).Draw(r, "k")+"=v")
			rule := c.set.Rules()[rapid.IntRange(0, len(c.set.Rules())-1).Draw(r, "rule")]
			if rule.Limit == nil {
				continue
			}
			now := d.node.millis(d.instant(c.now))
			window := sig.Draw(r, "label")
			span := gossip.CellMeta{Rule: rule.Shared(), WindowLength: sig.Draw(r, "width"), Carry: sig.Draw(r, "carry"), Regional: rapid.Bool().Draw(r, "regional")}
			if !rule.Limit.Unlimited && rapid.Bool().Draw(r, "good") {
				window, span.Carry = quota.Of(rule.Limit).RightsWindow(now)
				span.WindowLength = rule.Limit.Window()
			}
			m := gossip.Message{From: from.node.Incarnation(), To: d.node.Incarnation(), Shards: 1}
			k := call.Hits()[0].Key
			to := []crdt.Incarnation{d.node.Incarnation(), from.node.Incarnation(), gossip.RegionIncarnation("a"), gossip.RegionIncarnation("b"), 0, 7}[rapid.IntRange(0, 5).Draw(r, "incarnation")]
			m.Cells = []gossip.Cell{{
				CellID:   gossip.CellID{Key: k, Window: window, Kind: gossip.Kind(rapid.IntRange(0, 5).Draw(r, "kind")), Incarnation: to},
				CellMeta: span, Value: crdt.PN{P: num.Draw(r, "P"), N: num.Draw(r, "N")}, Rate: uint32(num.Draw(r, "rate")),
			}}
			m.RightsMessages = []gossip.RightsMessage{{
				Kind: gossip.RightsMessageKind(rapid.IntRange(0, 7).Draw(r, "note")), Key: k, Rule: rule.Shared(), Window: window,
				Rights: num.Draw(r, "rights"), Second: num.Draw(r, "second"), Need: num.Draw(r, "need"), For: to,
			}}
			if p := panics(func() { _ = d.node.Step(d.instant(c.now), &m); c.drain(d) }); p != "" {
				r.Fatalf("%s: %+v", p, m)
			}
		}
		for _, k := range keys {
			for _, d := range c.daemons {
				if p := panics(func() { c.grant(t, d, k+"=v", 3) }); p != "" {
					r.Fatalf("%s: %s", k, p)
				}
			}
		}
		if p := panics(func() { c.pass(300 * time.Millisecond); c.put(t, yaml); c.pass(time.Second) }); p != "" {
			r.Fatal(p)
		}
	})
}

func panics(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// Several new keys in one call, where there is room for them.
func TestSeveralNewKeysInOneCall(t *testing.T) {
	c := rightsCluster(t, "unit: minute, requests_per_unit: 2, overage_budget: 0%", "a1", "b1")
	d := c.daemons[0]
	resize(d.node, 2)
	var call Call
	call.Domain = "d"
	for _, v := range []string{"x", "y"} {
		call.Descriptors = append(call.Descriptors, desc(v))
	}
	if err := c.front.Resolve(&call); err != nil {
		t.Fatal(err)
	}
	at := d.instant(c.now)
	d.node.Take(at, call.Hits(), call.Statuses)
	for i, st := range call.Statuses {
		if st.Degraded != NotDegraded {
			t.Errorf("descriptor %d: %v, though there is room", i, st.Degraded)
		}
	}
}

func desc(v string) rules.Descriptor {
	return rules.Descriptor{Entries: []rules.Entry{{Key: "k", Value: v}}, Hits: 1}
}
