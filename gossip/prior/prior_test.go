package prior

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

const second = int64(1000)

// steady returns the load of a daemon that is offered the same in each of n
// windows of a second, and its latest report.
func steady(n int, offered uint64) (o Own, latest Report, reported bool) {
	for i := range int64(n) {
		if r, ok := o.Roll(time.Duration(i)*time.Second, 1+i*second, second); ok {
			latest, reported = r, true
		}
		o.Offered, o.Exhausted = o.Offered+offered, true
	}
	return o, latest, reported
}

func TestSteadyLoad(t *testing.T) {
	if _, _, ok := steady(4, 100); ok {
		t.Error("a load is reported before it was seen to be steady")
	}
	o, r, ok := steady(30, 100)
	if !ok || r.Offered != 100 || r.Doubted > 2 || r.Window != 1+28*second {
		t.Errorf("steady load of 100 after 30 windows: report %+v, %v", r, ok)
	}
	q := Question{Window: 1 + 30*second, Length: second, Limit: 100, Lag: 100 * time.Millisecond, MeanLag: 100 * time.Millisecond, Draw: 1 << 63}
	others := Report{Window: r.Window, Load: Load{Offered: 300, Doubted: 3}}
	if share, ok := o.Share(others, &q); !ok || share != 25 {
		t.Errorf("share of one of four: %d, %v", share, ok)
	}
	if _, ok := o.Share(Report{}, &q); ok {
		t.Error("a share without others")
	}
	old := others
	if old.Window -= 3 * second; old.Window >= q.Window-Oldest(second, q.Lag) {
		t.Errorf("the window %d before is not old", q.Window-old.Window)
	}
	if _, ok := o.Share(old, &q); ok {
		t.Error("a share by an old report")
	}
	doubtful := others
	doubtful.Doubted = 30
	if _, ok := o.Share(doubtful, &q); ok {
		t.Error("a share though a tenth of others is doubted")
	}
	for _, mean := range []time.Duration{100 * time.Millisecond, time.Second} {
		late := q
		late.Lag, late.MeanLag = time.Second, mean
		if _, ok := o.Share(others, &late); ok != (mean < late.Lag) {
			t.Errorf("a share at a lag of 1 s, of %v on average: %v", mean, ok)
		}
	}
	o.Roll(0, q.Window, second)
	q.Now = 150 * time.Millisecond
	if _, ok := o.Share(others, &q); !ok {
		t.Error("no share within 1.5 lags of the first hit")
	}
	if q.Now++; !o.Settled(&q) {
		t.Error("not settled after 1.5 lags")
	}
	if _, ok := o.Share(others, &q); ok {
		t.Error("a share after 1.5 lags")
	}
}

// A load that comes and goes is doubted as often as it was not as predicted,
// and one with a gap is unknown again.
func TestUnsteadyLoad(t *testing.T) {
	var o Own
	var latest Report
	for i := range int64(60) {
		if r, ok := o.Roll(0, 1+i*second, second); ok {
			latest = r
		}
		if i%4 < 2 {
			o.Offered, o.Exhausted = 100, true
		}
	}
	if latest.Offered != 100 || latest.Doubted < 90 {
		t.Errorf("load in two windows of four: report %+v", latest)
	}
	steady, _, _ := steady(30, 100)
	if _, ok := steady.Roll(0, 1+40*second, second); ok || steady.seen != 0 {
		t.Errorf("a load after a gap of ten windows: %+v", steady)
	}
}

// genOwn draws the load of a daemon with any history.
func genOwn(t *rapid.T, who string) (Own, []Report) {
	var o Own
	var reports []Report
	window, length := int64(0), second
	for range rapid.IntRange(0, 40).Draw(t, who+" windows") {
		window += length * rapid.SampledFrom([]int64{0, 1, 1, 1, 1, 2, 9, -1}).Draw(t, who+" step")
		if rapid.IntRange(0, 30).Draw(t, who+" other length") == 0 {
			length = rapid.Int64Range(-1, 1<<62).Draw(t, who+" length")
			window = rapid.Int64Range(-1<<62, 1<<62).Draw(t, who+" window")
		}
		if r, ok := o.Roll(time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "now")), window, length); ok {
			reports = append(reports, r)
		}
		o.Offered = rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64Range(90, 110), rapid.Uint64()).Draw(t, who+" offered")
		o.Exhausted = rapid.Bool().Draw(t, who+" exhausted")
	}
	return o, reports
}

// Whatever a daemon saw, and whatever others report: no share exceeds the
// limit, a load of a report is within its bounds, and the share that is left to
// others is no more than their part of all offered hits.
func TestSharesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, reports := genOwn(t, "own")
		for _, r := range reports {
			if r.Load != r.Bounded() {
				t.Fatalf("report %+v out of its bounds", r)
			}
		}
		q := Question{
			Now: time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "now")), Window: o.Window + o.length*rapid.Int64Range(0, 1).Draw(t, "next"),
			Length: o.length, Limit: rapid.OneOf(rapid.Uint64Range(1, 100), rapid.Uint64()).Draw(t, "limit"),
			Lag: time.Duration(rapid.Int64().Draw(t, "lag")), MeanLag: time.Duration(rapid.Int64().Draw(t, "mean lag")), Draw: rapid.Uint64().Draw(t, "draw"),
		}
		others := Report{Window: q.Window - rapid.Int64Range(-1, 5).Draw(t, "age")*second}
		others.Load = Load{rapid.Uint64().Draw(t, "offered"), rapid.Uint64Range(0, 100).Draw(t, "doubted")}.Bounded()
		share, ok := o.Share(others, &q)
		if share > q.Limit {
			t.Fatalf("share %d of %d", share, q.Limit)
		}
		if ok && o.Settled(&q) {
			t.Fatal("a share after 1.5 lags")
		}
		own := float64(min(o.in(others.Window), MaxOffered))
		if least := own / (own + float64(others.Offered)) * float64(q.Limit) * (1 - 1e-9); ok && float64(share) < least-1 {
			t.Fatalf("share %d, want at least %g: the part of all that is offered", share, least)
		}
	})
}

// The shares of daemons with one view of all loads sum to the limit: to less
// than one hit a daemon, and to the limit on average.
func TestSharesSumToTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := rapid.SliceOfN(rapid.Uint64Range(1, 10_000), 2, 20).Draw(t, "loads")
		limit := rapid.Uint64Range(1, 100_000).Draw(t, "limit")
		all, sum := Load{}, uint64(0)
		for _, n := range loads {
			all = all.Add(Load{Offered: n})
		}
		for _, n := range loads {
			o, r, _ := steady(30, n)
			q := Question{Window: 1 + 30*second, Length: second, Limit: limit, Lag: time.Millisecond, MeanLag: time.Millisecond, Draw: rapid.Uint64().Draw(t, "draw")}
			share, ok := o.Share(Report{Window: r.Window, Load: Load{Offered: all.Offered - n}}, &q)
			if !ok {
				t.Fatal("no share of a steady load")
			}
			sum += share
		}
		if d := uint64(len(loads)); sum > limit+d || sum+d < limit {
			t.Fatalf("%d daemons have shares of %d, want %d", d, sum, limit)
		}
	})
}

// Sources keep one report of each, the latest one, and sum them.
func TestSources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const keep, most = 10, 5
		var s Sources
		type id struct {
			of    crdt.Incarnation
			local bool
		}
		latest := map[id]Report{}
		for range rapid.IntRange(0, 50).Draw(t, "reports") {
			of := id{crdt.Incarnation(rapid.Uint64Range(1, 4).Draw(t, "of")), rapid.Bool().Draw(t, "local")}
			r := Report{Window: rapid.Int64Range(100, 100+keep).Draw(t, "window"), Load: Load{Offered: rapid.Uint64().Draw(t, "offered")}}
			s.Add(of.of, of.local, r, keep, most)
			if _, known := latest[of]; (known || len(latest) < most) && r.Window >= latest[of].Window {
				r.Load = r.Bounded()
				latest[of] = r
			}
		}
		if len(s.all) != len(latest) {
			t.Fatalf("%d sources, want %d", len(s.all), len(latest))
		}
		from := rapid.Int64Range(95, 115).Draw(t, "from")
		var all, region Load
		daemons := 0
		for of, r := range latest {
			if of.local {
				daemons++
			}
			if r.Window >= from && of != (id{1, true}) {
				all = all.Add(r.Load)
			}
			if r.Window >= from && of.local {
				region = region.Add(r.Load)
			}
		}
		if got := s.Others(from, 1); got.Load != all {
			t.Fatalf("others %+v, want %+v", got, all)
		}
		if got := s.Region(from); got.Load != region {
			t.Fatalf("region %+v, want %+v", got, region)
		}
		s.Daemons(func(crdt.Incarnation) { daemons-- })
		if daemons != 0 {
			t.Fatalf("%d daemons too few", daemons)
		}
		s.Add(9, true, Report{Window: 1000}, keep, most)
		if len(s.all) != 1 {
			t.Fatalf("%d sources after a long time, want the new one", len(s.all))
		}
	})
}

// TestRollOfUnalignedWindows: the key of another rule with the same hash may
// have windows that start within those of this one.
func TestRollOfUnalignedWindows(t *testing.T) {
	o, _, _ := steady(30, 100)
	if _, ok := o.Roll(time.Minute, o.Window+second/2, second); ok || o.Window != 1+29*second+second/2 || o.Offered != 0 {
		t.Errorf("half a window later: %+v, reported %v", o, ok)
	}
}
