package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// TestStrictForward calls every daemon of one region with hits of one key:
// exactly the limit passes, at whichever daemon.
func TestStrictForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		for user := range 4 {
			passed := 0
			for i := range 12 {
				c := w.residents[i%3].check(descriptor(1, "login", fmt.Sprint(user)))
				if st := c.Statuses[0]; st.Degraded != node.NotDegraded || st.Wait {
					t.Fatalf("hit %d of user %d: %+v", i, user, st)
				}
				if c.Decision.Allowed {
					passed++
				}
			}
			if passed != 5 {
				t.Errorf("user %d: %d passed, want 5", user, passed)
			}
		}
	})
}

// hammer calls daemons with hits of a user from several goroutines each, until
// it is stopped, and counts the admitted ones by minute.
type hammer struct {
	mu     sync.Mutex
	passed map[int64]int
	// across is the calls that passed at the end of a minute and the start of
	// the next one, by that one: their rights are of either.
	across map[int64]int
	stop   chan struct{}
	wg     sync.WaitGroup
}

func (w *strictWorld) hammer(key, who string, clients int, every time.Duration) *hammer {
	h := &hammer{passed: map[int64]int{}, across: map[int64]int{}, stop: make(chan struct{})}
	for _, r := range w.residents {
		for i := range clients {
			h.wg.Go(func() {
				time.Sleep(time.Duration(i) * every / time.Duration(clients))
				for {
					select {
					case <-h.stop:
						return
					case <-time.After(every):
					}
					if x := w.engines.of(r.name); x != nil {
						h.ask(x, key, who)
					}
				}
			})
		}
	}
	return h
}

// ask makes one call. An admitted one counts for its minute, unless the minute
// ended meanwhile. The clocks of all daemons are the same here.
func (h *hammer) ask(e *Engine, key, who string) {
	c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, key, who)}}
	begin := time.Now().Unix() / 60
	if err := e.Check(context.Background(), &c); err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch end := time.Now().Unix() / 60; {
	case !c.Decision.Allowed:
	case begin == end:
		h.passed[end]++
	default:
		h.across[end]++
	}
}

// end stops the hammer and checks all minutes against a limit.
func (h *hammer) end(t *testing.T, what string, limit int) {
	t.Helper()
	close(h.stop)
	h.wg.Wait()
	for minute, n := range h.passed {
		if n > limit {
			t.Errorf("%s: %d passed in minute %d, limit %d", what, n, minute, limit)
		}
	}
}

// all reports whether n calls passed in the present minute.
func (h *hammer) all(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	minute := time.Now().Unix() / 60
	return h.passed[minute] <= n && n <= h.passed[minute]+h.across[minute]
}

// TestStrictWorld hammers nine daemons of three regions with one key while
// owners are killed and started and a region is partitioned: never more than
// the limit passes in a minute, and all of it while nothing is wrong.
func TestStrictWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, whenShort(2, 3), strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}),
			"us", "eu", "ap")
		defer w.closeDisks()
		untilInto(0)
		h := w.hammer("login", "bob", 2, 400*time.Millisecond)
		time.Sleep(59 * time.Second)
		if !h.all(5) {
			t.Errorf("%v passed without faults, want 5 in the latest minute", h.passed)
		}
		owner := w.ownerOf(w.residents[0], "login", "bob")
		time.Sleep(3 * time.Second)
		w.kill(owner)
		time.Sleep(57 * time.Second)
		owner.start()
		time.Sleep(20 * time.Second)
		w.isolate(owner.region)
		time.Sleep(50 * time.Second)
		w.heal()
		w.within(time.Minute, "whole again", w.whole)
		untilInto(59 * time.Second)
		time.Sleep(time.Minute)
		if !h.all(5) {
			t.Errorf("%v passed after all faults, want 5 in the latest minute", h.passed)
		}
		h.end(t, "nine daemons", 5)
	})
}

// TestStrictOwnerKilled kills the owner of a key: another strict voter takes
// over within seconds, and counts the hits that may have been admitted.
func TestStrictOwnerKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(20, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		owner := w.ownerOf(w.residents[0], "login", "bob")
		other := w.residents[0]
		if other == owner {
			other = w.residents[1]
		}
		passed := 0
		for range 7 {
			if other.check(descriptor(1, "login", "bob")).Decision.Allowed {
				passed++
			}
		}
		w.kill(owner)
		w.within(6*time.Second, "a strict voter takes over", func() bool {
			c := other.check(descriptor(1, "login", "bob"))
			if c.Decision.Allowed {
				passed++
			}
			return c.Decision.Allowed
		})
		for range 40 {
			if other.check(descriptor(1, "login", "bob")).Decision.Allowed {
				passed++
			}
		}
		if passed > 20 || passed < 20-2-5 { // headroom and the lease that the owner had granted are lost
			t.Errorf("%d passed, want 20 less at most headroom and a lease", passed)
		}
	})
}

// TestStrictMixed makes calls with two descriptors, one of which is denied:
// they use nothing of the other one.
func TestStrictMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t,
			rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)},
			rules.Node{Key: "card", Limit: perMinute(3, rules.Deny)},
			rules.Node{Key: "ip", Limit: &rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 4}}), "us", "eu")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		ask := func(i int, d ...rules.Descriptor) bool {
			return w.residents[i%len(w.residents)].check(d...).Decision.Allowed
		}
		login, card, ip := descriptor(1, "login", "bob"), descriptor(1, "card", "1"), descriptor(1, "ip", "a")
		passed := 0
		for i := range 9 {
			if ask(i, login, card) {
				passed++
			}
		}
		if passed != 3 {
			t.Errorf("%d passed both limits, want the 3 of the smaller one", passed)
		}
		time.Sleep(2 * time.Second) // the rights set aside come back
		for i := range 9 {
			if ask(i, login) {
				passed++
			}
		}
		if passed != 5 {
			t.Errorf("%d passed the larger limit, want 5: refused calls used nothing of it", passed)
		}
		one := w.residents[0]
		for range 5 {
			one.check(ip)
		}
		before := w.stricts[one.name].engine.StrictStats().Waited
		if ask(0, ip, descriptor(1, "login", "eve")) {
			t.Error("a limit that is used up lets a call pass")
		}
		if n := w.stricts[one.name].engine.StrictStats().Waited; n != before {
			t.Error("a call that is refused by what is known here asked a home")
		}
	})
}

// TestStrictImpatient has callers that go away before the owner answers: the
// rights set aside for them are freed, and no call is left behind.
func TestStrictImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(5, rules.Deny)
		l.Home = "us"
		w := newStrictWorld(t, 1, strictRules(t, rules.Node{Key: "login", Limit: l}), "us", "eu")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		eu := w.in("eu")[0]
		for range 4 {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "login", "bob")}}
			if err := eu.cluster.engine.Check(ctx, &c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a caller that is gone: %v", err)
			}
			cancel()
		}
		time.Sleep(2 * time.Second)
		if n := w.stricts[eu.name].StrictStats().Pending; n != 0 {
			t.Errorf("%d calls still wait", n)
		}
		passed := 0
		for range 10 {
			if w.in("us")[0].check(descriptor(1, "login", "bob")).Decision.Allowed {
				passed++
			}
		}
		if passed != 5 {
			t.Errorf("%d passed, want 5: those who left used nothing", passed)
		}
	})
}

// TestStrictCrowd has more calls at once than streams have room for frames: the
// owner answers all of them.
func TestStrictCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		var wg sync.WaitGroup
		var passed, failed atomic.Int64
		const users = 300
		for user := range users {
			for i := range 7 {
				wg.Go(func() {
					c := w.residents[(user+i)%3].check(descriptor(1, "login", fmt.Sprint(user)))
					if c.Decision.Allowed {
						passed.Add(1)
					}
					if c.Statuses[0].Degraded != node.NotDegraded {
						failed.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if passed.Load() != 5*users || failed.Load() != 0 {
			t.Errorf("%d passed and %d failed, want %d and 0", passed.Load(), failed.Load(), 5*users)
		}
	})
}

// TestStrictPrefetch has one daemon use a key fast: most hits are decided
// without a request.
func TestStrictPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(100_000, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		owner := w.ownerOf(w.residents[0], "login", "bob")
		other := w.residents[0]
		if other == owner {
			other = w.residents[1]
		}
		for range 5_000 {
			if !other.check(descriptor(1, "login", "bob")).Decision.Allowed {
				t.Fatal("refused far below the limit")
			}
			time.Sleep(200 * time.Microsecond)
		}
		s := w.stricts[other.name].engine.StrictStats()
		if s.Local < 8*(s.Local+s.Waited)/10 {
			t.Errorf("%d of %d were decided without asking, want 4 of 5", s.Local, s.Local+s.Waited)
		}
	})
}
