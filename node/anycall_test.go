package node

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// anyLimits returns limits of all algorithms, each with all ways to hold them,
// and keys without any. They are named k0, k1 and so on.
func anyLimits() (yaml string, keys int) {
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	add := func(limit string) {
		fmt.Fprintf(&b, "  - {key: k%d%s}\n", keys, limit)
		keys++
	}
	add("")
	add(", rate_limit: {unlimited: true}")
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log", "token_bucket", "leaky_bucket"} {
		burst := ""
		if strings.HasSuffix(algorithm, "bucket") {
			burst = ", burst: 7"
		}
		for _, how := range []string{
			"", ", overage_budget: 0%", ", overage_budget: 50%", ", consistency: partition", ", scope: region", ", scope: node",
			", charge_denied: true", ", overage_budget: 20%, charge_denied: true", ", carry_debt: true, overage_budget: 20%",
		} {
			if algorithm == "sliding_log" && strings.Contains(how, "carry_debt") {
				continue
			}
			add(fmt.Sprintf(", rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: 20, algorithm: %s%s%s}", algorithm, burst, how))
		}
		add(fmt.Sprintf(", rate_limit: {unit: second, requests_per_unit: 0, algorithm: %s, overage_budget: 0%%}", algorithm))
		add(fmt.Sprintf(", shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 5, algorithm: %s%s, overage_budget: 10%%}", algorithm, burst))
		add(fmt.Sprintf(", quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: %s%s, consistency: partition}", algorithm, burst))
	}
	return b.String(), keys
}

// TestAnyCall asks two daemons with rights for anything that a caller may send,
// beside a peer that claims anything: each call has an answer.
func TestAnyCall(t *testing.T) { testAnyCall(t, func([]Hit) {}) }

// TestAnyCallOfCollidingKeys is TestAnyCall where the hash of all keys is one
// of two, so that rules of any kind share counters, accounts and cells.
func TestAnyCallOfCollidingKeys(t *testing.T) {
	testAnyCall(t, func(all []Hit) {
		for i := range all {
			all[i].Key &= 1
		}
	})
}

func testAnyCall(t *testing.T, rehash func([]Hit)) {
	yaml, keys := anyLimits()
	rapid.Check(t, func(rt *rapid.T) {
		c := rightsCluster(t, fixed100, "a1", "b1")
		c.put(t, yaml)
		hits := rapid.SampledFrom([]uint64{0, 1, 1, 3, 25, 1_000, math.MaxUint64})
		var call Call
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			call.Reset()
			call.Domain, call.Peek = "d", rapid.IntRange(0, 4).Draw(rt, "peek") == 0
			call.Refundable = rapid.Bool().Draw(rt, "refundable")
			for range rapid.IntRange(1, 3).Draw(rt, "descriptors") {
				d := rules.Descriptor{Hits: hits.Draw(rt, "hits"), Entries: []rules.Entry{{
					Key:   fmt.Sprint("k", rapid.IntRange(0, keys).Draw(rt, "key")), // one more than there are
					Value: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "value"),
				}}}
				if rapid.IntRange(0, 2).Draw(rt, "override") == 0 {
					d.Override = rules.Override{
						Unit:     rapid.SampledFrom([]rules.Unit{rules.Second, rules.Minute, rules.Hour, rules.Day}).Draw(rt, "unit"),
						Requests: rapid.SampledFrom([]uint32{0, 1, 5, 1_000, math.MaxUint32}).Draw(rt, "requests"),
					}
				}
				call.Descriptors = append(call.Descriptors, d)
			}
			if err := c.front.Resolve(&call); err != nil {
				rt.Fatal(err)
			}
			rehash(call.Hits())
			d := c.daemons[rapid.IntRange(0, 1).Draw(rt, "daemon")]
			at := d.instant(c.now)
			d.node.Probe(at, call.Hits(), call.Statuses)
			c.front.Decide(&call)
			d.node.Charge(at, call.Hits(), call.Statuses)
			if len(call.Receipts) > 0 {
				d.node.Receipts(at, call.Hits(), call.Statuses, call.Receipts)
			}
			c.drain(d)
			for i := range call.Statuses {
				if st := &call.Statuses[i]; st.Over != (st.Gate != NoGate) {
					rt.Errorf("over %v by %v of %+v", st.Over, st.Gate, call.Descriptors[i])
				}
			}
			if n := rapid.IntRange(0, 5).Draw(rt, "claim"); n == 0 && call.Hits()[0].Limit != nil && call.Hits()[0].Rule != nil && call.Hits()[0].Rule.Limit != nil {
				c.claim(rt, d, &call.Hits()[0])
			}
			c.pass(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 90 * time.Millisecond, 3 * time.Second, time.Minute}).Draw(rt, "pass"))
		}
	})
}

// claim has the peer of a daemon claim any counts and transfers of a key.
func (c *cluster) claim(rt *rapid.T, d *daemon, h *Hit) {
	from := c.daemons[0]
	if from == d {
		from = c.daemons[1]
	}
	now := d.node.millis(d.instant(c.now))
	amount := rapid.SampledFrom([]uint64{0, 1, 20, 1 << 40, crdt.Max})
	var cells []gossip.Cell
	for _, id := range []gossip.CellID{
		{Kind: gossip.RegionSum, Incarnation: gossip.RegionIncarnation(from.region)},
		{Kind: gossip.Daemon, Incarnation: from.node.Incarnation()},
		{Kind: gossip.Given, Incarnation: d.node.Incarnation()},
	} {
		id.Key = h.Key
		id.Window = now - now%max(h.Limit.Window(), 1) + rapid.SampledFrom([]int64{0, -h.Limit.Window(), 1}).Draw(rt, "window")
		cells = append(cells, gossip.Cell{CellID: id, Value: crdt.PN{P: amount.Draw(rt, "amount")}, CellMeta: gossip.CellMeta{
			Rule: h.Rule.Shared(), WindowLength: h.Limit.Window(), Carry: rapid.SampledFrom([]int64{0, h.Limit.Window()}).Draw(rt, "carry"),
		}})
	}
	slices.SortFunc(cells, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
	_ = d.node.Step(d.instant(c.now), &gossip.Message{ // which may be rejected
		From: from.node.Incarnation(), To: d.node.Incarnation(), Shards: 1, Part: gossip.Part{Cells: cells},
	})
	c.drain(d)
}
