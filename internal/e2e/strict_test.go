//go:build e2e

package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/server/admin/api"
)

const (
	// backWithin is how long after the death of an owner its keys may be
	// refused.
	backWithin = 6 * time.Second
	// strictHeadroom is by how many hits of a key a takeover may fall short.
	strictHeadroom = 20
)

// The owner of keys is killed under load: soon another daemon of the region is
// the owner, and counts as used all that the dead one may have used.
func TestStrictOwnerThatIsKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 3, "us", "eu", "ap")
	victim := c.daemon("eu-1")
	aims := []aim{{strict, "dying", 6}}
	var used []string // keys of once
	for _, rule := range []string{open, once} {
		for _, name := range c.homed(victim, rule, 2) {
			aims = append(aims, aim{rule, name, 1})
			if rule == once {
				used = append(used, name+"-0")
			}
		}
	}
	tr := c.traffic(80, aims...)
	time.Sleep(1500 * time.Millisecond)
	killed := time.Now()
	victim.kill(t)
	time.Sleep(backWithin) // callers see no other change meanwhile
	// Before they are used up, a victim that returns would be a takeover, too.
	c.within(patience, "the keys are used up", func() string {
		for _, key := range used {
			if left, err := c.daemon("us-0").remaining(once, key); err != nil || left > 0 {
				return fmt.Sprintf("%s: %d left, error %v", key, left, err)
			}
		}
		return ""
	})
	victim.start(t)
	c.whole(patience)
	time.Sleep(2 * time.Second)
	tr.stop()

	worst := tr.outage(open, killed, killed.Add(backWithin+2*time.Second), victim)
	t.Logf("killed %s, owner of %d keys: no daemon was without service for longer than %s", victim.name, 2, seconds(worst))
	if worst > backWithin {
		t.Errorf("a daemon had no service for %s, want at most %s", seconds(worst), backWithin)
	}
	tr.served(victim)
	tr.keptTo(strict, strictLimit, strictLimit)
	tr.usedOnce(killed)
	t.Log(tr.failures(open))
}

// homed returns n names of keys of a rule that a daemon is owner of: of the
// keys NAME-0.
func (c *cluster) homed(owner *daemon, rule string, n int) []string {
	c.t.Helper()
	c.within(patience, "a layout of strict keys with all regions", func() string {
		for _, d := range c.daemons {
			var a api.StrictAnswer
			if err := d.get("/v1/strict", &a); err != nil {
				return err.Error()
			}
			if s := a.Strict; s == nil || s.Layout == 0 || s.Next != nil || len(s.Regions) < len(c.regions) {
				return fmt.Sprintf("%s has %+v", d.name, s)
			}
		}
		return ""
	})
	var out []string
	for i := 0; i < 100 && len(out) < n; i++ {
		name := fmt.Sprintf("%s%d", owner.name, i)
		c.within(patience, "the owner of a key", func() string {
			at, err := c.daemons[0].ownerOf(rule, name+"-0")
			if err != nil {
				return err.Error()
			}
			if at == owner.name {
				out = append(out, name)
			}
			return ""
		})
	}
	if len(out) < n {
		c.t.Fatalf("%s owns %d of 100 keys of %s, want %d", owner.name, len(out), rule, n)
	}
	return out
}

// ownerOf returns the name of the daemon that owns a key, as this one
// sees it.
func (d *daemon) ownerOf(rule, value string) (string, error) {
	var a api.ExplainAnswer
	q := url.Values{"domain": {domain}, "d": {rule + ":" + value}}
	if err := d.get("/v1/explain?"+q.Encode(), &a); err != nil {
		return "", err
	}
	if len(a.Descriptors) != 1 || a.Descriptors[0].StrictKey == nil || a.Descriptors[0].StrictKey.Owner == nil {
		return "", fmt.Errorf("%s knows no owner of %s=%s", d.name, rule, value)
	}
	return a.Descriptors[0].StrictKey.Owner.Name, nil
}

// outage returns the longest time in which any daemon but those named answered
// nothing of a key of a rule by the word of its owner, between two times.
func (tr *traffic) outage(rule string, from, to time.Time, but ...*daemon) time.Duration {
	type view struct{ at, value string }
	good := map[view][]time.Time{}
	for _, d := range tr.cluster.daemons {
		for _, a := range tr.aims {
			if a.rule != rule || slices.Contains(but, d) {
				continue
			}
			for i := range a.keys {
				good[view{d.name, fmt.Sprintf("%s-%d", a.name, i)}] = []time.Time{from}
			}
		}
	}
	for _, x := range tr.took {
		v := view{x.by.Name, x.asked.value}
		done := x.sent.Add(x.took)
		if times, ok := good[v]; ok && x.asked.rule == rule && x.degraded == "" && done.After(from) && done.Before(to) {
			good[v] = append(times, done)
		}
	}
	var worst time.Duration
	for _, times := range good {
		times = append(times, to)
		slices.SortFunc(times, time.Time.Compare)
		for i := range times[1:] {
			worst = max(worst, times[i+1].Sub(times[i]))
		}
	}
	return worst
}

// failures describes how many answers of a rule were given without its owner.
func (tr *traffic) failures(rule string) string {
	all, without := 0, map[string]int{}
	for _, x := range tr.took {
		if x.asked.rule != rule {
			continue
		}
		if all++; x.degraded != "" {
			without[x.degraded]++
		}
	}
	return fmt.Sprintf("of %d answers of %s keys without the answer of an owner: %v", all, rule, without)
}

// usedOnce fails the test unless each key of the rule that is used up once was:
// all but a headroom for the owner that died, the calls that it took with it,
// and those that an owner answered too late, which it may have charged. For a
// second after the death there is no other owner.
func (tr *traffic) usedOnce(killed time.Time) {
	t := tr.cluster.t
	t.Helper()
	keys := 0
	for _, w := range tr.account.Counts() {
		if w.Rule != once {
			continue
		}
		keys++
		lost := 0
		for _, e := range tr.errors {
			if e.asked.rule == once && e.asked.value == w.Key && e.sent.Before(killed) {
				lost++
			}
		}
		for _, x := range tr.took {
			alone := x.sent.After(killed) && x.sent.Before(killed.Add(time.Second))
			if x.asked.rule == once && x.asked.value == w.Key && x.degraded == "owner_unreachable" && !alone {
				lost++
			}
		}
		got := w.Total
		t.Logf("%d of %d admitted of %v; %d calls were under way at an owner that died or was late", got, onceLimit, w.Window, lost)
		if got > onceLimit || got < onceLimit-strictHeadroom-lost {
			t.Errorf("%d admitted of %v, want at most %d and at least a headroom of %d less (and %d calls that got no answer)",
				got, w.Window, onceLimit, strictHeadroom, lost)
		}
	}
	if keys == 0 {
		t.Error("no key is used up once: the load proves nothing")
	}
}
