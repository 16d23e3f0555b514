//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
)

// cluster is the daemons of a test, and their faults. Its methods are for the
// goroutine of the test.
type cluster struct {
	t       testing.TB
	net     network
	dir     string // of settings and logs
	regions []string
	plan    plan
	daemons []*daemon
	watch   *watch

	mu   sync.Mutex // guards gaps
	gaps []*Gap     // that the test made
}

// plan is the daemons of a cluster.
type plan struct {
	// daemons are their numbers, by region. later are those of them that the
	// test itself starts, the last ones of each region.
	daemons, later []int
	// diskless are the numbers of those without a folder, the last ones of each
	// region; nil for none.
	diskless []int
	// witness is the region of the witnesses, "" for none.
	witness string
	// founding is the number of regions that found the cluster, the first ones.
	founding int
	// ownSecrets gives each daemon a file of the cluster secret of its own.
	ownSecrets bool
	// secured reports mutual TLS between the daemons, whose certificates have
	// their names. networks reports that regions have the networks where their
	// daemons are.
	secured, networks bool
	// settings are lines that all settings files begin with.
	settings string
	// limits is the file of limits of each daemon.
	limits string
}

// newCluster starts regions of so many daemons each, and waits until all of
// them know each other. Everything ends with the test.
func newCluster(t testing.TB, n network, daemons int, regions ...string) *cluster {
	t.Helper()
	p := plan{founding: len(regions), limits: limitsOfRegions(regions), later: make([]int, len(regions))}
	for range regions {
		p.daemons = append(p.daemons, daemons)
	}
	return startCluster(t, n, p, regions...)
}

// startCluster starts the daemons of a plan, but for the later ones, and begins
// the cluster.
func startCluster(t testing.TB, n network, p plan, regions ...string) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "rld-e2e-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	failures := &failures{TB: t}
	c := &cluster{t: failures, net: n, dir: dir, regions: regions, plan: p}
	const listeners = 5
	all := 0
	for _, daemons := range p.daemons {
		all += daemons
	}
	ports := n.ports(t, all*listeners)
	for i, region := range regions {
		for k := range p.daemons[i] {
			at := make([]string, listeners)
			for l := range at {
				at[l] = net.JoinHostPort(n.host(i), strconv.Itoa(ports[0]))
				ports = ports[1:]
			}
			c.daemons = append(c.daemons, newDaemon(c, i, fmt.Sprintf("%s-%d", region, k), at))
		}
	}
	t.Cleanup(func() {
		c.end()
		failures.repeat()
	})
	c.writeFiles(t)
	first := c.first(regions...)
	for _, d := range first {
		d.start(t)
	}
	begin := time.Now()
	c.list(patience, first, first)
	if code, out := first[0].rld(t, "cluster init --nothing-ran-before --wait 30s"); code != 0 {
		t.Fatalf("rld cluster init: exit code %d: %s", code, out)
	}
	c.watch = startWatch(c)
	t.Logf("%d daemons in %d regions know each other after %s", len(first), p.founding, seconds(time.Since(begin)))
	return c
}

// first returns the daemons of regions that start with the cluster.
func (c *cluster) first(regions ...string) []*daemon {
	var out []*daemon
	for _, region := range regions {
		all := c.in(region)
		out = append(out, all[:len(all)-c.plan.later[slices.Index(c.regions, region)]]...)
	}
	return out
}

// durable returns the daemons of a region with a folder.
func (c *cluster) durable(region string) []*daemon {
	all := c.in(region)
	if c.plan.diskless == nil {
		return all
	}
	return all[:len(all)-c.plan.diskless[slices.Index(c.regions, region)]]
}

// end ends all daemons. After a failure it prints the ends of their logs and
// keeps all files.
func (c *cluster) end() {
	if c.watch != nil {
		c.watch.stop()
	}
	for _, d := range c.daemons {
		if _, run, _ := d.now(); run > 0 && d.gone() {
			c.t.Errorf("%s ended by itself: %v", d.name, d.cmd.ProcessState)
		}
	}
	failed := c.t.Failed()
	for _, d := range c.daemons {
		if failed {
			c.t.Logf("the end of %s's log:\n%s", d.name, d.logTail(8))
		}
	}
	for _, d := range c.daemons {
		d.end()
		d.client.close()
	}
	if !failed {
		os.RemoveAll(c.dir)
		return
	}
	c.t.Logf("whole logs and settings are kept in %s\nagain: go test -tags e2e -count=1 -v -run '^%s$' ./internal/e2e",
		c.dir, c.t.Name())
}

// in returns the daemons of a region.
func (c *cluster) in(region string) []*daemon {
	return c.where(func(d *daemon) bool { return d.region == region })
}

// except returns all daemons but one.
func (c *cluster) except(one *daemon) []*daemon {
	return c.where(func(d *daemon) bool { return d != one })
}

func (c *cluster) where(keep func(*daemon) bool) []*daemon {
	var out []*daemon
	for _, d := range c.daemons {
		if keep(d) {
			out = append(out, d)
		}
	}
	return out
}

// daemon returns the one of that name.
func (c *cluster) daemon(name string) *daemon {
	return c.daemons[slices.IndexFunc(c.daemons, func(d *daemon) bool { return d.name == name })]
}

// within waits until done returns "", and fails the test with the last thing
// that it returned when that takes longer than atMost. It returns how long it
// took.
func (c *cluster) within(atMost time.Duration, what string, done func() string) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for {
		wrong := done()
		took := time.Since(begin)
		if wrong == "" && took <= atMost {
			return took
		}
		if took > atMost {
			c.t.Fatalf("%s: not within %v: %s", what, atMost, wrong)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// whole waits until all daemons are ready and list each other, and nobody else.
func (c *cluster) whole(atMost time.Duration) time.Duration {
	c.t.Helper()
	return c.list(atMost, c.daemons, c.daemons)
}

// list waits until each of asked is ready and lists exactly the others, as
// they live now, and all of them as ready.
func (c *cluster) list(atMost time.Duration, asked, others []*daemon) time.Duration {
	c.t.Helper()
	return c.within(atMost, "membership", func() string {
		want := make([]string, len(others))
		for i, d := range others {
			if want[i] = d.incarnation(); want[i] == "" {
				return d.name + " does not say who it is"
			}
		}
		slices.Sort(want)
		for _, d := range asked {
			if wrong := d.lists(want); wrong != "" {
				return wrong
			}
		}
		return ""
	})
}

// agree waits until each of asked reports that so many hits of a key remain.
func (c *cluster) agree(atMost time.Duration, asked []*daemon, rule, value string, remaining int) time.Duration {
	c.t.Helper()
	return c.within(atMost, fmt.Sprintf("%d of %s=%s remaining", remaining, rule, value), func() string {
		for _, d := range asked {
			got, err := d.remaining(rule, value)
			if err != nil {
				return fmt.Sprintf("%s: %v", d.name, err)
			}
			if got != remaining {
				return fmt.Sprintf("%d remain at %s", got, d.name)
			}
		}
		return ""
	})
}

// apart notes that from now on the matching daemons and all others exchange
// nothing. Counts exchanged before are considered in the ages of views.
func (c *cluster) apart(of admitted.Daemon) *Gap {
	near, far := c.watch.ages(time.Now())
	g := &Gap{Of: of, Since: time.Now().Add(-max(near, far))}
	c.note(g)
	return g
}

func (c *cluster) note(g *Gap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaps = append(c.gaps, g)
}

// freshView is how old no view is when all is well and counts are sent.
const freshView = time.Second

// together waits until no living daemon's view of another is older than that
// was when it began, and ends gaps: idle daemons exchange heartbeats alone. It
// returns how long it took.
func (c *cluster) together(atMost time.Duration, gaps ...*Gap) time.Duration {
	c.t.Helper()
	begin := time.Now()
	took := c.within(atMost, "fresh views", func() string {
		for _, d := range c.daemons {
			if wrong := d.stale(freshView + time.Since(begin)); wrong != "" {
				return wrong
			}
		}
		return ""
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	// The daemons at both ends must still pass on the counts that they know.
	for _, g := range gaps {
		g.Until = time.Now().Add(freshView)
	}
	return took
}

// separated reports whether two daemons are kept apart now.
func (c *cluster) separated(a, b admitted.Daemon) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.gaps, func(g *Gap) bool { return g.separates(a, b, time.Now()) })
}

// views returns what daemons knew of each other about a time.
func (c *cluster) views(at time.Time) *Views {
	v := &Views{}
	v.Near, v.Far = c.watch.ages(at)
	regions := make(map[string]int)
	for _, d := range c.daemons {
		if regions[d.region]++; regions[d.region] >= 3 {
			v.Daemons = len(c.daemons)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.gaps {
		v.Gaps = append(v.Gaps, *g)
	}
	return v
}

// seconds shows a duration with two digits after the point.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// nextWindow waits for a window of a rule to begin and returns its end.
func (c *cluster) nextWindow(rule string) time.Time {
	begin := time.Now().Truncate(lengths[rule]).Add(lengths[rule])
	time.Sleep(time.Until(begin))
	return begin.Add(lengths[rule])
}

// stay asks until a time whether so many hits of a key remain at each daemon,
// and fails the test when it is not so once.
func (c *cluster) stay(asked []*daemon, rule, value string, remaining int, until time.Time) {
	c.t.Helper()
	for time.Now().Before(until) {
		for _, d := range asked {
			got, err := d.remaining(rule, value)
			if (err != nil || got != remaining) && time.Now().Before(until) {
				c.t.Fatalf("%s: %d of %s=%s remain, %v; want %d until %v", d.name, got, rule, value, err, remaining, until)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}
