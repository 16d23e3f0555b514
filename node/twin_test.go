package node

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// rotation is a cluster that replaces its secret: the daemons hash with the
// former one, with both, and with the next one.
type rotation struct {
	*cluster
	fronts [3]*Matcher
	phase  []int // by daemon

	until int64           // HashesUntil of both
	limit *rules.Limit    // of the only rule
	hits  []time.Duration // admitted ones
}

func newRotation(t testing.TB, rule string) *rotation {
	r := &rotation{cluster: rightsCluster(t, rule, "a1", "a2", "b1")}
	set, former, next := r.front.Rules(), rules.NewHasher([rules.SecretBytes]byte{1}), rules.NewHasher([rules.SecretBytes]byte{2})
	r.fronts = [3]*Matcher{
		NewMatcher(set, former, MatcherOptions{}), NewMatcher(set, former, MatcherOptions{Next: &NextSecret{Hasher: next}}), NewMatcher(set, next, MatcherOptions{}),
	}
	r.phase, r.limit = make([]int, len(r.daemons)), set.Rules()[0].Limit
	return r
}

// advance has a daemon take the next step, if it may.
func (r *rotation) advance(i int) {
	now := r.daemons[i].node.millis(r.daemons[i].instant(r.now))
	for _, p := range r.phase {
		if r.phase[i] == 1 && (p == 0 || now < r.until) {
			return
		}
	}
	if r.phase[i] == 2 {
		return
	}
	r.phase[i]++
	for _, p := range r.phase {
		if p != 1 {
			return
		}
	}
	r.until = HashesUntil(r.limit, now)
}

// ask makes a call at a daemon.
func (r *rotation) ask(t testing.TB, i int, call *Call) {
	r.front = r.fronts[r.phase[i]]
	r.cluster.ask(t, r.daemons[i], call, "k=v")
	if call.Join(); len(call.Statuses) != 1 || len(call.Hits()) != 1 {
		t.Fatalf("%d statuses and %d hits of one descriptor", len(call.Statuses), len(call.Hits()))
	}
	if call.Decision.Allowed {
		r.hits = append(r.hits, r.now)
	}
}

// check fails if more was admitted in a window, or of a bucket by an instant,
// than the limit allows.
func (r *rotation) check(t testing.TB) {
	l := r.limit
	window := time.Duration(l.Window()) * time.Millisecond
	for i, from := range r.hits {
		admitted := 0
		for _, at := range r.hits[i:] {
			inside := at-from < window
			if l.Algorithm == rules.FixedWindow || l.Algorithm == rules.SlidingWindow {
				inside = at/window == from/window
			}
			if inside {
				admitted++
			}
			most := int(l.Requests)
			if l.Algorithm.Bucket() {
				most = int(l.Burst) + 1 + int((at-from)*time.Duration(l.Requests)/window)
			}
			if admitted > most {
				t.Fatalf("%d hits admitted from %v to %v, want at most %d", admitted, from, at, most)
			}
		}
	}
}

// TestNewSecret: no limit is exceeded while daemons replace the secret, each at
// a time of its own.
func TestNewSecret(t *testing.T) {
	for _, rule := range []string{
		"unit: minute, requests_per_unit: 30, overage_budget: 0%",
		"unit: minute, requests_per_unit: 30, consistency: partition",
		"unit: minute, requests_per_unit: 30, algorithm: sliding_window, overage_budget: 0%",
		"unit: minute, requests_per_unit: 30, algorithm: sliding_log, overage_budget: 0%",
		"unit: minute, requests_per_unit: 30, burst: 20, algorithm: token_bucket, overage_budget: 0%",
		"unit: minute, requests_per_unit: 30, algorithm: leaky_bucket, consistency: partition",
	} {
		t.Run(rule, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				r := newRotation(t, rule)
				var call Call
				for range rapid.IntRange(10, 60).Draw(rt, "steps") {
					i := rapid.IntRange(0, len(r.daemons)-1).Draw(rt, "daemon")
					if rapid.IntRange(0, 2).Draw(rt, "step") == 0 {
						r.advance(i)
						continue
					}
					for range rapid.SampledFrom([]int{1, 5, 30}).Draw(rt, "calls") {
						r.ask(t, i, &call)
					}
					r.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 20 * time.Second, 65 * time.Second}).Draw(rt, "pass"))
				}
				r.check(t)
			})
		})
	}
}

// BenchmarkTwoSecrets decides calls while hits count under one secret and under
// two.
func BenchmarkTwoSecrets(b *testing.B) {
	r := newRotation(b, "unit: minute, requests_per_unit: 1000000000")
	for phase, name := range []string{"one", "two"} {
		b.Run(name, func(b *testing.B) {
			d, f, at := r.daemons[0], r.fronts[phase], r.daemons[0].instant(r.now)
			call := &Call{Domain: "d", Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: "k", Value: "v"}}, Hits: 1}}}
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Resolve(call); err != nil {
					b.Fatal(err)
				}
				d.node.Probe(at, call.Hits(), call.Statuses)
				f.Decide(call)
				d.node.Charge(at, call.Hits(), call.Statuses)
				call.Join()
			}
			if call.Statuses[0].Limit == nil {
				b.Fatal("nothing limits the call")
			}
		})
	}
}
