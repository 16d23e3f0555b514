package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// TestExplainWatermarks explains a key at its owner and at another voter, for
// each kind of watermark.
func TestExplainWatermarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(a rules.Algorithm, burst uint32) *rules.Limit {
			l := perMinute(10, rules.Deny)
			l.Algorithm, l.Burst = a, burst
			return l
		}
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "fixed", Limit: of(rules.FixedWindow, 0)},
			rules.Node{Key: "sliding", Limit: of(rules.SlidingWindow, 0)}, rules.Node{Key: "log", Limit: of(rules.SlidingLog, 0)},
			rules.Node{Key: "bucket", Limit: of(rules.TokenBucket, 10)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		for _, key := range []string{"fixed", "sliding", "log", "bucket"} {
			owner := w.ownerOf(w.residents[0], key, "a")
			var other *resident
			for _, r := range w.residents {
				if r != owner {
					other = r
				}
			}
			for range 3 {
				if !owner.check(descriptor(1, key, "a")).Decision.Allowed {
					t.Fatalf("%s: denied", key)
				}
			}
			time.Sleep(100 * time.Millisecond)
			windowed := key == "fixed" || key == "sliding"
			l := w.operator(owner).mustExplain(t, asked(1, key+"=a")).Descriptors[0].StrictKey
			m := l.Watermark
			if l.Source != api.SourceOwner || *m.Consumed != 3 || *m.Watermark < 3 || *m.Watermark > 10 || *m.Limit != 10 ||
				(m.Window != nil) != windowed || (m.Drained != nil) != (key == "bucket") {
				t.Errorf("%s at the owner: %+v", key, m)
			}
			l = w.operator(other).mustExplain(t, asked(1, key+"=a")).Descriptors[0].StrictKey
			m = l.Watermark
			if l.Self || l.Source != api.SourceAcceptor || l.Ballot.Owner.Name != owner.name || l.Ballot.Round == 0 ||
				m.Consumed != nil || *m.Limit != 10 || (m.Window != nil) != windowed || (m.Drained != nil) != (key == "bucket") {
				t.Fatalf("%s at a voter: %+v, %+v", key, l, m)
			}
			if key == "bucket" {
				if left := time.Until(*m.Drained); left < 17*time.Second || left > time.Minute {
					t.Errorf("drained in %v", left)
				}
			} else if *m.Watermark < 3 || *m.Watermark > 10 {
				t.Errorf("%s at a voter: the watermark is %d", key, *m.Watermark)
			}
		}
	})
}

// TestStrictRefundHits gives hits of a strict key back without a token, which
// names the lease that they used: none come back.
func TestStrictRefundHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		for i := range 5 {
			if c := w.residents[i%3].check(descriptor(1, "login", "u")); !c.Decision.Allowed {
				t.Fatalf("hit %d: %+v", i, c.Statuses[0])
			}
		}
		for _, r := range w.residents {
			c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(5, "login", "u")}}
			if err := w.engines.of(r.name).RefundHits(&c); err != nil {
				t.Fatal(err)
			}
			if c := r.check(descriptor(1, "login", "u")); c.Decision.Allowed {
				t.Errorf("%s admits a hit more than the limit", r.name)
			}
		}
	})
}
