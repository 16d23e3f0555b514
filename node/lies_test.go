package node

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
)

// lie delivers a message of cells about a key in the name of a daemon.
func (c *cluster) lie(t testing.TB, from, to *daemon, text string, cells ...gossip.Cell) {
	t.Helper()
	var call Call
	c.resolve(t, &call, text)
	h, at := &call.Hits()[0], to.instant(c.now)
	now := to.node.millis(at)
	f := quota.Of(h.Limit)
	window, length, carry := f.Shared(&quota.Cell{Window: now - now%h.Limit.Window()}, now)
	for i := range cells {
		cells[i].Key, cells[i].Window = h.Key, window
		cells[i].CellMeta = gossip.CellMeta{Rule: h.Rule.Shared(), WindowLength: length, Carry: carry}
	}
	slices.SortFunc(cells, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
	if err := to.node.Step(at, &gossip.Message{
		From: from.node.Incarnation(), To: to.node.Incarnation(), Shards: 1, Part: gossip.Part{Cells: cells},
	}); err != nil {
		t.Fatal(err)
	}
	c.drain(to)
}

// happened returns how often an event happened at a daemon.
func (d *daemon) happened(kind gossip.EventKind) (n int) {
	for _, e := range d.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func sumOf(region string, hits uint64) gossip.Cell {
	return gossip.Cell{
		CellID: gossip.CellID{Kind: gossip.RegionSum, Incarnation: gossip.RegionIncarnation(region)},
		Value:  crdt.PN{P: hits}, Rate: math.MaxUint32,
	}
}

func transferTo(d *daemon, rights uint64) gossip.Cell {
	return gossip.Cell{CellID: gossip.CellID{Kind: gossip.Given, Incarnation: d.node.Incarnation()}, Value: crdt.PN{P: rights}}
}

// everyRights are rules with rights of all algorithms, of 100 hits.
var everyRights = []string{
	fixed100, sliding100,
	"unit: minute, unit_multiplier: 10, requests_per_unit: 100, consistency: partition",
	"unit: hour, requests_per_unit: 100, burst: 100, algorithm: token_bucket, overage_budget: 0%",
	"unit: hour, requests_per_unit: 100, algorithm: sliding_log, overage_budget: 0%",
}

// TestLiesOfSums: sums that a region cannot have, of itself, of the region of
// the receiver and of a daemon of that, deny no hit that rights allow.
func TestLiesOfSums(t *testing.T) {
	for _, rule := range everyRights {
		for _, hits := range []uint64{100, 3_000, 1 << 40, crdt.Max} {
			for _, region := range []string{"a", "b"} {
				c := rightsCluster(t, rule, "a1", "a2", "b1")
				a1, a2, b1 := c.daemons[0], c.daemons[1], c.daemons[2]
				c.cuts[[2]string{"b", "a"}] = true // but for the lies
				for _, d := range []*daemon{a1, a2} {
					c.lie(t, b1, d, "k=v", sumOf(region, hits))
				}
				c.pass(5 * time.Second) // lost counts are restored meanwhile
				admitted := uint64(0)
				for range 100 {
					admitted += c.grant(t, a1, "k=v", 1) + c.grant(t, a2, "k=v", 1)
					c.pass(time.Millisecond)
				}
				if admitted < 50 || admitted > 51 {
					t.Errorf("{%s}: with a sum of %d of region %s, region a admits %d: want its 50", rule, hits, region, admitted)
				}
			}
		}
	}
}

// TestLiesOfSumsKeepNoRights: within a region, rights go where the hits are,
// for any sum that another region claims.
func TestLiesOfSumsKeepNoRights(t *testing.T) {
	for _, hits := range []uint64{100, 1 << 40} {
		c := rightsCluster(t, fixed100, "a1", "a2", "b1")
		a1, a2, b1 := c.daemons[0], c.daemons[1], c.daemons[2]
		c.cuts[[2]string{"b", "a"}] = true
		for _, d := range []*daemon{a1, a2} {
			c.lie(t, b1, d, "k=v", sumOf("b", hits))
		}
		admitted := uint64(0)
		for range 200 {
			admitted += c.grant(t, a1, "k=v", 1)
			c.pass(10 * time.Millisecond)
		}
		if admitted < 48 || admitted > 50 {
			t.Errorf("with a sum of %d, all hits at one daemon: %d admitted, want the 50 of its region", hits, admitted)
		}
		if n := a1.happened(gossip.SumExceeded); n > 0 != (hits > 100) {
			t.Errorf("a sum of %d is reported %d times", hits, n)
		}
	}
}

// TestLiesOfTransfers: a daemon takes no more rights of another region than
// that region holds, and never more than all rights.
func TestLiesOfTransfers(t *testing.T) {
	for _, rule := range everyRights[:3] {
		c := rightsCluster(t, rule, "a1", "a2", "b1", "b2")
		a1, b1, b2 := c.daemons[0], c.daemons[2], c.daemons[3]
		c.cuts[[2]string{"a", "b"}], c.cuts[[2]string{"b", "a"}], c.cuts[[2]string{"a1", "a2"}] = true, true, true
		for _, rights := range []uint64{51, 100, 1 << 40, crdt.Max} {
			c.lie(t, b1, a1, "k=v", transferTo(a1, rights))
		}
		if got := c.grant(t, a1, "k=v", 300); got != 25 {
			t.Errorf("{%s}: %d admitted with false transfers, want the 25 of the daemon", rule, got)
		}
		if n := a1.happened(gossip.TransferRejected); n != 4 {
			t.Errorf("{%s}: %d transfers rejected, want 4", rule, n)
		}
		c.lie(t, b1, a1, "k=v", transferTo(a1, 30)) // true ones
		c.lie(t, b2, a1, "k=v", transferTo(a1, 10))
		c.lie(t, b2, a1, "k=v", transferTo(a1, 21)) // with those of b1 too many
		if got := c.grant(t, a1, "k=v", 300); got != 40 {
			t.Errorf("{%s}: %d admitted with true transfers of 40", rule, got)
		}
	}
}

// TestLiesOfTransfersInTheRegion: within a region, too, no daemon holds more
// than all rights.
func TestLiesOfTransfersInTheRegion(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "a2", "b1")
	a1, a2 := c.daemons[0], c.daemons[1]
	c.cuts[[2]string{"a", "b"}], c.cuts[[2]string{"b", "a"}], c.cuts[[2]string{"a1", "a2"}] = true, true, true
	for _, rights := range []uint64{76, 1 << 40} {
		c.lie(t, a2, a1, "k=v", transferTo(a1, rights))
	}
	if got := c.grant(t, a1, "k=v", 300); got != 25 {
		t.Errorf("%d admitted with false transfers, want the 25 of the daemon", got)
	}
}

// TestLiesAboutRules: transfers of rules that have no rights are refused.
func TestLiesAboutRules(t *testing.T) {
	c := rightsCluster(t, "unit: minute, requests_per_unit: 100", "a1", "b1")
	c.lie(t, c.daemons[1], c.daemons[0], "k=v", transferTo(c.daemons[0], 1))
	if n := c.daemons[0].happened(gossip.TransferRejected); n != 1 {
		t.Errorf("%d transfers rejected, want 1", n)
	}
}

// TestLoweredLimitDenies: hits that were admitted under a greater limit count
// in full against the lower one.
func TestLoweredLimitDenies(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "b1")
	a1, b1 := c.daemons[0], c.daemons[1]
	if got := c.grant(t, b1, "k=v", 45); got != 45 {
		t.Fatal(got)
	}
	c.pass(time.Second)
	c.putRule(t, "unit: minute, unit_multiplier: 10, requests_per_unit: 40, overage_budget: 0%")
	if got := c.grant(t, a1, "k=v", 10); got != 0 {
		t.Errorf("%d admitted of 40 after 45", got)
	}
	c.pass(10 * time.Minute)
	c.lie(t, b1, a1, "k=v", sumOf("b", 1<<40))
	if got := c.grant(t, a1, "k=v", 30); got != 20 {
		t.Errorf("%d admitted in the next window, want its 20", got)
	}
}

// TestRemainingWithLies: a report does not deny hits that the daemon admits.
func TestRemainingWithLies(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "b1")
	c.lie(t, c.daemons[1], c.daemons[0], "k=v", sumOf("b", 1<<40))
	var call Call
	c.ask(t, c.daemons[0], &call, "k=v")
	if st := &call.Statuses[0]; st.Over || st.Remaining != 49 {
		t.Errorf("%s", fmt.Sprint("over ", st.Over, ", ", st.Remaining, " remain: want 49"))
	}
}

// TestTrueSumsCount: daemons that know of each other's hits admit the limit and
// nothing of the budget, though their rights have it.
func TestTrueSumsCount(t *testing.T) {
	c := rightsCluster(t, "unit: minute, unit_multiplier: 10, requests_per_unit: 100, overage_budget: 20%", "a1", "b1")
	a1, b1 := c.daemons[0], c.daemons[1]
	before := c.grant(t, b1, "k=v", 55)
	c.pass(5 * time.Second) // the hits are known, and nothing is extrapolated
	if after := c.grant(t, a1, "k=v", 100); before+after != 100 {
		t.Errorf("%d and %d admitted, want 100", before, after)
	}
}

// TestRightsOfABudgetDrainFaster: the rights of a bucket with a budget refill
// faster than its limit, so a daemon that has all of them exceeds the limit by
// nothing all the same.
func TestRightsOfABudgetDrainFaster(t *testing.T) {
	for _, tt := range []struct {
		burst  uint64
		budget string
	}{{60, "100%"}, {9, "10%"}} {
		c := rightsCluster(t, fmt.Sprintf("unit: second, unit_multiplier: 5, requests_per_unit: 200, burst: %d, "+
			"algorithm: token_bucket, overage_budget: %s", tt.burst, tt.budget), "a1")
		admitted := uint64(0)
		for range 500 {
			admitted += c.grant(t, c.daemons[0], "k=v", 1)
			c.pass(time.Millisecond)
		}
		if admitted > tt.burst+20 {
			t.Errorf("with a budget of %s, %d admitted in 500 ms, want %d", tt.budget, admitted, tt.burst+20)
		}
	}
}
