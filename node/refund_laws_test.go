package node

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Refunds come at any time from any daemon, and messages are lost, repeated,
// late, cut off by partitions and restarts: no window admits more than the
// limit and its budget beyond the refunds, and refunds leave no bound weaker.
func TestRightsHoldWithRefunds(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "token_bucket", "sliding_log"} {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := drawRefunds(t, r, algorithm)
				for range rapid.IntRange(5, 60).Draw(r, "steps") {
					w.step(t, r)
					if worst := w.worst(algorithm != "fixed_window"); worst > w.total {
						r.Fatalf("%v admitted and not given back in one label, want at most %v", worst, w.total)
					}
				}
			})
		})
	}
}

// giving is an asker that gives back.
type giving struct {
	*asker
	bucket bool
	total  float64
	slips  []*slip
}

func drawRefunds(t *testing.T, r *rapid.T, algorithm string) *giving {
	c := &cluster{
		delay: time.Millisecond, wan: rapid.SampledFrom([]time.Duration{5, 40, 800}).Draw(r, "wan") * time.Millisecond,
		rights: true, cuts: map[[2]string]bool{},
	}
	for _, n := range []string{"a1", "a2", "b1", "c1"} {
		c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	limit := rapid.IntRange(1, 80).Draw(r, "limit")
	budget := rapid.IntRange(0, 50).Draw(r, "budget")
	c.put(t, fmt.Sprintf(`domain: d
descriptors:
  - key: k
    rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: %d, algorithm: %s, overage_budget: %d%%}
`, limit, algorithm, budget))
	w := &giving{asker: &asker{c: c, admitted: map[int64]uint64{}}, total: float64(limit + limit*budget/100)}
	if w.bucket = algorithm == "token_bucket"; w.bucket { // the burst and what comes back in a window
		w.total *= 2
	}
	return w
}

func (w *giving) step(t *testing.T, r *rapid.T) {
	c := w.c
	pick := func() *daemon { return c.daemons[rapid.IntRange(0, len(c.daemons)-1).Draw(r, "daemon")] }
	switch rapid.IntRange(0, 13).Draw(r, "what") {
	case 12, 13:
		if d := pick(); d.node != nil {
			w.refundHits(t, r, d, rapid.Uint64Range(1, 60).Draw(r, "negative"))
		}
	case 0, 1, 2, 3:
		if d := pick(); d.node != nil {
			w.take(t, d, rapid.IntRange(1, 60).Draw(r, "times"))
		}
	case 4, 5, 6:
		if len(w.slips) > 0 {
			w.give(r, rapid.IntRange(1, len(w.slips)).Draw(r, "slips"))
		}
	case 7, 8:
		c.pass(time.Duration(rapid.IntRange(1, 3000).Draw(r, "ms")) * time.Millisecond)
	case 9:
		c.meddle(r)
	case 10:
		from, to := pick(), pick()
		if rapid.Bool().Draw(r, "heal") {
			clear(c.cuts)
		} else {
			c.cuts[[2]string{from.region, to.region}] = true
		}
	case 11:
		if d := pick(); d.node != nil {
			d.node = nil
			c.members()
		} else {
			c.start(t, d)
		}
	}
}

// meddle loses a message on its way, or repeats it later.
func (c *cluster) meddle(r *rapid.T) {
	if len(c.flight) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.flight)-1).Draw(r, "lost or twice")
	if rapid.Bool().Draw(r, "lost") {
		c.flight = append(c.flight[:i], c.flight[i+1:]...)
		return
	}
	again := c.flight[i]
	again.at += time.Duration(rapid.IntRange(0, 12_000).Draw(r, "late")) * time.Millisecond
	c.flight = append(c.flight, again)
}

func (w *giving) take(t *testing.T, d *daemon, times int) {
	for range times {
		s := w.c.charge(t, d, &w.call, "k=v")
		if w.call.Decision.Allowed {
			now := d.node.now
			w.admitted[now-now%rightsWindow]++
		}
		if s != nil {
			w.slips = append(w.slips, s)
		}
	}
}

// give hands in the last n slips, each once and where it comes from.
func (w *giving) give(r *rapid.T, n int) {
	from := len(w.slips) - n
	for _, s := range w.slips[from:] {
		for _, d := range w.c.daemons {
			if d.node != s.node {
				continue
			}
			got := d.node.Refund(d.instant(w.c.now), &s.receipt, 1)
			if got.Hits > 1 || got.Expired && got.Hits > 0 {
				r.Fatalf("one hit gave back %+v", got)
			}
			window := s.window
			if w.bucket { // it takes them off when they come
				window = d.node.now - d.node.now%rightsWindow
			}
			// A bucket's refund may come in a window that admitted nothing.
			w.admitted[window] -= min(got.Hits, w.admitted[window])
		}
	}
	w.slips = w.slips[:from]
}

// refundHits refunds hits at a daemon without their slips.
func (w *giving) refundHits(t *testing.T, r *rapid.T, d *daemon, n uint64) {
	var call Call
	w.c.resolve(t, &call, "k=v")
	at := d.instant(w.c.now)
	own := func() (sum uint64) {
		d.node.replica.engine.OwnWindows(call.Hits()[0].Key, func(_, _ int64, net uint64) { sum += net })
		return sum
	}
	before := own()
	got := RefundHits(d.node, at, &call.Hits()[0], n)
	if got > n || got > before || own() != before-got {
		r.Fatalf("%d hits gave back %d of %d, and left %d", n, got, before, own())
	}
	// Those of the last two windows at most, the latest first.
	window := d.node.now - d.node.now%rightsWindow
	for range 2 {
		took := min(got, w.admitted[window])
		w.admitted[window] -= took
		got, window = got-took, window-rightsWindow
	}
}
