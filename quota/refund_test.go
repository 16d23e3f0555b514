package quota

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// given is hits that were charged, and how many of them are back.
type given struct {
	at, window int64
	n, back    uint64
}

// Hits that were charged and refunded in time weigh as if they had never been
// charged, in windows with and without debt and in logs.
func TestRefundEqualsNeverCharging(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.FixedWindow, rules.SlidingWindow, rules.SlidingLog)
		if l.Algorithm != rules.SlidingLog {
			l.CarryDebt = rapid.Bool().Draw(t, "debt")
		}
		var is, want key
		var all []given
		end := int64(0)
		drive(t, l, func(now int64, n uint64) {
			end = now
			if i := rapid.IntRange(0, len(all)).Draw(t, "refund"); i < len(all) {
				g := &all[i]
				n = rapid.Uint64Range(0, g.n-g.back).Draw(t, "back")
				if Of(l).Refundable(now, g.window) {
					Of(l).Withdraw(&is.cell, &is.log, now, g.window, n)
					g.back += n
				}
				return
			}
			if n > 0 {
				Of(l).Charge(&is.cell, &is.log, now, n)
				window, _, _ := Of(l).Shared(&is.cell, now)
				all = append(all, given{at: now, window: window, n: n})
			}
		})
		for _, g := range all {
			if n := g.n - g.back; n > 0 {
				Of(l).Charge(&want.cell, &want.log, g.at, n)
			}
		}
		for _, now := range []int64{end, end + 1, end + l.Window()/2, end + l.Window(), end + 2*l.Window()} {
			got, want := Of(l).Used(&is.cell, &is.log, now), Of(l).Used(&want.cell, &want.log, now)
			if got != want {
				t.Fatalf("%d hits count at +%d, want %d: %+v", got, now-epoch, want, all)
			}
		}
	})
}

// After any refunds, a bucket admits at most its burst and its refill beyond
// them, and a refund removes no more than its hits.
func TestRefundedBucketKeepsItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.TokenBucket, rules.LeakyBucket)
		var k key
		var all []given
		net, start := int64(0), int64(0)
		drive(t, l, func(now int64, n uint64) {
			if start == 0 {
				start = now
			}
			i := rapid.IntRange(0, len(all)).Draw(t, "refund")
			if i == len(all) {
				if n > 0 && k.take(l, now, n) {
					window, _, _ := Of(l).Shared(&k.cell, now)
					all = append(all, given{at: now, window: window, n: n})
					net += int64(n)
				}
			} else {
				g := &all[i]
				n = rapid.Uint64Range(0, g.n-g.back).Draw(t, "back")
				before := Of(l).Used(&k.cell, nil, now)
				Of(l).Withdraw(&k.cell, nil, now, g.window, n)
				after := Of(l).Used(&k.cell, nil, now)
				switch over := !Of(l).Refundable(now, g.window); {
				case over && after != before:
					t.Fatalf("refund of label +%d at +%d took %d to %d", g.window-epoch, now-epoch, before, after)
				case !over && after != sat.Sub(before, n):
					t.Fatalf("refund of %d took %d to %d", n, before, after)
				case !over:
					g.back += n
					net -= int64(n)
				}
			}
			most := int64(uint64(l.Burst) + tokensUp(Of(l).minted(uint64(l.Requests), start, now)))
			if net > most {
				t.Fatalf("%d admitted and not given back after %d ms, want at most %d", net, now-start, most)
			}
		})
	})
}

// A full log counts late hits under a later stamp: they are found there.
func TestRefundFindsMovedHits(t *testing.T) {
	l := &rules.Limit{Algorithm: rules.SlidingLog, Unit: rules.Minute, Multiplier: 1, Requests: MaxLogCells}
	var k key
	for i := range int64(MaxLogCells) {
		Of(l).Charge(&k.cell, &k.log, epoch+2*i, 1)
	}
	now := epoch + 2*MaxLogCells
	Of(l).Merge(&k.cell, &k.log, now, epoch+1, 10)
	Of(l).Withdraw(&k.cell, &k.log, now, epoch+1, 10)
	if got := Of(l).Used(&k.cell, &k.log, now); got != MaxLogCells {
		t.Errorf("%d hits count, want %d", got, MaxLogCells)
	}
	sum := uint64(0)
	for i := range k.log.size {
		sum += k.log.at(i).n
	}
	if sum != k.cell.Count {
		t.Errorf("the stamps hold %d hits, the cell counts %d", sum, k.cell.Count)
	}
}

func TestRefundEnd(t *testing.T) {
	minute := rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 10, Burst: 10}
	for _, tt := range []struct {
		name   string
		change func(l *rules.Limit)
		want   int64
	}{
		{"fixed window", func(*rules.Limit) {}, 60_000},
		{"fixed window with debt", func(l *rules.Limit) { l.CarryDebt = true }, 120_000},
		{"sliding window", func(l *rules.Limit) { l.Algorithm = rules.SlidingWindow }, 120_000},
		{"log", func(l *rules.Limit) { l.Algorithm = rules.SlidingLog }, 60_000},
		{"bucket that fills in a minute", func(l *rules.Limit) { l.Algorithm = rules.TokenBucket }, 60_000},
		{
			"bucket that fills in half a second",
			func(l *rules.Limit) { l.Algorithm, l.Requests = rules.LeakyBucket, 1_200 }, bucketWindow,
		},
	} {
		l := minute
		tt.change(&l)
		if got := Of(&l).RefundEnd(epoch) - epoch; got != tt.want {
			t.Errorf("%s: %d ms, want %d", tt.name, got, tt.want)
		}
		for _, at := range []int64{tt.want - 1, tt.want} {
			if got, want := Of(&l).Refundable(epoch+at, epoch), at < tt.want; got != want {
				t.Errorf("%s: refundable after %d ms is %v", tt.name, at, got)
			}
		}
	}
	if got := Of(&minute).RefundEnd(never - 5); got != never {
		t.Errorf("a label at the end of time ends at %d", got)
	}
}
