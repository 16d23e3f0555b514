//go:build e2e

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
)

// slice is the time of one figure of a latency.
const slice = 2 * time.Second

// quietEnd is the longest time until a stream without any traffic is given up.
const quietEnd = 20 * time.Second

func TestFrozenDaemonDelaysNobody(t *testing.T) {
	c := newCluster(t, loopback{}, 3, "us", "eu", "ap")
	victim := c.daemon("us-2")
	others := c.except(victim)
	mates := c.where(func(d *daemon) bool { return d.region == victim.region && d != victim })
	tr := c.traffic(100, aim{day, "user", 12}, aim{window, "spread", 3})
	time.Sleep(time.Second) // until connections are warm

	// A busy moment of the machine slows one round down, a delay slows all.
	const rounds = 3
	for round := 1; !freezeOnce(c, tr, victim, others, mates); round++ {
		if round == rounds {
			t.Errorf("p99 of the others rose in %d rounds", rounds)
			break
		}
	}
	tr.stop()
	tr.served(victim)
	tr.audit()
}

// freezeOnce freezes a daemon for a while, and reports whether the others
// answered as fast as before and after.
func freezeOnce(c *cluster, tr *traffic, victim *daemon, others, mates []*daemon) bool {
	const slices = 3 // of each phase
	t := c.t
	begin := time.Now()
	time.Sleep(slices * slice)
	gap := c.apart(admitted.Daemon{Name: victim.name})
	around := c.aggregatorGone(victim.region, mates)
	victim.freeze(t)
	froze := time.Now()
	out := c.list(5*time.Second, mates, others)
	time.Sleep(time.Until(froze.Add(slices * slice)))
	c.list(quietEnd, others, others)
	outRemote := time.Since(froze)
	c.together(patience, around...)

	around = c.aggregatorGone(victim.region, mates) // until it is back
	victim.thaw(t)
	healed := c.whole(30*time.Second) + c.together(30*time.Second, append(around, gap)...)
	thawed := time.Now()
	time.Sleep(slices * slice)

	t.Logf("froze %s: out of its region's lists after %s, of all after %s; went on: whole again after %s",
		victim.name, seconds(out), seconds(outRemote), seconds(healed))
	before, after := tr.p99s(others, begin, slices), tr.p99s(others, thawed, slices)
	return sameSpeed(t, tr.p99s(others, froze, slices), append(before, after...))
}

// aggregatorGone notes that the aggregator of some keys of a region is gone:
// until the successor acts, its mates learn of their hits neither from each
// other nor from other regions, and those learn of none of the region.
func (c *cluster) aggregatorGone(region string, mates []*daemon) []*Gap {
	gaps := []*Gap{c.apart(admitted.Daemon{Region: region})}
	for _, d := range mates {
		gaps = append(gaps, c.apart(admitted.Daemon{Name: d.name}))
	}
	return gaps
}

// p99s returns the time that 99 of 100 calls to some daemons took at most, for
// slices of the time from begin on.
func (tr *traffic) p99s(of []*daemon, begin time.Time, n int) []time.Duration {
	tr.mu.Lock()
	calls := slices.Clone(tr.took)
	tr.mu.Unlock()
	took := make([][]time.Duration, n)
	for _, c := range calls {
		i := int(c.sent.Sub(begin) / slice)
		if !c.sent.Before(begin) && i < n &&
			slices.ContainsFunc(of, func(d *daemon) bool { return d.name == c.by.Name }) {
			took[i] = append(took[i], c.took)
		}
	}
	out := make([]time.Duration, n)
	for i, all := range took {
		if len(all) < 100 {
			tr.cluster.t.Fatalf("%d calls in a slice of %v are too few to tell how long they take", len(all), slice)
		}
		slices.Sort(all)
		out[i] = all[len(all)*99/100]
	}
	return out
}

// sameSpeed reports whether the median of a figure is above that of the same
// figure in quiet times by at most a fifth and the noise, which is how far
// those differ among themselves.
func sameSpeed(t testing.TB, got, quiet []time.Duration) bool {
	t.Helper()
	slices.Sort(got)
	slices.Sort(quiet)
	was, is := quiet[len(quiet)/2], got[len(got)/2]
	noise := (quiet[len(quiet)-1] - quiet[0]) / 2
	allowed := was*12/10 + noise
	t.Logf("p99 of the others: %v while one is frozen, %v without (ratio %.2f; noise %v): at most %v allowed",
		is, was, float64(is)/float64(was), noise, allowed)
	return is <= allowed
}
