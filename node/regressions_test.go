package node

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// These tests replay ways by which a limit was once exceeded or a count lost.

// must asks and returns the only status.
func (r *rig) must(t testing.TB, hits uint64, d string) *Status {
	t.Helper()
	if err := r.ask("edge", hits, d); err != nil {
		t.Fatal(err)
	}
	return &r.call.Statuses[0]
}

// admit asks n times for one hit and returns how many passed.
func (r *rig) admit(t testing.TB, n int, d string) int {
	t.Helper()
	passed := 0
	for range n {
		if r.must(t, 1, d); r.call.Decision.Allowed {
			passed++
		}
	}
	return passed
}

// override asks for one hit under a limit that comes with the request.
func (r *rig) override(t testing.TB, key, value string, o rules.Override) *Status {
	t.Helper()
	return r.overrideHits(t, key, value, o, 1)
}

// overrideHits asks for some hits under a limit that comes with the request.
func (r *rig) overrideHits(t testing.TB, key, value string, o rules.Override, hits uint64) *Status {
	t.Helper()
	r.call = Call{Domain: "edge", Descriptors: []rules.Descriptor{{
		Hits: hits, Override: o, Entries: []rules.Entry{{Key: key, Value: value}},
	}}}
	if err := r.front.Resolve(&r.call); err != nil {
		t.Fatal(err)
	}
	r.node.Take(r.instant(), r.call.Hits(), r.call.Statuses)
	return &r.call.Statuses[0]
}

// A key that was counted in an overflow counter keeps its hits when there is
// room for it, for each algorithm.
func TestRoomDoesNotForgetOverflow(t *testing.T) {
	for _, key := range []string{"fixed", "sliding", "log", "token", "leaky"} {
		t.Run(key, func(t *testing.T) {
			cfg := Default()
			cfg.MaxKeys = 10
			r := newRig(t, cfg)
			r.put(t, everyAlgorithm+"  - {key: filler, rate_limit: {unit: second, requests_per_unit: 1}}\n")
			for i := range 10 {
				r.must(t, 1, fmt.Sprint("filler=", i))
			}
			if got := r.admit(t, 20, key+"=new"); got != 5 {
				t.Fatalf("%d of 5 passed through the overflow counter", got)
			}
			r.mono += time.Second // the fillers have expired
			if got := r.admit(t, 20, key+"=new"); got != 0 {
				t.Fatalf("%d more passed once there was room", got)
			}
			if st := r.must(t, 1, key+"=new"); st.Degraded != KeysFull {
				t.Fatalf("the answer does not say that it is inexact: %+v", st)
			}
			if got := r.admit(t, 20, key+"=other"); got != 5 {
				t.Fatalf("%d of 5 passed for a key that was never asked for", got)
			}
		})
	}
}

// With far fewer keys than users, and keys that come and go, no user ever
// gets more than the limit.
func TestFewKeysNeverExceedALimit(t *testing.T) {
	keys := []string{"fixed", "log", "token", "leaky"}
	minute := int64(time.Minute / time.Millisecond)
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Default()
		cfg.MaxKeys = rapid.IntRange(1, 4).Draw(rt, "max_keys")
		r := newRig(t, cfg)
		r.put(t, everyAlgorithm)
		passed := map[string][]int64{}
		for range rapid.IntRange(1, 80).Draw(rt, "calls") {
			r.mono += time.Duration(rapid.IntRange(0, 9_000).Draw(rt, "gap")) * time.Millisecond
			d := rapid.SampledFrom(keys).Draw(rt, "key") + "=" + rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "user")
			if r.admit(t, 1, d) == 1 {
				passed[d] = append(passed[d], scriptEpoch+r.mono.Milliseconds())
			}
			if rapid.IntRange(0, 9).Draw(rt, "tick") == 0 {
				r.node.Tick(r.instant())
			}
		}
		for d, at := range passed {
			for i, from := range at {
				for j, to := range at[i:] {
					n, most := int64(j+1), int64(math.MaxInt64)
					switch {
					case d[0] == 'f' && from/minute == to/minute, d[:3] == "log" && to-from < minute:
						most = 5
					case d[0] == 't', d[:2] == "le":
						most = 5 + (to-from)*5/minute + 1
					}
					if n > most {
						rt.Fatalf("%s: %d passed within %d ms", d, n, to-from)
					}
				}
			}
		}
	})
}

const minuteRule = "domain: edge\ndescriptors:\n  - {key: k, rate_limit: {unit: minute, requests_per_unit: %d, algorithm: %s}}\n"

// A rule may change its kind and come back: its counts are still there.
func TestReloadThereAndBack(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log"} {
		r := newRig(t, Default())
		r.put(t, fmt.Sprintf(minuteRule, 5, algorithm))
		r.admit(t, 5, "k=a")
		r.put(t, fmt.Sprintf(minuteRule, 5, "token_bucket"))
		r.put(t, fmt.Sprintf(minuteRule, 6, "token_bucket"))
		r.put(t, fmt.Sprintf(minuteRule, 5, algorithm))
		if got := r.admit(t, 5, "k=a"); got != 0 {
			t.Errorf("%s: %d more passed", algorithm, got)
		}
		r.mono += 2 * time.Minute
		if got := r.admit(t, 9, "k=a"); got != 5 {
			t.Errorf("%s: %d of 5 passed two windows later", algorithm, got)
		}
	}
}

// A bucket drains at the rate it was charged under until its limit changes, and
// at the new one from there, for any rule.
func TestBucketsChangeTheirRateInTime(t *testing.T) {
	const hourly = "domain: edge\ndescriptors:\n" +
		"  - {key: token, rate_limit: {unit: hour, requests_per_unit: 1, algorithm: token_bucket, burst: 100}}\n"
	r := newRig(t, Default())
	r.put(t, hourly)
	r.must(t, 100, "token=bob")
	r.mono += time.Hour
	r.put(t, hourly+"  - {key: token, value: bob, "+
		"rate_limit: {unit: hour, requests_per_unit: 60, algorithm: token_bucket, burst: 100}}\n")
	if got := r.admit(t, 100, "token=bob"); got != 1 {
		t.Fatalf("%d passed after an hour of one an hour", got)
	}
	r.mono += time.Minute
	if got := r.admit(t, 100, "token=bob"); got != 1 {
		t.Fatalf("%d passed after a minute of 60 an hour", got)
	}

	// A reload counts from its own instant, not from the last call's.
	fast := "domain: edge\ndescriptors:\n  - {key: k, rate_limit: " +
		"{unit: minute, requests_per_unit: %d, algorithm: token_bucket, burst: 100000}}\n"
	r = newRig(t, Default())
	r.put(t, fmt.Sprintf(fast, 60))
	r.must(t, 100_000, "k=a")
	r.mono += 99 * time.Millisecond
	r.put(t, fmt.Sprintf(fast, 6_000_000))
	if st := r.must(t, 0, "k=a"); st.Remaining != 0 {
		t.Fatalf("%d tokens at the instant of the reload", st.Remaining)
	}
}

// An override that shares a rule's counter neither shortens its window nor
// removes its debt.
func TestOverridesKeepTheRulesCounter(t *testing.T) {
	big := rules.Override{Requests: 1_000, Unit: rules.Minute}
	r := newRig(t, Default())
	r.put(t, fmt.Sprintf(minuteRule, 5, "sliding_window"))
	r.mono = 59 * time.Second
	r.admit(t, 5, "k=a")
	if st := r.override(t, "k", "a", big); st.Remaining != 994 {
		t.Fatalf("%d remain of the override, want 994: one counter", st.Remaining)
	}
	r.mono += 1_100 * time.Millisecond
	r.node.Tick(r.instant())
	if got := r.admit(t, 5, "k=a"); got != 0 {
		t.Fatalf("%d passed a second after six", got)
	}

	r = newRig(t, Default())
	r.put(t, "domain: edge\ndescriptors:\n  - {key: k, rate_limit: "+
		"{unit: minute, requests_per_unit: 5, carry_debt: true, charge_denied: true}}\n")
	r.must(t, 20, "k=a")
	r.mono += time.Minute
	r.override(t, "k", "a", big)
	if st := r.must(t, 0, "k=a"); !st.Over {
		t.Fatalf("the debt of 15 is gone: %+v", st)
	}
}

// A call without hits, whose override is below what is used, needs no rule with
// a window: neither one that is missing nor an unlimited one.
func TestOverrideBelowUse(t *testing.T) {
	for key, limits := range map[string]string{
		"missing":   "domain: edge\ndescriptors:\n  - {key: other}\n",
		"unlimited": "domain: edge\ndescriptors:\n  - {key: k, rate_limit: {unlimited: true}}\n",
	} {
		r := newRig(t, Default())
		r.put(t, limits)
		r.overrideHits(t, "k", "a", rules.Override{Requests: 10, Unit: rules.Minute}, 6)
		if st := r.overrideHits(t, "k", "a", rules.Override{Requests: 5, Unit: rules.Minute}, 0); !st.Over || st.Gate != EstimateGate {
			t.Errorf("with a rule that is %s: %+v, want over the limit by the estimate", key, st)
		}
	}
}

// A key that is new and stands in a call twice is reported on as it is then.
func TestReportsOnARepeatedNewKey(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, everyAlgorithm)
	c := &Call{Domain: "edge"}
	for _, hits := range []uint64{3, 0} {
		c.Descriptors = append(c.Descriptors, rules.Descriptor{
			Hits: hits, Entries: []rules.Entry{{Key: "fixed", Value: "a"}},
		})
	}
	if err := r.front.Resolve(c); err != nil {
		t.Fatal(err)
	}
	r.node.Take(r.instant(), c.Hits(), c.Statuses)
	if a, b := c.Statuses[0].Remaining, c.Statuses[1].Remaining; a != 2 || b != 2 {
		t.Fatalf("%d and %d remain of 5 after 3, want 2 and 2", a, b)
	}
}

// Hits of any size leave the tallies growing, and a denied call returns no
// delay.
func TestHostileHits(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, everyAlgorithm)
	last := uint64(0)
	for range 3 {
		if st := r.must(t, math.MaxUint64, "leaky=a"); !st.Never || st.Retry != 0 {
			t.Fatalf("%+v", st)
		}
		over := uint64(0)
		r.node.Tallies(func(_ *rules.Rule, t quota.Tally) { over += t.HitsOver })
		if over <= last {
			t.Fatalf("the count of hits over went from %d to %d", last, over)
		}
		last = over
	}
	r.admit(t, 3, "leaky=a")
	if err := r.ask("edge", 2, "leaky=a", "fixed=a", "fixed=a", "fixed=a"); err != nil {
		t.Fatal(err)
	}
	if st := &r.call.Statuses[0]; r.call.Decision.Allowed || st.Over || st.Delay != 0 {
		t.Fatalf("a refused call: %+v, %+v", r.call.Decision, st)
	}
}

// Keys that count on the grid of an override expire, and make room for others.
func TestOverridesExpire(t *testing.T) {
	cfg := Default()
	cfg.MaxKeys = 10
	r := newRig(t, cfg)
	r.put(t, everyAlgorithm)
	for i := range 10 {
		if st := r.override(t, "fixed", fmt.Sprint(i), rules.Override{Unit: rules.Second, Requests: 5}); st.Degraded != NotDegraded {
			t.Fatalf("key %d is degraded: %v", i, st.Degraded)
		}
	}
	r.mono += 3 * time.Second
	if st := r.must(t, 1, "fixed=new"); st.Degraded != NotDegraded {
		t.Errorf("no room is left for a key: %v", st.Degraded)
	}
}

// Hits with a limit of their own count for the sliding rule of their key, also
// in the window after their own.
func TestOverridesOfASlidingRuleLast(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, everyAlgorithm)
	for range 20 {
		r.override(t, "sliding", "x", rules.Override{Unit: rules.Minute, Requests: 100})
	}
	r.mono += time.Minute
	r.node.Tick(r.instant())
	if st := r.must(t, 1, "sliding=x"); !st.Over {
		t.Errorf("20 hits of the window before are forgotten: %+v", st)
	}
}

// A limit of each daemon alone counts no hits of a daemon whose rules count the
// key together still, and rules that are read again do not make it forget.
func TestLimitOfDaemonAloneBesideSharedOne(t *testing.T) {
	for i, algorithm := range rules.Algorithms() {
		others := []int{7, 1}[i%2]
		t.Run(algorithm, func(t *testing.T) {
			limit := "{unit: hour, requests_per_unit: 10, algorithm: " + algorithm
			c := newCluster(t, limit+"}", "a1", "a2")
			shared, front := c.set, c.front
			a2 := c.find(t, "a2")
			c.put(t, "domain: d\ndescriptors:\n  - key: user\n    rate_limit: "+limit+", scope: node}\n")
			a1 := c.find(t, "a1")
			a1.node.SetRules(a1.instant(c.now), shared)
			if got := c.admit(t, "a2", 6); got != 6 {
				t.Fatalf("a2 admits %d of 6", got)
			}
			front, c.front = c.front, front
			if got := c.admit(t, "a1", others); got != others {
				t.Fatalf("a1 admits %d of %d", got, others)
			}
			c.pass(2 * time.Second)
			c.front = front
			a2.node.SetRules(a2.instant(c.now), c.set)
			if got := c.admit(t, "a2", 20); got != 4 {
				t.Errorf("a2 admits %d more, want 4 of its 10", got)
			}
		})
	}
}

// Hits of calls that brought a limit with fixed windows count for a sliding
// window that is put in force later, in the window after theirs, too.
func TestOverridesCountForLaterSlidingWindows(t *testing.T) {
	const rule = "domain: d\ndescriptors:\n  - key: user\n    rate_limit: {unit: hour, requests_per_unit: 10, algorithm: sliding_window}\n"
	c := newCluster(t, tenAMinute, "a1", "a2")
	c.put(t, rule)
	h := []Hit{{Key: testKeyOf(c, t), Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 10}, N: 8}}
	c.put(t, "domain: d\ndescriptors:\n  - key: user\n    rate_limit: {unit: minute, requests_per_unit: 10, algorithm: token_bucket}\n")
	a1 := c.find(t, "a1")
	a1.node.Take(a1.instant(c.now), h, []Status{{Limit: h[0].Limit}})
	c.drain(a1)
	c.pass(time.Second)
	c.put(t, rule)
	for _, d := range c.daemons {
		if got := c.remaining(t, d.name, "user=override"); got != 2 {
			t.Errorf("%s has %d left, want 2", d.name, got)
		}
	}
	c.pass(time.Hour - time.Duration(a1.instant(c.now).Wall)%time.Hour)
	for range 60 { // cells that ended are dropped
		c.pass(2 * time.Second)
	}
	for _, d := range c.daemons {
		if got := c.remaining(t, d.name, "user=override"); got != 2 {
			t.Errorf("%s has %d left in the next window, want 2", d.name, got)
		}
	}
}
