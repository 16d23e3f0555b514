package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// TestAdmit has two equal clusters decide the same calls, one of them with
// Admit: all answers, statistics, counters and replicated cells are equal.
func TestAdmit(t *testing.T) {
	yaml, keys := anyLimits()
	passes := 0
	rapid.Check(t, func(rt *rapid.T) {
		alone := rapid.Bool().Draw(rt, "alone")
		both := []*cluster{rightsCluster(t, fixed100, "a1", "b1"), rightsCluster(t, fixed100, "a1", "b1")}
		for _, c := range both {
			for _, d := range c.daemons {
				if alone {
					d.node = newRig(t, Default()).node
				}
				d.node.cfg.NearLimit, d.node.stats.near = 800_000, 800_000
			}
			c.put(t, yaml)
		}
		calls := make([]Call, 2)
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			descriptors := []rules.Descriptor{{
				Hits: rapid.SampledFrom([]uint64{1, 1, 1, 2, 0, 15, 25}).Draw(rt, "hits"),
				Entries: []rules.Entry{{
					Key:   fmt.Sprint("k", rapid.SampledFrom([]int{2, 2, 3, 4, 5, 6, 7, 8, 9, rapid.IntRange(0, keys).Draw(rt, "any key")}).Draw(rt, "key")),
					Value: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "value"),
				}},
			}}
			if rapid.IntRange(0, 9).Draw(rt, "override") == 0 {
				descriptors[0].Override = rules.Override{Unit: rules.Second, Requests: 5}
			}
			if rapid.IntRange(0, 9).Draw(rt, "twice") == 0 {
				descriptors = append(descriptors, descriptors[0])
			}
			peek, refundable := rapid.IntRange(0, 9).Draw(rt, "peek") == 0, rapid.IntRange(0, 9).Draw(rt, "refundable") == 0
			at, unsampled := rapid.IntRange(0, 1).Draw(rt, "daemon"), rapid.Int32Range(0, 9).Draw(rt, "unsampled")
			blocked := rapid.IntRange(0, 19).Draw(rt, "blocked") == 0
			for i, c := range both {
				call, d := &calls[i], c.daemons[at]
				call.Reset()
				call.Domain, call.Peek, call.Refundable = "d", peek, refundable
				call.Descriptors = append(call.Descriptors, descriptors...)
				if err := c.front.Resolve(call); err != nil {
					rt.Fatal(err)
				}
				if blocked && call.Statuses[0].Limit != nil {
					call.block(0)
				}
				d.node.top.unsampled = unsampled
				now := d.instant(c.now)
				if i == 1 && Admit(d.node, now, call) {
					passes++
				} else {
					d.node.Probe(now, call.Hits(), call.Statuses)
					c.front.Decide(call)
					d.node.Charge(now, call.Hits(), call.Statuses)
					if len(call.Receipts) > 0 {
						d.node.Receipts(now, call.Hits(), call.Statuses, call.Receipts)
					}
				}
				if !alone {
					c.drain(d)
				}
			}
			differ := func(what string, a, b any) {
				if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(Status{}), cmpopts.IgnoreFields(Status{}, "Rule", "Limit")); diff != "" {
					rt.Fatalf("%s of %+v at daemon %d with Admit:\n%s", what, descriptors, at, diff)
				}
			}
			differ("decision", calls[0].Decision, calls[1].Decision)
			differ("status", calls[0].Statuses, calls[1].Statuses)
			differ("receipts", calls[0].Receipts, calls[1].Receipts)
			a, b := both[0].daemons[at], both[1].daemons[at]
			differ("statistics", a.node.Stats(), b.node.Stats())
			differ("tallies", tallies(a.node), tallies(b.node))
			differ("entries", entriesOf(a.node), entriesOf(b.node))
			differ("cells", a.node.Cells(a.instant(both[0].now), nil), b.node.Cells(b.instant(both[1].now), nil))
			differ("messages", len(both[0].flight), len(both[1].flight))
			differ("sample", a.node.top.unsampled, b.node.top.unsampled)
			differ("sweeps", [2]int64{a.node.keys.soonest, a.node.keys.later}, [2]int64{b.node.keys.soonest, b.node.keys.later})
			pass := rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 90 * time.Millisecond, 3 * time.Second, 20 * time.Second}).Draw(rt, "pass")
			for _, c := range both {
				if alone {
					c.now += pass
				} else {
					c.pass(pass)
				}
			}
		}
	})
	if passes == 0 {
		t.Error("Admit decided nothing: the test is empty")
	}
}

func tallies(n *Node) (all []quota.Tally) {
	n.Tallies(func(_ *rules.Rule, t quota.Tally) { all = append(all, t) })
	return all
}

// entriesOf returns the entries of a node, as texts.
func entriesOf(n *Node) (all []string) {
	for e := range n.keys.live.All {
		text := fmt.Sprintf("%+v until %d", *e, e.Expires())
		if a := n.keys.sides.account(e.Extra); a != nil {
			text += fmt.Sprintf(", %d: %+v", a.grid, a.Account)
		}
		all = append(all, text)
	}
	return all
}
