package node

import (
	"slices"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/rules"
)

// TestReplacedLimits: every limit that matched replaces those that it names,
// whatever the order of the descriptors, also one that is unlimited or is
// replaced itself.
func TestReplacedLimits(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, `
domain: edge
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 5, name: a, replaces: [{name: b}]}}
  - {key: b, rate_limit: {unit: minute, requests_per_unit: 0, name: b, replaces: [{name: c}]}}
  - {key: c, rate_limit: {unit: minute, requests_per_unit: 0, name: c}}
  - {key: free, rate_limit: {unlimited: true, replaces: [{name: c}]}}
`)
	for _, tt := range []struct {
		call    []string
		allowed bool
	}{
		{[]string{"a=1", "b=1"}, true},
		{[]string{"b=1", "c=1"}, false},
		{[]string{"a=1", "c=1"}, false},
		{[]string{"a=1", "b=1", "c=1"}, true},
		{[]string{"c=1", "a=1", "b=1"}, true},
		{[]string{"c=1", "b=1", "a=1"}, true},
		{[]string{"free=1", "c=1"}, true},
		{[]string{"c=1", "free=1"}, true},
		{[]string{"free=1", "b=1"}, false},
	} {
		if err := r.ask("edge", 1, tt.call...); err != nil || r.call.Decision.Allowed != tt.allowed {
			t.Errorf("%v: %v, %+v", tt.call, err, r.call.Decision)
		}
	}
}

// TestSeveralQuotas: a call is denied when all of its quotas are over, and one
// that is over counts nothing.
func TestSeveralQuotas(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, `
domain: edge
descriptors:
  - {key: small, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: large, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: sliding_log}}
`)
	var allowed []bool
	for range 7 {
		if err := r.ask("edge", 1, "small=1", "large=1"); err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, r.call.Decision.Allowed)
	}
	if want := []bool{true, true, true, true, true, false, false}; !slices.Equal(allowed, want) {
		t.Errorf("allowed %v, want %v", allowed, want)
	}
	for i := range r.call.Statuses {
		if e := r.node.Explain(r.instant(), &r.call.Hits()[i]); e.Used != []uint64{2, 5}[i] {
			t.Errorf("quota %d counts %+v", i, e)
		}
	}
}

// TestBlockedKeys: each call of a blocked key is denied, whatever its limit,
// and charges nothing. Other keys are not touched. It does not allocate.
func TestBlockedKeys(t *testing.T) {
	r := newRig(t, Default())
	r.put(t, everyAlgorithm)
	for _, key := range []string{"fixed", "sliding", "token", "leaky", "shadow", "quota", "paid", "log"} {
		t.Run(key, func(t *testing.T) {
			for i, other := range []MatcherOptions{{}, {AllQuotas: true, ChargeDenied: true}} {
				r.front = NewMatcher(r.front.Rules(), r.front.hasher, MatcherOptions{AllQuotas: other.AllQuotas, ChargeDenied: other.ChargeDenied})
				if err := r.ask("edge", 1, key+"=a"); err != nil || !r.call.Decision.Allowed {
					t.Fatalf("before: %v, %+v", err, r.call.Decision)
				}
				was := r.node.Explain(r.instant(), &r.call.Hits()[0]).Used
				other.Blocked = map[crdt.Key]bool{r.call.Hits()[0].Key: true}
				r.front = NewMatcher(r.front.Rules(), r.front.hasher, other)
				if err := r.ask("edge", 1, key+"=b", key+"=a"); err != nil || r.call.Decision.Allowed || r.call.Decision.Refused != 1 || !r.call.Statuses[1].Blocked {
					t.Fatalf("blocked: %v, %+v", err, r.call.Decision)
				}
				if is := r.node.Explain(r.instant(), &r.call.Hits()[1]).Used; is != was {
					t.Errorf("%d hits after the denied call, %d before", is, was)
				}
				if err := r.ask("edge", 1, key+[]string{"=c", "=d"}[i]); err != nil || !r.call.Decision.Allowed || r.call.Statuses[0].Blocked {
					t.Errorf("another key: %v, %+v", err, r.call.Decision)
				}
				c, at := &r.call, r.instant()
				c.Descriptors = append(c.Descriptors, c.Descriptors[0])
				c.Descriptors[1].Entries = []rules.Entry{{Key: key, Value: "a"}}
				c.Descriptors[1].Override = rules.Override{Requests: 9, Unit: rules.Second} // of another grid: another key
				if err := r.front.Resolve(c); err != nil {
					t.Fatal(err)
				}
				other.Blocked[c.Hits()[1].Key] = true
				if got := testing.AllocsPerRun(100, func() {
					_ = r.front.Resolve(c)
					r.node.Take(at, c.Hits(), c.Statuses)
				}); got != 0 || !c.Statuses[1].Blocked {
					t.Errorf("%v allocations, blocked %t", got, c.Statuses[1].Blocked)
				}
			}
		})
	}
}

// TestKeyReset: a key that was reset has its limit once more in the window of
// the reset, and the former key counts from the next window start on that no
// hit of either reaches.
func TestKeyReset(t *testing.T) {
	const minute = 60_000
	for _, tc := range []struct {
		name string
		l    rules.Limit
		end  int64
	}{
		{"fixed window", rules.Limit{}, minute},
		{"fixed window with debt", rules.Limit{CarryDebt: true}, 2 * minute},
		{"sliding window", rules.Limit{Algorithm: rules.SlidingWindow}, 2 * minute},
		{"log", rules.Limit{Algorithm: rules.SlidingLog}, 2 * minute},
		{"bucket", rules.Limit{Algorithm: rules.TokenBucket, Burst: 2}, 2 * minute},
		{"bucket of five minutes", rules.Limit{Algorithm: rules.TokenBucket, Burst: 10}, 6 * minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := tc.l
			l.Unit, l.Multiplier, l.Requests = rules.Minute, 1, 2
			set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{{Key: "user", Limit: &l}}}})
			if err != nil {
				t.Fatal(err)
			}
			h := rules.NewHasher([16]byte{7})
			c := &Call{Domain: "edge", Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: "user", Value: "ann"}}, Hits: 1}}}
			resolve := func(f *Matcher, now int64) crdt.Key {
				t.Helper()
				if err := f.Resolve(c); err != nil {
					t.Fatal(err)
				}
				if c.HasResets() {
					f.ResetKeys(c, now)
				}
				return c.Hits()[0].Key
			}
			key := resolve(NewMatcher(set, h, MatcherOptions{}), 0)
			for _, from := range []int64{0, 1, minute - 1} {
				to := h.Derived(key, "7")
				f := NewMatcher(set, h, MatcherOptions{Resets: map[crdt.Key]KeyReset{key: {To: to, From: from}}})
				for _, now := range []int64{from, minute - 1, tc.end - 1} {
					if got := resolve(f, now); got != to || c.Statuses[0].ResetAt != from || f.Original(got) != key {
						t.Errorf("reset at %d: %v at %d, reset at %d, want %v", from, got, now, c.Statuses[0].ResetAt, to)
					}
				}
				if got := resolve(f, tc.end); got != key || c.Statuses[0].ResetAt != 0 {
					t.Errorf("reset at %d: %v at %d, want %v again", from, got, tc.end, key)
				}
			}
			if a, b := h.Derived(key, "7"), h.Derived(key, "8"); a == b || a == key {
				t.Errorf("resets have the keys %v and %v", a, b)
			}
		})
	}
}
