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
