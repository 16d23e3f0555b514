package node

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

const everyAlgorithm = `
domain: edge
descriptors:
  - {key: fixed, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: sliding, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: sliding_window}}
  - {key: log, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: sliding_log}}
  - {key: token, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: token_bucket}}
  - {key: leaky, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: leaky_bucket}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: quota, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: paid, rate_limit: {unit: minute, requests_per_unit: 2, charge_denied: true}}
`

// sharded drives several nodes as the daemon does, without its locks.
type sharded struct{ nodes []*Node }

func (s sharded) decide(at Instant, f *Matcher, c *Call) error {
	if err := f.Resolve(c); err != nil {
		return err
	}
	for _, n := range s.nodes {
		n.Probe(at, c.Hits(), c.Statuses)
	}
	f.Decide(c)
	for _, n := range s.nodes {
		n.Charge(at, c.Hits(), c.Statuses)
	}
	return nil
}

func newSharded(t *rapid.T, shards int, at Instant, set *rules.Set) sharded {
	var s sharded
	for i := range shards {
		cfg := Default()
		cfg.Shard, cfg.Shards = i, shards
		n, err := New(cfg, rand.New(rand.NewPCG(uint64(i), 0)))
		if err != nil {
			t.Fatal(err)
		}
		n.SetRules(at, set)
		s.nodes = append(s.nodes, n)
	}
	return s
}

// answer is the answer to a call as its caller gets it.
type answer struct {
	Decision Decision
	Statuses []string
}

func answerOf(c *Call) answer {
	a := answer{Decision: c.Decision}
	for i := range c.Statuses {
		st := &c.Statuses[i]
		a.Statuses = append(a.Statuses, fmt.Sprint(
			st.Over, st.Remaining, st.Reset, st.Retry, st.Delay, st.Degraded, st.Unlimited))
	}
	return a
}

// The same calls get the same answers whatever the number of shards.
func TestShardsDoNotMatter(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, everyAlgorithm)
	keys := []string{"fixed", "sliding", "log", "token", "leaky", "shadow", "quota", "paid", "none"}
	rapid.Check(t, func(t *rapid.T) {
		one := newSharded(t, 1, r.instant(), r.front.Rules())
		many := newSharded(t, 16, r.instant(), r.front.Rules())
		at := r.instant()
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			gap := time.Duration(rapid.IntRange(0, 20_000).Draw(t, "gap")) * time.Millisecond
			at.Mono, at.Wall = at.Mono+gap, at.Wall+int64(gap)
			var a, b Call
			a.Domain, b.Domain = "edge", "edge"
			for range rapid.IntRange(1, 4).Draw(t, "descriptors") {
				d := rules.Descriptor{
					Hits: rapid.Uint64Range(0, 3).Draw(t, "hits"),
					Entries: []rules.Entry{{
						Key:   rapid.SampledFrom(keys).Draw(t, "key"),
						Value: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "value"),
					}},
				}
				a.Descriptors, b.Descriptors = append(a.Descriptors, d), append(b.Descriptors, d)
			}
			if err := one.decide(at, r.front, &a); err != nil {
				t.Fatal(err)
			}
			if err := many.decide(at, r.front, &b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(answerOf(&a), answerOf(&b)); diff != "" {
				t.Fatalf("1 shard and 16 disagree (-1 +16):\n%s", diff)
			}
		}
	})
}

// A denied call leaves every counter as it was, and an allowed one charges the
// hits of its statuses.
func TestAllOrNothing(t *testing.T) {
	keys := []string{"fixed", "sliding", "log", "token", "leaky"}
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, Default())
		r.put(t, everyAlgorithm)
		used := map[string]uint64{}
		for range rapid.IntRange(1, 30).Draw(rt, "calls") {
			var ds []string
			for range rapid.IntRange(1, 4).Draw(rt, "descriptors") {
				ds = append(ds, rapid.SampledFrom(keys).Draw(rt, "key")+"="+
					rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "value"))
			}
			hits := rapid.Uint64Range(1, 3).Draw(rt, "hits")
			want := map[string]uint64{}
			fits := true
			for _, d := range ds {
				want[d] += hits
				fits = fits && used[d]+want[d] <= 5
			}
			if err := r.ask("edge", hits, ds...); err != nil {
				rt.Fatal(err)
			}
			if r.call.Decision.Allowed != fits {
				rt.Fatalf("%v x %d on top of %v: allowed = %v", ds, hits, used, r.call.Decision.Allowed)
			}
			if fits {
				for d, n := range want {
					used[d] += n
				}
			}
			for d, n := range used {
				if err := r.ask("edge", 0, d); err != nil {
					rt.Fatal(err)
				}
				if got := r.call.Statuses[0].Remaining; got != 5-n {
					rt.Fatalf("%s: %d remain after %v, want %d", d, got, used, 5-n)
				}
			}
		}
	})
}

// When max_keys are live, expired keys are removed first. Then new keys share
// the overflow counter of their rule and are degraded, and tracked keys keep
// their counters.
func TestKeysAreBounded(t *testing.T) {
	cfg := Default()
	cfg.MaxKeys = 100
	r := newRig(t, cfg)
	r.put(t, everyAlgorithm)
	ask := func(d string) *Status {
		t.Helper()
		if err := r.ask("edge", 1, d); err != nil {
			t.Fatal(err)
		}
		return &r.call.Statuses[0]
	}
	for i := range 100 {
		if st := ask("fixed=" + strconv.Itoa(i)); st.Degraded != NotDegraded || st.Remaining != 4 {
			t.Fatalf("key %d: %+v", i, st)
		}
	}
	for i := range 5 {
		if st := ask("fixed=new" + strconv.Itoa(i)); st.Degraded != KeysFull || st.Over {
			t.Fatalf("new key %d: %+v", i, st)
		}
	}
	if st := ask("fixed=new9"); st.Degraded != KeysFull || !st.Over {
		t.Fatalf("the overflow counter passed a sixth: %+v", st)
	}
	if st := ask("sliding=new9"); st.Degraded != KeysFull || st.Over {
		t.Fatalf("the overflow counter of another rule is not its own: %+v", st)
	}
	if st := ask("fixed=7"); st.Degraded != NotDegraded || st.Remaining != 3 {
		t.Fatalf("a tracked key was forgotten: %+v", st)
	}
	r.mono += time.Minute // all of them have expired
	for i := range 100 {
		if st := ask("fixed=later" + strconv.Itoa(i)); st.Degraded != NotDegraded || st.Remaining != 4 {
			t.Fatalf("key %d after the window: %+v", i, st)
		}
	}
	s := r.node.Stats()
	if s.LiveKeys != 100 || s.OverflowKeys != 2 || s.Degraded[KeysFull] != 7 {
		t.Fatalf("stats %+v", s)
	}
	r.mono += 3 * time.Minute
	for range 3 {
		r.node.Tick(r.instant())
		r.mono += 100 * time.Millisecond
	}
	if s := r.node.Stats(); s.LiveKeys != 0 || s.OverflowKeys != 0 {
		t.Fatalf("expired keys stay: %+v", s)
	}
}

// A call whose own new keys fill the node does not sweep the cells that it
// has just found.
func TestSweepSparesTheCallsOwnKeys(t *testing.T) {
	cfg := Default()
	cfg.MaxKeys = 2
	r := newRig(t, cfg)
	r.put(t, everyAlgorithm)
	for _, d := range []string{"fixed=a", "fixed=b"} {
		if err := r.ask("edge", 1, d); err != nil {
			t.Fatal(err)
		}
	}
	r.mono += time.Minute
	if err := r.ask("edge", 1, "fixed=a", "fixed=c", "fixed=a", "fixed=d"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range r.call.Statuses {
		got = append(got, fmt.Sprint(r.call.Statuses[i].Remaining, r.call.Statuses[i].Degraded))
	}
	// a is found, b makes room for c, and for d there is none.
	if diff := cmp.Diff([]string{"4 ", "4 ", "3 ", "4 keys_full"}, got); diff != "" {
		t.Fatal(diff)
	}
}

// A decision on a live key allocates nothing, whatever the algorithm.
func TestTakeDoesNotAllocate(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, strings.ReplaceAll(everyAlgorithm, "requests_per_unit: 5", "requests_per_unit: 9000"))
	for _, key := range []string{"fixed", "sliding", "token", "leaky", "shadow", "quota", "paid", "none", "log"} {
		if err := r.ask("edge", 1, key+"=a", key+"=b"); err != nil {
			t.Fatal(err)
		}
		c := &r.call
		at := r.instant()
		got := testing.AllocsPerRun(1_000, func() {
			if err := r.front.Resolve(c); err != nil {
				t.Fatal(err)
			}
			r.node.Take(at, c.Hits(), c.Statuses)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations", key, got)
		}
	}
}

func TestMalformedCalls(t *testing.T) {
	entry := func(k, v string) []rules.Descriptor {
		return []rules.Descriptor{{Hits: 1, Entries: []rules.Entry{{Key: k, Value: v}}}}
	}
	long := strings.Repeat("x", MaxTextBytes+1)
	for _, tc := range []struct {
		domain string
		ds     []rules.Descriptor
		want   string
	}{
		{"", entry("k", "v"), "rate limit domain must not be empty"},
		{"d", nil, "rate limit descriptor list must not be empty"},
		{"d", make([]rules.Descriptor, 10_000), "10000 descriptors in one call, at most 256"},
		{"d", []rules.Descriptor{{}, {Entries: make([]rules.Entry, 33)}}, "descriptor 1: 33 entries, at most 32"},
		{"d", entry("k", long), "descriptor 0, entry 0: value is 4097 bytes long, at most 4096"},
		{"d", entry(long, "v"), "descriptor 0, entry 0: key is 4097 bytes long, at most 4096"},
		{long, entry("k", "v"), "domain is 4097 bytes long, at most 4096"},
		{"d", []rules.Descriptor{{Override: rules.Override{Unit: 99}}}, "descriptor 0: limit override with an unknown unit"},
	} {
		r := newRig(t, Default())
		err := r.front.Resolve(&Call{Domain: tc.domain, Descriptors: tc.ds})
		if err == nil || err.Error() != tc.want {
			t.Errorf("%q with %d descriptors: %v, want %s", tc.domain[:min(9, len(tc.domain))], len(tc.ds), err, tc.want)
		}
	}
}

func TestCheckText(t *testing.T) {
	entries := func(k, v string) []rules.Descriptor {
		return []rules.Descriptor{{}, {Entries: []rules.Entry{{Key: "a", Value: "b"}, {Key: k, Value: v}}}}
	}
	for _, tc := range []struct {
		call Call
		want string
	}{
		{Call{Domain: "d\xff"}, "domain is not valid UTF-8"},
		{Call{Domain: "d", Descriptors: entries("\xff", "v")}, "descriptor 1, entry 1: key is not valid UTF-8"},
		{Call{Domain: "d", Descriptors: entries("k", "\xff")}, "descriptor 1, entry 1: value is not valid UTF-8"},
	} {
		if err := tc.call.CheckText(); err == nil || err.Error() != tc.want {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
	good := Call{Domain: "d", Descriptors: entries("é", "日")}
	if err := good.CheckText(); err != nil {
		t.Error(err)
	}
}

// A call resolved before a reload and charged after it counts for the rule
// that took its rule's place.
func TestChargeAcrossAReload(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, everyAlgorithm)
	c := &Call{Domain: "edge", Descriptors: []rules.Descriptor{{Hits: 1, Entries: []rules.Entry{{Key: "token", Value: "a"}}}}}
	if err := r.front.Resolve(c); err != nil {
		t.Fatal(err)
	}
	r.put(t, "domain: edge\ndescriptors:\n  - {key: token, rate_limit: {unit: minute, requests_per_unit: 9}}")
	r.node.Take(r.instant(), c.Hits(), c.Statuses)
	var got []quota.Tally
	r.node.Tallies(func(_ *rules.Rule, t quota.Tally) { got = append(got, t) })
	if diff := cmp.Diff([]quota.Tally{{Allowed: 1, HitsWithin: 1, Offered: 1}, {Keys: 1}}, got); diff != "" {
		t.Fatal(diff)
	}
	r.put(t, everyAlgorithm) // and the entry it left does not confuse the next
	if err := r.ask("edge", 1, "token=a"); err != nil || !r.call.Decision.Allowed {
		t.Fatalf("%v, %+v", err, r.call.Decision)
	}
}

// A peek returns the answer that the call would get and changes nothing.
func TestPeekChargesNothing(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, everyAlgorithm)
	ask := func(peek bool, hits uint64) *Status {
		t.Helper()
		r.call = Call{Domain: "edge", Peek: peek, Descriptors: []rules.Descriptor{{
			Hits: hits, Entries: []rules.Entry{{Key: "paid", Value: "a"}},
		}}}
		if err := r.front.Resolve(&r.call); err != nil {
			t.Fatal(err)
		}
		r.node.Probe(r.instant(), r.call.Hits(), r.call.Statuses)
		r.front.Decide(&r.call)
		r.node.Charge(r.instant(), r.call.Hits(), r.call.Statuses)
		return &r.call.Statuses[0]
	}
	for range 3 {
		if st := ask(true, 2); st.Over || st.Remaining != 2 {
			t.Fatalf("a peek at an untouched key: %+v", st)
		}
		if st := ask(true, 3); !st.Over || st.Remaining != 2 {
			t.Fatalf("a peek beyond the limit: %+v", st)
		}
	}
	r.node.Tallies(func(_ *rules.Rule, tally quota.Tally) {
		if tally != (quota.Tally{}) {
			t.Fatalf("peeks were tallied: %+v", tally)
		}
	})
	if st := ask(false, 2); st.Over || st.Remaining != 0 {
		t.Fatalf("the call after the peeks: %+v", st)
	}
}
