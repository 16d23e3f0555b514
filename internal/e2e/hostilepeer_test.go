//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// The limits of a cluster with a thief.
const (
	plainLimit  = 40
	rightsLimit = 100 // of two regions with half of it each
	rightsBound = 110
	ownedLimit  = 40
)

var thiefLimits = fmt.Sprintf(`domain: %s
descriptors:
  - {key: plain, rate_limit: {unit: day, requests_per_unit: %d}}
  - {key: budgeted, rate_limit: {unit: day, requests_per_unit: %d, overage_budget: 10%%}}
  - {key: partition, rate_limit: {unit: day, requests_per_unit: %[3]d, consistency: partition}}
  - {key: strict, rate_limit: {unit: day, requests_per_unit: %d, consistency: strict, home: a}}
`, domain, plainLimit, rightsLimit, ownedLimit)

// heist is one attack of a thief.
type heist struct {
	name string
	// begin prepares the attack on the keys of a value. attack is repeated
	// while honest callers use them up, and end ends it.
	begin func(s *thief, value string) (attack, end func())
	// metric counts the refusals, in the series with these parts; "" for an
	// attack that only has no effect.
	metric string
	series []string
	// log are parts of the line that names it.
	log []string
	// mayDeny are rules that it may deny, as docs/security.md has it.
	mayDeny []string
}

// TestHostilePeer has a thief with all that a daemon of region b has attack the
// daemons of region a: an honest caller gets there what it gets without the
// attack, the daemons keep their streams, and each refusal is counted and
// named.
func TestHostilePeer(t *testing.T) {
	c := startCluster(t, loopback{}, plan{
		daemons: []int{2, 1}, later: []int{0, 0}, founding: 2, secured: true, networks: true,
		settings: fmt.Sprintf("shards: %d\n", thiefShards), limits: thiefLimits,
	}, "a", "b")
	a0 := c.daemon("a-0")
	c.within(patience, "region a has its rights, and strict keys an owner", func() string {
		for _, d := range c.in("a") {
			s, err := d.client.check(time.Second, question{rule: strict, value: "first", hits: 0})
			if n, _ := d.metric("rld_rights_held_hits"); err != nil || s.DegradedReason != "" || n == 0 {
				return fmt.Sprintf("%s: %v, %v, rights %v", d.name, s, err, n)
			}
		}
		return ""
	})
	s := c.steal(t, c.daemon("b-0"))
	want := c.useUp("before", nil)
	t.Logf("without an attack region a admits %v", want)
	if want["plain"] < plainLimit || want["plain"] > plainLimit*3/2 || want[strict] != ownedLimit || want["partition"] == 0 || want["partition"] > rightsLimit {
		t.Fatal("that is not what the limits allow")
	}
	for i, h := range heists {
		t.Run(h.name, func(t *testing.T) {
			s.t, c.t = t, t
			value := fmt.Sprint("value-", i)
			before := 0.0
			if h.metric != "" {
				before, _ = a0.metric(h.metric, h.series...)
			}
			attack, end := h.begin(s, value)
			got := c.useUp(value, attack)
			t.Logf("region a admits %v", got)
			if h.metric != "" {
				c.within(patience, "the refusals are counted", func() string {
					n, err := a0.metric(h.metric, h.series...)
					if err != nil || n <= before {
						return fmt.Sprintf("%s%v is %v, before %v, %v", h.metric, h.series, n, before, err)
					}
					return ""
				})
			}
			end()
			for rule, n := range want {
				most := n
				switch rule {
				case "budgeted": // lies deny the budget's part at each daemon
					n, most = n-2*(rightsBound-rightsLimit), rightsBound
				case "plain": // the first half waits for the interval
					n, most = plainLimit, plainLimit*3/2
				}
				for _, may := range h.mayDeny {
					if may == rule {
						n = 0
					}
				}
				if got[rule] < n || got[rule] > most {
					t.Errorf("%s: %d hits are admitted, want %d to %d", rule, got[rule], n, most)
				}
			}
			c.unharmed(h)
		})
	}
	c.t = t
}

// useUp uses up a key of each rule at the daemons of region a, while an attack
// is repeated, and returns how many hits they admit.
func (c *cluster) useUp(value string, attack func()) map[string]int {
	c.t.Helper()
	stop, attacks := make(chan struct{}), sync.WaitGroup{}
	if attack != nil {
		attack()
		attacks.Go(func() {
			for tick := time.NewTicker(50 * time.Millisecond); ; {
				select {
				case <-stop:
					tick.Stop()
					return
				case <-tick.C:
					attack()
				}
			}
		})
		time.Sleep(200 * time.Millisecond) // so that the first lies are there
	}
	var mu sync.Mutex
	got := map[string]int{}
	var callers sync.WaitGroup
	for _, rule := range []string{"plain", "budgeted", "partition", strict} {
		callers.Go(func() {
			n := c.exhaust(c.in("a"), rule, value)
			mu.Lock()
			defer mu.Unlock()
			got[rule] = n
		})
	}
	callers.Wait()
	close(stop)
	attacks.Wait()
	return got
}

// exhaust asks daemons for hits in turn until all of them deny for a while, and
// returns the number of admitted ones. Each hit waits until all know of the
// last one, so that none is admitted beyond a limit for lack of knowledge.
func (c *cluster) exhaust(daemons []*daemon, rule, value string) int {
	const denied = 500 * time.Millisecond
	n, last := 0, time.Now()
	for i := 0; time.Since(last) < denied; i++ {
		d := daemons[(i/16)%len(daemons)]
		if i%16 == 0 {
			time.Sleep(30 * time.Millisecond) // counts arrive
		}
		s, err := d.client.check(2*time.Second, question{rule: rule, value: value, hits: 1})
		switch {
		case err != nil:
			c.t.Errorf("%s: %v", d.name, err)
			return n
		case s.Code == rldv1.Code_ALLOWED:
			n, last = n+1, time.Now()
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
	return n
}

// logged is the least time between two equal lines of the log.
const logged = 10 * time.Second

// unharmed fails the test unless the daemons of region a have kept their
// streams to each other, have recent views, and have named an attack, now and
// then.
func (c *cluster) unharmed(h heist) {
	c.t.Helper()
	all, begin := c.in("a"), time.Now()
	c.within(patience, "recent views", func() string {
		for i, d := range all {
			peers, err := d.netcheck()
			if err != nil {
				return err.Error()
			}
			mate := all[1-i]
			if age, ok := viewOf(peers, mate.incarnation()); !ok || age > freshView+time.Since(begin) {
				return fmt.Sprintf("%s has a view of %s of %v", d.name, mate.name, age)
			}
		}
		return ""
	})
	for i, d := range all {
		if n := len(d.lines("stream to a peer is up", "a/"+all[1-i].name)); n != 1 {
			c.t.Errorf("%s has connected to %s %d times", d.name, all[1-i].name, n)
		}
	}
	for _, d := range all {
		if lines := d.lines("level=ERROR", "defect"); len(lines) > 0 {
			c.t.Errorf("%s has a defect:\n%s", d.name, strings.Join(lines, ""))
		}
	}
	if lines := all[0].lines(h.log...); h.log != nil {
		_, _, began := all[0].now()
		if most := 1 + int(time.Since(began)/logged); len(lines) == 0 || len(lines) > most {
			c.t.Errorf("%d lines with %q, want 1 to %d:\n%s", len(lines), h.log, most, strings.Join(lines, ""))
		}
	}
}

// lines returns the lines of the log with all parts.
func (d *daemon) lines(parts ...string) (found []string) {
	data, err := os.ReadFile(d.log)
	if err != nil {
		d.cluster.t.Fatal(err)
	}
next:
	for line := range strings.Lines(string(data)) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}
