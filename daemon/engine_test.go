package daemon

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

func newEngine(tb testing.TB, maxKeys int, children ...rules.Node) *Engine {
	tb.Helper()
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: children}})
	if err != nil {
		tb.Fatal(err)
	}
	e, err := NewEngine(EngineConfig{Node: node.Default(), MaxKeys: maxKeys})
	if err != nil {
		tb.Fatal(err)
	}
	e.SetRules(set, node.MatcherOptions{})
	return e
}

func descriptor(hits uint64, key, value string) rules.Descriptor {
	return rules.Descriptor{Hits: hits, Entries: []rules.Entry{{Key: key, Value: value}}}
}

// herd runs one function in many goroutines at once.
func herd(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// A hundred goroutines call with the same key at one frozen instant, for each
// algorithm and number of shards: exactly the limit is admitted. The instants
// are at the start, in the middle and at the end of a window and of a step.
func TestExactlyTheLimitPasses(t *testing.T) {
	for _, algorithm := range []rules.Algorithm{
		rules.FixedWindow, rules.SlidingWindow, rules.SlidingLog, rules.TokenBucket, rules.LeakyBucket,
	} {
		for _, shards := range []int{1, 2, 16, 64} {
			t.Run(fmt.Sprintf("%v/%d", algorithm, shards), func(t *testing.T) {
				l := &rules.Limit{
					Algorithm: algorithm, Unit: rules.Minute, Multiplier: 1, Requests: 1_000, Burst: 1_000,
				}
				e := newEngineOf(t, shards, rules.Node{Key: "user", Limit: l}, rules.Node{
					Key:   "other",
					Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 1 << 30},
				})
				base := time.Unix(1_767_225_600, 0).UnixNano()
				for i, into := range []time.Duration{0, 31_234 * time.Millisecond, 59_999_999_999} {
					at := node.Instant{Mono: into, Wall: base + int64(into)}
					if got := admit(t, e, at, fmt.Sprint("user", i)); got != 1_000 {
						t.Fatalf("%d of 2000 passed at %v, want 1000", got, into)
					}
				}
			})
		}
	}
}

func newEngineOf(t *testing.T, shards int, children ...rules.Node) *Engine {
	t.Helper()
	e := newEngine(t, 1_000_000, children...)
	c := EngineConfig{Node: node.Default(), MaxKeys: 1_000_000, Shards: shards}
	sized, err := NewEngine(c)
	if err != nil {
		t.Fatal(err)
	}
	sized.SetRules(e.Rules(), node.MatcherOptions{})
	return sized
}

// admit lets a hundred goroutines request 2,000 hits of one user, together with
// a descriptor of another that keeps further shards busy.
func admit(t *testing.T, e *Engine, at node.Instant, user string) int64 {
	var passed atomic.Int64
	herd(100, func(i int) {
		var c node.Call
		for j := range 20 {
			c.Reset()
			c.Domain = "edge"
			c.Descriptors = append(c.Descriptors,
				descriptor(1, "user", user), descriptor(1, "other", fmt.Sprint(i, j)))
			if err := e.CheckAt(at, &c); err != nil {
				t.Error(err)
			}
			if c.Decision.Allowed {
				passed.Add(1)
			}
		}
	})
	return passed.Load()
}

// Calls with several keys in every order neither deadlock nor charge a parent
// for a denied child.
func TestConcurrentCallsAreAllOrNothing(t *testing.T) {
	minute := func(n uint32) *rules.Limit { return &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: n} }
	e := newEngineOf(t, 64,
		rules.Node{Key: "global", Limit: minute(1 << 20)},
		rules.Node{Key: "org", Limit: minute(1 << 20)},
		rules.Node{Key: "api_key", Limit: minute(10)},
	)
	at := e.Now()
	var passed atomic.Int64
	herd(50, func(i int) {
		var c node.Call
		for j := range 100 {
			c.Reset()
			c.Domain = "edge"
			ds := []rules.Descriptor{
				descriptor(1, "global", "all"),
				descriptor(1, "org", fmt.Sprint(j%7)),
				descriptor(1, "api_key", fmt.Sprint(j%20)),
			}
			turn := (i + j) % 3
			c.Descriptors = append(append(c.Descriptors, ds[turn:]...), ds[:turn]...)
			if err := e.CheckAt(at, &c); err != nil {
				t.Error(err)
			}
			if c.Decision.Allowed {
				passed.Add(1)
			}
		}
	})
	if got := passed.Load(); got != 200 {
		t.Fatalf("%d calls passed, want 10 for each of 20 keys", got)
	}
	var c node.Call
	c.Domain = "edge"
	c.Descriptors = append(c.Descriptors, descriptor(0, "global", "all"))
	if err := e.CheckAt(at, &c); err != nil {
		t.Fatal(err)
	}
	if used := uint64(1<<20) - c.Statuses[0].Remaining; used != 200 {
		t.Fatalf("%d hits on the parent of 200 admitted children", used)
	}
}

// Reloads during calls lose no count.
func TestReloadUnderLoad(t *testing.T) {
	limit := func(n uint32) rules.Node {
		return rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: n}}
	}
	e := newEngineOf(t, 64, limit(1_000))
	other := newEngineOf(t, 1, limit(1_500))
	at := e.Now()
	stop := make(chan struct{})
	var flips sync.WaitGroup
	flips.Go(func() {
		sets := []*rules.Set{other.Rules(), e.Rules()}
		for i := 0; ; i++ {
			select {
			case <-stop:
				e.SetRules(other.Rules(), node.MatcherOptions{})
				return
			default:
				e.SetRules(sets[i%2], node.MatcherOptions{})
			}
		}
	})
	first := admit(t, e, at, "ann")
	close(stop)
	flips.Wait()
	if total := first + admit(t, e, at, "ann"); total != 1_500 {
		t.Fatalf("%d passed under limits of 1000 and 1500, want 1500", total)
	}
	var allowed uint64
	e.Tallies(func(_, _ string, t quota.Tally) { allowed += t.Allowed })
	if allowed != 1_500 {
		t.Fatalf("%d tallied as allowed, want 1500", allowed)
	}
}

// During a reload a shard does not read its buckets at the new rate before the
// reload reaches it.
func TestReloadUnderWayHandsOutNothing(t *testing.T) {
	bucket := func(perHour uint32) rules.Node {
		return rules.Node{Key: "user", Limit: &rules.Limit{
			Algorithm: rules.TokenBucket, Unit: rules.Hour, Multiplier: 1, Requests: perHour, Burst: 100,
		}}
	}
	e, faster := newEngineOf(t, 64, bucket(1)), newEngineOf(t, 1, bucket(60))
	at := node.Instant{Wall: e.Now().Wall}
	ask := func(at node.Instant, n int) (passed int) {
		var c node.Call
		for range n {
			c.Reset()
			c.Domain = "edge"
			c.Descriptors = append(c.Descriptors, descriptor(1, "user", "bob"))
			if err := e.CheckAt(at, &c); err != nil {
				t.Fatal(err)
			}
			if c.Decision.Allowed {
				passed++
			}
		}
		return passed
	}
	if got := ask(at, 101); got != 100 {
		t.Fatalf("%d of a burst of 100 passed", got)
	}
	later := node.Instant{Mono: time.Hour, Wall: at.Wall + int64(time.Hour)}
	e.shards[0].mu.Lock() // the reload waits here, and the matcher has the new rules
	reloaded := make(chan struct{})
	go func() {
		e.SetRules(faster.Rules(), node.MatcherOptions{})
		close(reloaded)
	}()
	for e.Rules() != faster.Rules() {
		runtime.Gosched()
	}
	if got := ask(later, 100); got != 1 {
		t.Errorf("%d passed after an hour of one an hour", got)
	}
	e.shards[0].mu.Unlock()
	<-reloaded
}

// Counts never fall: Prometheus would take a fall for a restart and count
// everything again.
func TestTalliesNeverFall(t *testing.T) {
	e := newEngineOf(t, 64, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1 << 30}})
	other := newEngineOf(t, 1, rules.Node{Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1 << 29}})
	at := e.Now()
	for i := range 200 {
		c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "user", fmt.Sprint(i))}}
		if err := e.CheckAt(at, &c); err != nil {
			t.Fatal(err)
		}
	}
	sets := []*rules.Set{other.Rules(), e.Rules()}
	herd(2, func(g int) {
		for i := range 500 {
			if g == 0 {
				e.SetRules(sets[i%2], node.MatcherOptions{})
				continue
			}
			sum := uint64(0)
			e.Tallies(func(_, _ string, t quota.Tally) { sum += t.Allowed })
			if sum != 200 {
				t.Errorf("%d of 200 were read", sum)
				return
			}
		}
	})
}

func TestWrongNumbersOfShards(t *testing.T) {
	for _, n := range []int{-1, 3, 128} {
		if _, err := NewEngine(EngineConfig{Node: node.Default(), MaxKeys: 100, Shards: n}); err == nil {
			t.Errorf("%d shards are accepted", n)
		}
	}
}

// The bound on keys is split over the shards without a remainder.
func TestMaxKeysIsSplitExactly(t *testing.T) {
	for _, maxKeys := range []int{1, 63, 1_000, 1_000_003} {
		if got := newEngine(t, maxKeys).Stats().MaxKeys; got != maxKeys {
			t.Errorf("max_keys %d: the shards hold %d", maxKeys, got)
		}
	}
}

// Check does not allocate, the locks and the clock included.
func TestCheckDoesNotAllocate(t *testing.T) {
	e := newEngine(t, 1_000_000, rules.Node{
		Key: "user", Limit: &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 1 << 30},
	})
	var c node.Call
	c.Domain = "edge"
	c.Descriptors = append(c.Descriptors, descriptor(1, "user", "ann"), descriptor(1, "user", "bob"))
	if err := e.Check(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	got := testing.AllocsPerRun(1_000, func() {
		if err := e.Check(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Fatalf("%v allocations", got)
	}
}
