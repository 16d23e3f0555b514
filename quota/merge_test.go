package quota

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// late is n hits that were counted elsewhere at an instant and arrive at a
// later one.
type late struct {
	at, arrived int64
	n           uint64
}

// drawLate draws hits in the order of their arrival, and the latest instant.
func drawLate(t *rapid.T, l *rules.Limit) (all []late, end int64) {
	now := epoch
	for range rapid.IntRange(1, 30).Draw(t, "hits") {
		now += rapid.Int64Range(0, l.Window()/3).Draw(t, "gap")
		age := rapid.Int64Range(0, min(now-epoch, 2*l.Window())).Draw(t, "age")
		all = append(all, late{now - age, now, rapid.Uint64Range(0, 9).Draw(t, "n")})
	}
	return all, now
}

// merge merges late hits as a node does: windows roll before they are read.
func (k *key) merge(l *rules.Limit, h late) {
	window := h.at
	if l.Algorithm != rules.SlidingLog {
		window -= window % l.Window()
		if Of(l).Rolled(&k.cell, h.arrived) {
			Of(l).Roll(&k.cell, h.arrived)
		}
	}
	Of(l).Merge(&k.cell, &k.log, h.arrived, window, h.n)
}

// Hits that were counted elsewhere and arrive late have the weight that they
// would have had they been counted here in time.
func TestAbsorbEqualsChargingInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.FixedWindow, rules.SlidingWindow, rules.SlidingLog)
		hits, end := drawLate(t, l)
		var arrived, prompt key
		byTime := map[int64]uint64{}
		for _, h := range hits {
			arrived.merge(l, h)
			byTime[h.at] += h.n
		}
		for _, at := range slices.Sorted(maps.Keys(byTime)) {
			if n := byTime[at]; n > 0 {
				Of(l).Charge(&prompt.cell, &prompt.log, at, n)
			}
		}
		for _, now := range []int64{end, end + 1, end + l.Window()/2, end + l.Window()} {
			is, want := Of(l).Used(&arrived.cell, &arrived.log, now), Of(l).Used(&prompt.cell, &prompt.log, now)
			if is != want {
				t.Fatalf("%d hits count at +%d, want %d", is, now-epoch, want)
			}
		}
	})
}

func TestLogStaysSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.SlidingLog)
		hits, end := drawLate(t, l)
		var k key
		for _, h := range hits {
			k.merge(l, h)
			sum := uint64(0)
			for i := range k.log.size {
				if i > 0 && k.log.at(i-1).at >= k.log.at(i).at {
					t.Fatalf("stamp %d is not before the next one: %v", i-1, k.log.ring)
				}
				sum += k.log.at(i).n
			}
			if sum != k.cell.Count {
				t.Fatalf("the stamps hold %d hits, the cell counts %d", sum, k.cell.Count)
			}
		}
		Of(l).Used(&k.cell, &k.log, end+l.Window())
		if k.cell.Count != 0 {
			t.Fatalf("%d hits count after they left the window", k.cell.Count)
		}
	})
}

// A full log forgets no late hit: it counts it a little longer.
func TestFullLogTakesLateHits(t *testing.T) {
	l := &rules.Limit{Algorithm: rules.SlidingLog, Unit: rules.Minute, Multiplier: 1, Requests: MaxLogCells}
	var k key
	for i := range int64(MaxLogCells) {
		Of(l).Charge(&k.cell, &k.log, epoch+2*i, 1)
	}
	now := epoch + 2*MaxLogCells
	for i, at := range []int64{epoch - 1, epoch + 1, epoch + 2*MaxLogCells - 1} {
		Of(l).Merge(&k.cell, &k.log, now, at, 10)
		if want := uint64(MaxLogCells + 10*(i+1)); Of(l).Used(&k.cell, &k.log, now) != want {
			t.Fatalf("%d hits count, want %d", k.cell.Count, want)
		}
		if k.log.size != MaxLogCells {
			t.Fatalf("%d stamps", k.log.size)
		}
	}
}

// With carry_debt late hits of the window before are a debt, like timely ones.
func TestLateHitsAreADebt(t *testing.T) {
	l := &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 10, CarryDebt: true}
	for _, c := range []struct {
		own, late1, late2, want uint64
	}{
		{8, 2, 0, 0},
		{8, 1, 3, 2},
		{8, 3, 4, 5},
		{15, 3, 1, 9},
		{0, 0, 25, 15},
	} {
		var k key
		Of(l).Charge(&k.cell, &k.log, epoch, c.own)
		next := epoch + l.Window()
		for _, n := range []uint64{c.late1, c.late2} {
			k.merge(l, late{epoch, next, n})
		}
		if got := Of(l).Used(&k.cell, &k.log, next); got != c.want {
			t.Errorf("%d own, then %d and %d late: debt %d, want %d", c.own, c.late1, c.late2, got, c.want)
		}
	}
}

// TestLimitOfZeroHasNoDebt: hits from before a limit was lowered to 0 are gone
// with their window, and so is the time to wait for a call of no hits.
func TestLimitOfZeroHasNoDebt(t *testing.T) {
	l := &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 0, CarryDebt: true}
	var k key
	Of(l).Charge(&k.cell, &k.log, epoch, 7)
	got := Of(l).Describe(&k.cell, &k.log, epoch+1_000, 0, 0)
	if want := (Report{Reset: l.Window() - 1_000, Retry: l.Window() - 1_000}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	next := epoch + l.Window()
	Of(l).Charge(&k.cell, &k.log, next, 0)
	k.merge(l, late{epoch, next, 3})
	if debt := Of(l).Used(&k.cell, &k.log, next); debt != 0 {
		t.Errorf("debt %d in the next window, want none", debt)
	}
}

// bucketReplica is one of several replicas of a bucket, by either rule.
type bucketReplica interface {
	take(now int64) bool
	merge(now int64, from bucketReplica, n uint64)
}

// summed is ours: others' hits are added to the meter.
type summed struct {
	l *rules.Limit
	k key
}

func (s *summed) take(now int64) bool { return s.k.take(s.l, now, 1) }

func (s *summed) merge(now int64, _ bucketReplica, n uint64) {
	Of(s.l).Merge(&s.k.cell, nil, now, now, n)
}

// newest is a theoretical arrival time joined by the maximum: remote hits that
// came at the same time as own ones are not counted.
type newest struct {
	l   *rules.Limit
	tat int64 // microseconds
}

func (s *newest) perHit() int64 { return s.l.Window() * 1_000 / int64(s.l.Requests) }

func (s *newest) take(now int64) bool {
	tat := max(s.tat, now*1_000) + s.perHit()
	if tat-now*1_000 > int64(s.l.Burst)*s.perHit() {
		return false
	}
	s.tat = tat
	return true
}

func (s *newest) merge(_ int64, from bucketReplica, _ uint64) {
	s.tat = max(s.tat, from.(*newest).tat)
}

// TestReplicasOfABucketKeepTheRate plays replicas of one bucket that is offered
// k times its rate. Each receives the others' hits after a delay, every sync
// (0: at once). It checks the hits that they admit together beyond a full
// bucket, as a multiple of the rate.
func TestReplicasOfABucketKeepTheRate(t *testing.T) {
	const seconds = 40
	for _, c := range []struct {
		replicas       int
		rate, burst, k int64
		delay, sync    int64 // milliseconds
		ours, broken   float64
	}{
		{2, 100, 100, 3, 5, 0, 1.01, 1.3},
		{3, 100, 100, 3, 50, 0, 1.01, 2.5},
		{3, 1000, 100, 3, 5, 0, 1.01, 2.5},
		{10, 100, 100, 5, 50, 0, 1.01, 4.5},
		{3, 100, 100, 3, 500, 100, 1.03, 2.8},
		{3, 100, 600, 3, 2000, 100, 1.08, 2.5},
	} {
		l := &rules.Limit{
			Algorithm: rules.TokenBucket, Unit: rules.Second, Multiplier: 1,
			Requests: uint32(c.rate), Burst: uint32(c.burst),
		}
		t.Run(fmt.Sprintf("%d replicas, %d a second, delay %d ms", c.replicas, c.rate, c.delay), func(t *testing.T) {
			play := func(replica func() bucketReplica) float64 {
				all := make([]bucketReplica, c.replicas)
				for i := range all {
					all[i] = replica()
				}
				admitted := offer(all, seconds*1_000, c.rate*c.k, c.delay, c.sync)
				return float64(admitted-c.burst) / float64(c.rate*seconds)
			}
			if got := play(func() bucketReplica { return &summed{l: l} }); got > c.ours || got < 0.97 {
				t.Errorf("ours keeps %.3f of the rate, want 0.97 to %.2f", got, c.ours)
			}
			if got := play(func() bucketReplica { return &newest{l: l} }); got < c.broken {
				t.Errorf("joined by the maximum it keeps %.3f of the rate, want %.2f at least: the schedule shows nothing", got, c.broken)
			}
		})
	}
}

// offer offers hits a second in turn to replicas for a time and returns how
// many they admit.
func offer(all []bucketReplica, millis, perSecond, delay, sync int64) int64 {
	type news struct {
		at   int64
		from int
		n    uint64
	}
	var way []news
	unsent := make([]uint64, len(all))
	admitted, turn, due := int64(0), 0, int64(0)
	for ms := range millis {
		now := epoch + ms
		for len(way) > 0 && way[0].at <= ms {
			for i := range all {
				if i != way[0].from {
					all[i].merge(now, all[way[0].from], way[0].n)
				}
			}
			way = way[1:]
		}
		for due += perSecond; due >= 1_000; due -= 1_000 {
			i := turn % len(all)
			turn++
			if all[i].take(now) {
				admitted++
				unsent[i]++
			}
		}
		for i := range all {
			if unsent[i] > 0 && (sync == 0 || ms%sync == 0) {
				way = append(way, news{ms + delay, i, unsent[i]})
				unsent[i] = 0
			}
		}
	}
	return admitted
}

// TestBound: a bucket has the lesser of what it had in use and of the bound.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.TokenBucket)
		hits, end := drawLate(t, l)
		var k key
		for _, h := range hits {
			k.merge(l, h)
		}
		most := rapid.Uint64Range(0, 40).Draw(t, "most")
		is := Of(l).Used(&k.cell, &k.log, end)
		Of(l).Bound(&k.cell, end, most)
		if got := Of(l).Used(&k.cell, &k.log, end); got != min(is, most) {
			t.Fatalf("%d in use, want the lesser of %d and %d", got, is, most)
		}
	})
}
