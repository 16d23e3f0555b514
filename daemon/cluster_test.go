package daemon

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
)

// slack is the overage of a minute while all daemons are connected: the hits
// that all of them get in the time by which a view may be old.
func (w *world) slack(each, old time.Duration) uint64 {
	return uint64(len(w.residents)) * uint64(old/each)
}

// nearBound and farBound bound the propagation of a count in a region and to
// all regions.
const (
	nearBound = 250 * time.Millisecond
	farBound  = 700 * time.Millisecond
)

// untilInto waits until a time into the next minute that is not over.
func untilInto(into time.Duration) {
	now := time.Now()
	at := now.Truncate(time.Minute).Add(into)
	if at.Before(now) {
		at = at.Add(time.Minute)
	}
	time.Sleep(time.Until(at))
}

// whenShort returns the first number with -short, else the second one.
func whenShort(short, whole int) int {
	if testing.Short() {
		return short
	}
	return whole
}

// TestClusterJoins starts nine daemons (short: six) of three regions, each with
// the address of one daemon of each other region. All become ready and connect,
// and counts propagate in time.
func TestClusterJoins(t *testing.T) {
	const waits = 2 * time.Second // few hits, far from the limit
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1_000, whenShort(2, 3), "us", "eu", "ap")
		w.within(10*time.Second, "all are ready and connected", w.whole)
		untilInto(5 * time.Second)
		for i := range 27 {
			user := fmt.Sprint("user", i)
			from := w.residents[i%len(w.residents)]
			time.Sleep(time.Duration(17*i) * time.Millisecond)
			begin := time.Now()
			from.hits(1, "visitor", user)
			w.within(waits+nearBound-time.Since(begin), "the region has the hit", func() bool {
				n := 0
				for _, r := range w.in(from.region) {
					if r.remaining("visitor", user) == 999 {
						n++
					}
				}
				return n >= 2
			})
			w.within(waits+farBound-time.Since(begin), "all have the hit", func() bool { return w.agree("visitor", user, 999) })
		}
		const each = 100 * time.Millisecond
		untilInto(0)
		begin := time.Now()
		w.load(time.Minute, each)
		w.audit("joined", begin, time.Now().Add(-time.Second), w.limit+w.slack(each, farBound))
	})
}

// TestClusterLosesARegion partitions a region for ten minutes (short: one)
// under load. No daemon becomes unready, each side enforces the limit for
// itself, its daemons are dialed all the time, and all agree after the
// partition.
func TestClusterLosesARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The intervals are doubled, since the partition is long.
		const each, old = 200 * time.Millisecond, time.Second
		loaded := time.Duration(whenShort(1, 2)) * time.Minute
		w := emptyWorld(t, 600, 2, "us", "eu", "ap")
		w.gossip = gossip.Config{Interval: 200 * time.Millisecond, WANInterval: 500 * time.Millisecond}
		w.start()
		w.within(10*time.Second, "all are ready and connected", w.whole)
		untilInto(0)
		begin := time.Now()
		w.load(loaded, each)
		w.audit("connected", begin, time.Now().Add(-time.Second), w.limit+w.slack(each, old))

		lost := w.in("eu")
		begin = time.Now()
		w.isolate("eu")
		for range whenShort(6, 60) {
			w.load(10*time.Second, each)
			for _, r := range w.alive() {
				if !r.ready.Load() {
					t.Fatalf("%s is not ready in a cut", r.name)
				}
			}
		}
		w.audit("two sides", begin, time.Now().Add(-time.Second), 2*(w.limit+w.slack(each, old)))
		calls := w.calls("us", "eu")
		time.Sleep(30 * time.Second)
		for addr, n := range w.calls("us", "eu") {
			if n <= calls[addr] {
				t.Errorf("%s is not called any more", addr)
			}
		}
		if len(calls) != len(lost) {
			t.Errorf("%d addresses of the lost region are kept, want %d: %v", len(calls), len(lost), calls)
		}

		untilInto(5 * time.Second)
		w.residents[0].hits(7, "visitor", "split")
		lost[1].hits(5, "visitor", "split")
		w.heal()
		took := w.within(30*time.Second, "whole again", w.whole)
		w.within(30*time.Second-took, "all have the hits of both sides", func() bool { return w.agree("visitor", "split", 588) })
		untilInto(0)
		begin = time.Now()
		w.load(loaded, each)
		w.audit("healed", begin, time.Now().Add(-time.Second), w.limit+w.slack(each, old))
	})
}

// calls returns how often the daemons of a region have dialed each address of
// another.
func (w *world) calls(from, to string) map[string]uint64 {
	out := map[string]uint64{}
	for _, r := range w.in(from) {
		for _, s := range r.streams(to) {
			out[s.Addr] += s.Attempts
		}
	}
	return out
}

// streams describes the streams of a daemon to a region.
func (r *resident) streams(region string) []link.Stream {
	var out []link.Stream
	for _, s := range r.cluster.host.Streams() {
		if !s.Incoming && s.Region == region {
			out = append(out, s)
		}
	}
	return out
}

// TestClusterPartitionInsideARegion partitions a daemon from its region, but
// not from the other one, for longer than memberlist remembers dead members.
func TestClusterPartitionInsideARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 200 * time.Millisecond
		w := newWorld(t, 600, 3, "us", "eu")
		w.within(10*time.Second, "all are ready and connected", w.whole)
		untilInto(0)
		begin := time.Now()
		one, rest := w.residents[2], w.residents[:2]
		for _, r := range rest {
			w.cut(one, r)
		}
		w.load(5*time.Second, each)
		for _, r := range rest {
			if r.knows(one.name) {
				t.Errorf("%s still knows %s", r.name, one.name)
			}
		}
		w.load(time.Duration(whenShort(2, 3))*time.Minute-5*time.Second, each)
		for _, r := range w.alive() {
			if !r.ready.Load() {
				t.Errorf("%s is not ready in a cut", r.name)
			}
		}
		w.audit("two sides", begin, time.Now().Add(-time.Second), 2*(w.limit+w.slack(each, farBound)))

		untilInto(5 * time.Second)
		one.hits(7, "visitor", "split")
		rest[0].hits(5, "visitor", "split")
		w.heal()
		begin = time.Now()
		w.within(30*time.Second, "whole again", w.whole)
		took := time.Since(begin)
		w.within(30*time.Second-took, "all have the hits of both sides", func() bool { return w.agree("visitor", "split", 588) })
	})
}

// TestClusterRollingRestart restarts nine daemons one after the other (short:
// two of six) under load. Each gets a new incarnation, and the others keep the
// counts of the former one.
func TestClusterRollingRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 90 * time.Millisecond
		w := newWorld(t, uint32(whenShort(2_500, 4_000)), whenShort(2, 3), "us", "eu", "ap")
		w.within(10*time.Second, "all are ready and connected", w.whole)
		untilInto(0)
		begin := time.Now()
		for _, r := range w.residents {
			r.hits(10, "tenant", "held")
		}
		w.load(time.Second, each)
		kept := w.limit - 10*uint64(len(w.residents))
		for _, r := range w.residents[:whenShort(2, 9)] {
			was := r.self.ID
			r.quit(each)
			w.load(time.Second, each)
			r.start()
			w.underLoad(20*time.Second, each, r.name+" is ready", r.ready.Load)
			if got := r.remaining("tenant", "held"); got != kept {
				t.Errorf("%s is ready and has %d remaining, want %d", r.name, got, kept)
			}
			w.underLoad(20*time.Second, each, r.name+" is back", w.whole)
			if r.self.ID == was {
				t.Errorf("%s is the same incarnation", r.name)
			}
		}
		w.load(time.Minute, each)
		w.audit("rolling restart", begin, time.Now(), w.limit+w.slack(each, farBound))
		if !w.agree("tenant", "held", kept) {
			t.Error("counts of former incarnations are lost")
		}
	})
}

// TestClusterKill kills a daemon under load, in the middle of a window. It
// leaves the membership soon, and the others keep its counts until the window
// ends.
func TestClusterKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 200 * time.Millisecond
		w := newWorld(t, 600, whenShort(2, 3), "us", "eu", "ap")
		w.within(10*time.Second, "all are ready and connected", w.whole)
		untilInto(0)
		begin := time.Now()
		dead := w.residents[1]
		dead.hits(100, "user", "of the dead")
		w.load(10*time.Second, each)
		dead.kill()
		w.underLoad(5*time.Second, each, "the killed one is out", func() bool {
			return !slices.ContainsFunc(w.alive(), func(r *resident) bool { return r.knows(dead.name) })
		})
		w.load(59*time.Second-time.Since(begin), each)
		if !w.agree("user", "of the dead", 500) {
			t.Error("counts of the dead were forgotten before their label ended")
		}
		w.load(5*time.Second, each)
		if !w.agree("user", "of the dead", 600) {
			t.Error("counts of the dead are kept after their label ended")
		}
		// Its last unsent hits are lost.
		w.audit("a killed daemon", begin, time.Now(), w.limit+w.slack(each, farBound)+uint64(nearBound/each)+1)
		dead.start()
		w.within(20*time.Second, "it is back", w.whole)
	})
}
