package node

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Where a transfer takes half of the window, a region that has all the load of
// a key gets the rights of idle regions at the start of each window; also of
// those whose daemons no call reaches. The bound holds in each window.
func TestRightsMoveAheadInShortWindows(t *testing.T) {
	for _, idle := range []int{1, 3} {
		c := &cluster{delay: time.Millisecond, wan: 450 * time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
		for _, region := range []string{"a", "b", "c"} {
			for i := range idle {
				c.daemons = append(c.daemons, &daemon{name: fmt.Sprint(region, i+1), region: region})
			}
		}
		for _, d := range c.daemons {
			c.start(t, d)
		}
		c.putRule(t, "unit: second, requests_per_unit: 900, overage_budget: 0%")
		c.pass(2*time.Second - c.now%time.Second)

		const windows = 12
		var admitted [windows]uint64
		for i := range admitted {
			for n := range 80 { // 720 in a window
				for range 9 {
					admitted[i] += c.grant(t, c.daemons[n%idle], "k=1", 1)
				}
				c.pass(time.Second / 80)
			}
		}
		t.Log(admitted)
		if admitted[0] > 310 {
			t.Errorf("%d daemons a region: %d admitted in the first window, want its third of 900", idle, admitted[0])
		}
		for i, n := range admitted {
			if n > 900 || i >= windows-4 && n < 640 {
				t.Errorf("%d daemons a region: %d admitted in window %d, want about 720, at most 900: %v", idle, n, i, admitted)
			}
		}
	}
}

// For any loss, duplication, delay, partition and restart, no window of a
// second admits more than the limit and its budget, while rights move ahead.
func TestRightsThatMoveAheadHold(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := &cluster{
			delay: time.Millisecond, wan: rapid.SampledFrom([]time.Duration{150, 300, 450, 800}).Draw(r, "wan") * time.Millisecond,
			rights: true, cuts: map[[2]string]bool{},
		}
		for _, n := range []string{"a1", "a2", "b1", "c1"} {
			c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
		}
		for _, d := range c.daemons {
			c.start(t, d)
		}
		limit := rapid.IntRange(30, 300).Draw(r, "limit")
		budget := rapid.IntRange(0, 50).Draw(r, "budget")
		c.putRule(t, fmt.Sprintf("unit: second, requests_per_unit: %d, overage_budget: %d%%", limit, budget))
		var call Call
		admitted, hot := map[int64]int{}, 0
		for range rapid.IntRange(10, 40).Draw(r, "steps") { // a window each
			pick := func() int { return rapid.IntRange(0, len(c.daemons)-1).Draw(r, "daemon") }
			switch rapid.IntRange(0, 14).Draw(r, "what") {
			case 0, 1:
				hot = pick()
			case 2:
				from, to := c.daemons[pick()], c.daemons[pick()]
				c.cuts[[2]string{from.region, to.region}] = true
			case 3, 4:
				clear(c.cuts)
			case 5:
				if d := c.daemons[pick()]; d.node == nil {
					c.start(t, d)
				} else {
					c.stop(t, d)
				}
			case 6:
				if n := len(c.flight); n > 0 {
					again := c.flight[rapid.IntRange(0, n-1).Draw(r, "twice")]
					again.at += time.Duration(rapid.IntRange(0, 3_000).Draw(r, "late")) * time.Millisecond
					c.flight = append(c.flight, again)
				}
			case 7:
				if n := len(c.flight); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(r, "lost")
					c.flight = append(c.flight[:i], c.flight[i+1:]...)
				}
			}
			load := rapid.SampledFrom([]int{0, limit / 4, limit * 3 / 4, 2 * limit}).Draw(r, "load")
			for range 20 {
				for range load/20 + 1 {
					if d := c.daemons[hot]; d.node != nil {
						c.ask(t, d, &call, "k=v")
						if now := d.node.now; call.Decision.Allowed {
							admitted[now-now%1000]++
						}
					}
				}
				if d := c.daemons[(hot+1)%len(c.daemons)]; d.node != nil {
					c.ask(t, d, &call, "k=v")
					if now := d.node.now; call.Decision.Allowed {
						admitted[now-now%1000]++
					}
				}
				c.pass(50 * time.Millisecond)
			}
		}
		for window, n := range admitted {
			if n > limit+limit*budget/100 {
				r.Fatalf("%d admitted in window %d, want at most %d and %d%%: %v", n, window, limit, budget, admitted)
			}
		}
	})
}
