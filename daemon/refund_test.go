package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/rules"
)

const fiveAnHour = `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 5, algorithm: sliding_window}
`

// TestRefundAtADaemon: a caller gives unused hits back once, to the same run of
// a daemon.
func TestRefundAtADaemon(t *testing.T) {
	c := testConfig(t, fiveAnHour)
	r := startDaemon(t, c)
	client := rldv1.NewRateLimiterClient(dial(t, r.edges.grpcAddr()))
	in := question("u")
	in.Hits, in.Refundable = 5, true
	out, err := client.Check(t.Context(), in)
	if err != nil || out.Code != rldv1.Code_ALLOWED {
		t.Fatalf("%v, %v", out, err)
	}
	some := uint64(3)
	give := &rldv1.RefundRequest{RefundToken: out.Statuses[0].RefundToken, Hits: &some}
	for i, want := range []*rldv1.RefundResponse{{Refunded: 3}, {Already: true}} {
		got, err := client.Refund(t.Context(), give)
		if err != nil || got.Refunded != want.Refunded || got.Already != want.Already || got.Expired {
			t.Errorf("refund %d: %v, %v, want %v", i+1, got, err, want)
		}
	}
	admitted := 0
	for range 10 {
		if out, err := client.Check(t.Context(), question("u")); err != nil {
			t.Fatal(err)
		} else if out.Code == rldv1.Code_ALLOWED {
			admitted++
		}
	}
	if admitted != 3 {
		t.Errorf("%d refunded hits admitted, want 3", admitted)
	}
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	next := rldv1.NewRateLimiterClient(dial(t, startDaemon(t, c).edges.grpcAddr()))
	if _, err := next.Refund(context.Background(), give); grpcstatus.Code(err) != codes.FailedPrecondition {
		t.Errorf("after a restart: %v, want FailedPrecondition", err)
	}
}

// Under concurrent calls and refunds the net charge never exceeds the limit,
// and in the end exactly the limit fits.
func TestConcurrentRefunds(t *testing.T) {
	for _, algorithm := range []rules.Algorithm{rules.FixedWindow, rules.SlidingWindow, rules.SlidingLog, rules.TokenBucket} {
		l := &rules.Limit{Algorithm: algorithm, Unit: rules.Hour, Multiplier: 1, Requests: 100, Burst: 100}
		e := newEngineOf(t, 4, rules.Node{Key: "user", Limit: l}, rules.Node{
			Key:   "ip",
			Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1 << 30},
		})
		at := node.Instant{Mono: time.Second, Wall: time.Unix(1_767_225_600+1_000, 0).UnixNano()}
		var net, most atomic.Int64
		herd(16, func(i int) {
			var c node.Call
			var mine []node.Receipt
			for j := range 200 {
				c.Reset()
				c.Domain, c.Refundable = "edge", true
				c.Descriptors = append(c.Descriptors, descriptor(1, "user", "u"), descriptor(1, "ip", "i"))
				if err := e.CheckAt(at, &c); err != nil {
					t.Error("not decided", err)
					return
				}
				to := c.Receipts
				if c.Decision.Allowed {
					now := net.Add(1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					if to[0].Hits != 1 || to[1].Hits != 1 {
						t.Errorf("receipts %+v", to)
					}
					mine = append(mine, to[0])
				} else if to[0].Hits+to[1].Hits > 0 {
					t.Errorf("a refused call has the receipts %+v", to)
				}
				if (i+j)%3 == 0 && len(mine) > 0 {
					r := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					net.Add(-1) // before the refund, so that net is never too high
					if got := e.refundAt(at, &r, 1); got.Hits != 1 {
						t.Errorf("refund: %+v", got)
					}
				}
			}
		})
		if most.Load() > 100 {
			t.Errorf("%v: %d charged and not given back, want at most 100", algorithm, most.Load())
		}
		fit := int64(0)
		for range 200 {
			c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "user", "u")}}
			if err := e.CheckAt(at, &c); err != nil {
				t.Fatal(err)
			}
			if c.Decision.Allowed {
				fit++
			}
		}
		if net.Load()+fit != 100 {
			t.Errorf("%v: %d charged and %d fit, want 100", algorithm, net.Load(), fit)
		}
	}
}

// A refund at one daemon propagates to all, and another daemon can name the
// owner of the token.
func TestClusterRefund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100, 2, "us", "eu")
		w.within(10*time.Second, "all are ready and connected", w.whole)
		untilInto(5 * time.Second)
		us, eu := w.in("us"), w.in("eu")
		c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(40, "user", "u")}, Refundable: true}
		err := us[0].engine.Check(t.Context(), &c)
		to := c.Receipts
		if err != nil || to[0].Hits != 40 || to[0].Alone {
			t.Fatalf("%+v, %v", to, err)
		}
		w.within(farBound, "all know the hits", func() bool { return w.agree("user", "u", 60) })
		if got := us[0].engine.Refund(&to[0], 36); got.Hits != 36 {
			t.Fatalf("refund: %+v", got)
		}
		w.within(farBound, "all know the refund", func() bool { return w.agree("user", "u", 96) })
		if got := eu[1].engine.Refund(&to[0], 4); got.Hits != 0 {
			t.Errorf("another daemon gave back %+v", got)
		}
		if got := eu[1].engine.Whose(us[0].engine.Incarnation()); got != "us-0 in us" {
			t.Errorf("the hits are of %q", got)
		}
		if got := eu[1].engine.Whose(99); got != "" {
			t.Errorf("an unknown incarnation is %q", got)
		}
		time.Sleep(time.Minute)
		to[0].Number++ // of another call
		if got := us[0].engine.Refund(&to[0], 4); !got.Expired {
			t.Errorf("a window later: %+v", got)
		}
	})
}

// Refund tokens need no memory of their own in a call.
func TestReceiptsDoNotAllocate(t *testing.T) {
	e := newEngine(t, 1_000, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1 << 30}})
	var c node.Call
	took := testing.AllocsPerRun(100, func() {
		c.Reset()
		c.Domain, c.Refundable = "edge", true
		c.Descriptors = append(c.Descriptors, rules.Descriptor{Hits: 1, Entries: oneUser})
		if err := e.Check(t.Context(), &c); err != nil || c.Receipts[0].Hits != 1 {
			t.Fatal(c.Receipts, err)
		}
	})
	if took > 0 {
		t.Errorf("%v allocations a call", took)
	}
}

var oneUser = []rules.Entry{{Key: "user", Value: "u"}}

// Hits come back without a token, for each algorithm, at most those that the
// daemon counted, and in a window once.
func TestRefundHits(t *testing.T) {
	for _, algorithm := range []rules.Algorithm{
		rules.FixedWindow, rules.SlidingWindow, rules.SlidingLog, rules.TokenBucket, rules.LeakyBucket,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			l := &rules.Limit{Algorithm: algorithm, Unit: rules.Hour, Multiplier: 1, Requests: 10, Burst: 10}
			e := newEngineOf(t, 4, rules.Node{Key: "user", Limit: l})
			take := func(n uint64) bool {
				c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(n, "user", "u")}}
				if err := e.Check(t.Context(), &c); err != nil {
					t.Fatal(err)
				}
				return c.Decision.Allowed
			}
			back := func(n uint64) uint64 {
				c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(n, "user", "u"), descriptor(n, "other", "u")}}
				if err := e.RefundHits(&c); err != nil {
					t.Fatal(err)
				}
				return c.Statuses[0].Remaining
			}
			if left := back(5); left != 10 {
				t.Errorf("%d remain after a refund of what was never charged, want 10", left)
			}
			for range 10 {
				take(1)
			}
			if take(1) {
				t.Error("11 hits are admitted, want 10")
			}
			if left := back(4); left != 4 {
				t.Errorf("%d remain after a refund of 4, want 4", left)
			}
			if !take(4) || take(1) {
				t.Error("not exactly the refunded hits are admitted")
			}
			if left := back(1 << 60); left != 10 {
				t.Errorf("%d remain after a refund of more than was charged, want 10", left)
			}
			if !take(10) || take(1) {
				t.Error("more than the limit is admitted after a refund of too much")
			}
		})
	}
}

// Hits of a sliding window come back in the next one, after those of that.
func TestRefundHitsOfTheWindowBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &rules.Limit{Algorithm: rules.SlidingWindow, Unit: rules.Minute, Multiplier: 1, Requests: 100}
		e := newEngineOf(t, 1, rules.Node{Key: "user", Limit: l})
		ask := func(n uint64, do func(c *node.Call) error) uint64 {
			c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(n, "user", "u")}}
			if err := do(&c); err != nil {
				t.Fatal(err)
			}
			return c.Statuses[0].Remaining
		}
		check := func(c *node.Call) error { return e.Check(t.Context(), c) }
		untilInto(50 * time.Second)
		ask(60, check)
		untilInto(5 * time.Second)
		if left := ask(5, check); left != 40 { // 55/60 of 60 hits, and 5
			t.Fatalf("%d remain before the refund, want 40", left)
		}
		if left := ask(65, e.RefundHits); left != 100 {
			t.Errorf("%d remain after a refund of the hits of both windows, want 100", left)
		}
	})
}

// In a cluster a daemon gives back its own hits alone, and others get to know.
func TestClusterRefundHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100, 2, "us", "eu")
		w.within(10*time.Second, "all are ready and connected", w.whole)
		untilInto(5 * time.Second)
		us, eu := w.in("us"), w.in("eu")
		charge := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(40, "user", "u")}}
		if err := us[0].engine.Check(t.Context(), &charge); err != nil || !charge.Decision.Allowed {
			t.Fatalf("%+v, %v", charge.Decision, err)
		}
		remain := func(e *Engine) uint64 {
			c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(0, "user", "u")}, Peek: true}
			if err := e.Check(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			return c.Statuses[0].Remaining
		}
		w.within(10*time.Second, "the hits are everywhere", func() bool { return remain(eu[0].engine) == 60 })
		back := func(e *Engine) {
			c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(25, "user", "u")}}
			if err := e.RefundHits(&c); err != nil {
				t.Fatal(err)
			}
		}
		back(eu[0].engine) // has charged none of them
		back(us[0].engine)
		w.within(10*time.Second, "the refund is everywhere", func() bool {
			return remain(us[0].engine) == 85 && remain(us[1].engine) == 85 && remain(eu[0].engine) == 85 && remain(eu[1].engine) == 85
		})
	})
}
