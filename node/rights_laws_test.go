package node

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// asker sends hits to a cluster and keeps the admitted hits of one key.
type asker struct {
	c        *cluster
	call     Call
	admitted map[int64]uint64 // by start of the window
}

const rightsWindow = int64(10_000) // milliseconds

func (a *asker) ask(t testing.TB, d *daemon, times int) {
	t.Helper()
	for range times {
		a.c.ask(t, d, &a.call, "k=v")
		if a.call.Decision.Allowed {
			now := d.node.now
			a.admitted[now-now%rightsWindow]++
		}
	}
}

// worst returns the most that a rule of a kind counts at any time.
func (a *asker) worst(sliding bool) (most float64) {
	for window, n := range a.admitted {
		sum := float64(n)
		if sliding { // at the end of the window: the least that must count of the one before
			sum = max(sum, float64(a.admitted[window-rightsWindow]))
		}
		most = max(most, sum)
	}
	return most
}

// For any loss, duplication, delay, partition and restart, no window admits
// more than the limit and its budget.
func TestRightsHold(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "token_bucket", "sliding_log"} {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) { rightsHold(t, r, algorithm) })
		})
	}
}

func rightsHold(t *testing.T, r *rapid.T, algorithm string) {
	c := &cluster{
		delay: time.Millisecond, wan: rapid.SampledFrom([]time.Duration{5, 40, 800}).Draw(r, "wan") * time.Millisecond,
		rights: true, cuts: map[[2]string]bool{},
	}
	for _, n := range []string{"a1", "a2", "b1", "c1"} {
		c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
	}
	limit := rapid.IntRange(1, 80).Draw(r, "limit")
	budget := rapid.IntRange(0, 50).Draw(r, "budget")
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, fmt.Sprintf(`domain: d
descriptors:
  - key: k
    rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: %d, algorithm: %s, overage_budget: %d%%}
`, limit, algorithm, budget))
	total := float64(limit + limit*budget/100)
	if algorithm == "token_bucket" { // the burst and what comes back in a window
		total *= 2
	}
	a := &asker{c: c, admitted: map[int64]uint64{}}
	pick := func() *daemon { return c.daemons[rapid.IntRange(0, len(c.daemons)-1).Draw(r, "daemon")] }
	for range rapid.IntRange(5, 60).Draw(r, "steps") {
		switch rapid.IntRange(0, 9).Draw(r, "what") {
		case 0, 1, 2, 3, 4:
			if d := pick(); d.node != nil {
				a.ask(t, d, rapid.IntRange(1, 60).Draw(r, "times"))
			}
		case 5, 6:
			c.pass(time.Duration(rapid.IntRange(1, 3000).Draw(r, "ms")) * time.Millisecond)
		case 7:
			if n := len(c.flight); n > 0 {
				i := rapid.IntRange(0, n-1).Draw(r, "lost or twice")
				if rapid.Bool().Draw(r, "lost") {
					c.flight = append(c.flight[:i], c.flight[i+1:]...)
				} else {
					again := c.flight[i]
					again.at += time.Duration(rapid.IntRange(0, 12_000).Draw(r, "late")) * time.Millisecond
					c.flight = append(c.flight, again)
				}
			}
		case 8:
			from, to := pick(), pick()
			if rapid.Bool().Draw(r, "heal") {
				clear(c.cuts)
			} else {
				c.cuts[[2]string{from.region, to.region}] = true
			}
		case 9:
			switch d := pick(); {
			case d.node == nil:
				c.start(t, d)
			case rapid.Bool().Draw(r, "stop"):
				c.stop(t, d)
			default:
				d.node = nil
				c.members()
			}
		}
		if worst := a.worst(algorithm != "fixed_window"); worst > total {
			r.Fatalf("%v admitted in one label, want at most %v", worst, total)
		}
	}
}
