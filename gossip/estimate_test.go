package gossip

import (
	"testing"
	"time"
)

// extrapolated returns the hits of a key's minute that a daemon estimates
// beside those it knows.
func (r *rig) extrapolated(name string, k int, limit uint64) uint64 {
	return r.of(name).Extrapolated(r.mono(r.of(name)), time.Hour, testKey(k), epoch, epoch, limit)
}

// load runs the rig while a daemon counts n hits each step.
func (r *rig) load(d time.Duration, name string, k, n int) {
	for end := r.now + d; r.now < end; {
		r.add(name, k, n)
		r.run(step)
	}
}

// Under a steady load the estimate is the truth to within what comes in a few
// steps, in the region and across, also where it is handed on.
func TestExtrapolationFollowsASteadyLoad(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b")
	r.load(4*time.Second, "b1", 1, 2)
	r.load(4*time.Second, "a1", 2, 2)
	for range 200 {
		r.add("a1", 2, 2)
		r.add("b1", 1, 2)
		r.run(step)
		for _, c := range []struct {
			name string
			k    int
			from string
		}{{"a1", 1, "b1"}, {"a2", 1, "b1"}, {"b1", 2, "a1"}, {"a2", 2, "a1"}} {
			truth := r.of(c.from).Own(testKey(c.k), epoch).P
			known := r.total(c.name, c.k)
			guess := known + r.extrapolated(c.name, c.k, ample)
			if known > truth {
				t.Fatalf("%s knows %d of %d", c.name, known, truth)
			}
			// 400 a second and two hops of a step each that are not seen.
			if off := max(truth, guess) - min(truth, guess); r.now > 10*time.Second && off > 30 {
				t.Fatalf("at %v %s expects %d of %s, which is at %d", r.now, c.name, guess, c.from, truth)
			}
		}
	}
}

func TestExtrapolationIsCapped(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.load(2*time.Second, "a1", 1, 100)
	known := r.total("a2", 1)
	for _, c := range []struct{ limit, want uint64 }{
		{known + 50, 50}, {known, 0}, {known - 1, 0}, {0, 0},
	} {
		r.run(3 * step) // well within a lag
		if got := r.extrapolated("a2", 1, c.limit); got > c.want {
			t.Errorf("%d more are expected of a slot at %d, of %d", got, known, c.limit)
		}
	}
	if got := r.extrapolated("a2", 1, ample); got < 100 {
		t.Errorf("without a cap %d more are expected", got)
	}
}

// A peer that falls silent is extrapolated for three lags, no longer, and not
// at all when membership drops it.
func TestExtrapolationEnds(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b")
	r.load(4*time.Second, "b1", 1, 5)
	r.lost = func(from, _ *member) bool { return from.name == "b1" }
	a1 := r.of("a1")
	lag, last := a1.links.find(r.of("b1").self.ID).lag, uint64(0)
	r.run(lag)
	if last = r.extrapolated("a1", 1, ample); last < 200 {
		t.Errorf("%d more are expected of a peer that counts 1000 a second, a lag of %v later", last, lag)
	}
	r.run(2*lag + DefaultWANInterval)
	if got := r.extrapolated("a1", 1, ample); got != 0 {
		t.Errorf("%d more are expected after three lags", got)
	}
	if got := r.extrapolated("a2", 1, ample); got != 0 {
		t.Errorf("%d more are expected after three lags by who was told", got)
	}
	r.run(3*regionalHeartbeat + time.Second)
	if a1.count(PeerSilent) == 0 {
		t.Error("nobody said that b1 is silent")
	}
	r.lost = nil
	r.load(4*time.Second, "b1", 1, 5)
	r.crash(r.of("b1"))
	r.run(DefaultInterval + step) // the latest message may be from another peer
	if got := r.extrapolated("a1", 1, ample); got != 0 {
		t.Errorf("%d more are expected of a peer that is gone", got)
	}
}

// No news is news: one complete message without the key, a whole interval
// after the last hit, ends it, for those it was handed on to as well.
func TestNoNewsEndsExtrapolation(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b")
	r.load(4*time.Second, "b1", 1, 5)
	r.run(3*DefaultWANInterval + DefaultInterval)
	for _, name := range []string{"a1", "a2"} {
		if got := r.extrapolated(name, 1, ample); got != 0 {
			t.Errorf("%s expects %d more of a peer that stopped", name, got)
		}
		if m := r.of(name); m.count(PeerSilent) > 0 {
			t.Errorf("%s took it for silent", name)
		}
	}
}

// A new window starts without a slope, and its first slope covers no time
// before the window. It adds nothing to the window before.
func TestExtrapolationStartsWithTheWindow(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.now = time.Duration(minute.WindowLength)*time.Millisecond - 3*time.Second
	r.load(3*time.Second, "a1", 1, 50) // 10,000 a second
	next := epoch + minute.WindowLength
	a1, a2 := r.of("a1"), r.of("a2")
	estimate := func(window int64) uint64 {
		return a2.Extrapolated(r.mono(a2), time.Hour, testKey(1), window, window, ample)
	}
	if got := estimate(next); got != 0 {
		t.Errorf("%d more are expected in a window that just began", got)
	}
	for range 40 { // 400 a second now
		a1.Add(r.mono(a1), testKey(1), next, minute, 2, roomy)
		r.run(step)
		if got := estimate(next); got > 2*400*3/10 {
			t.Fatalf("%d more are expected of 400 a second", got)
		}
	}
	if got := estimate(next); got == 0 {
		t.Error("nothing is expected of 400 a second")
	}
	if got := estimate(epoch); got != 0 { // of a daemon with a clock ahead
		t.Errorf("%d more are expected in the window before it", got)
	}
}

// Single hits predict nothing.
func TestFewHitsAreNoSlope(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.run(time.Second)
	for range 20 {
		r.add("a1", 1, minGain-1)
		r.run(DefaultInterval)
		if got := r.extrapolated("a2", 1, ample); got != 0 {
			t.Fatalf("%d more are expected", got)
		}
	}
}

// A peer sends the count of a live daemon before that daemon does. The slope
// remains that of the daemon, and ends with its next complete message.
func TestSecondHandNewsLeavesTheSlope(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a")
	r.load(2*time.Second, "a1", 1, 5)
	r.lost = func(from, to *member) bool { return from.name == "a1" && to.name == "a2" }
	r.load(200*time.Millisecond, "a1", 1, 5)
	r.run(smallEvery + DefaultInterval)
	a2 := r.of("a2")
	r.of("a3").Peers(r.mono(r.of("a3")), []Peer{r.of("a3").self}) // a3 loses its state, and sends all cells
	r.meet()
	r.run(200 * time.Millisecond)
	if got, want := r.total("a2", 1), r.total("a3", 1); got != want {
		t.Fatalf("a2 knows %d and a3 %d: the schedule shows nothing", got, want)
	}
	r.lost = nil
	r.run(3 * time.Second)
	if got := r.extrapolated("a2", 1, ample); got != 0 {
		t.Errorf("a2 expects %d more of a daemon that stopped", got)
	}
	for _, c := range a2.Cells(r.wall(a2), nil) {
		if c.Rate != 0 {
			t.Errorf("a slope is left at %v", c)
		}
	}
}

// The daemon that forwarded a slope is no longer the aggregator when the other
// region stops: another daemon ends the slope.
func TestSlopeEndsWithItsAggregator(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "b")
	r.run(3 * time.Second)
	k := r.keyOf("a3")
	r.crash(r.of("a3"))
	r.run(time.Second)
	teller, told := "a1", "a2"
	if !r.of(teller).Aggregates(testKey(k)) {
		teller, told = told, teller
	}
	r.load(3*time.Second, "b1", k, 5)
	if r.extrapolated(told, k, ample) == 0 {
		t.Fatalf("%s was handed no slope: the schedule shows nothing", told)
	}
	r.restart(r.of("a3"))
	r.run(3 * time.Second)
	if !r.of("a3").Aggregates(testKey(k)) {
		t.Fatal("a3 does not sum the key up: the schedule shows nothing")
	}
	for m := range r.up {
		if got := r.extrapolated(m.name, k, ample); got != 0 {
			t.Errorf("%s expects %d more of a region that stopped", m.name, got)
		}
	}
}

// Membership drops a peer right after a burst, for a while, as in a network
// partition: the aggregator ends the forwarded slope.
func TestSlopeEndsWithItsPeer(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b")
	r.run(3 * time.Second)
	r.add("b1", 1, 200)
	for end := r.now + time.Second; r.extrapolated("a1", 1, ample) == 0 || r.extrapolated("a2", 1, ample) == 0; {
		if r.run(step); r.now > end {
			t.Fatal("one has no slope: the schedule shows nothing")
		}
	}
	r.crash(r.of("b1"))
	r.run(3 * time.Second)
	r.of("b1").down = false
	r.meet()
	r.run(3 * time.Second)
	for _, name := range []string{"a1", "a2"} {
		if got := r.extrapolated(name, 1, ample); got != 0 {
			t.Errorf("%s expects %d more of a peer that stopped before it was dropped", name, got)
		}
	}
}
