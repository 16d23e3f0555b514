package daemon

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// TestStrictCut partitions the region of an owner: the others answer by
// on_failure, first after the deadline, and at once when the breaker is open.
// It half-opens and closes after the partition.
func TestStrictCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := strictRules(t, rules.Node{Key: "login", Limit: perMinute(1_000, rules.Deny)})
		limits.Rules()[0].Limit.Home = "us"
		w := newStrictWorld(t, 1, limits, "us", "eu")
		defer w.closeDisks()
		eu := w.in("eu")[0]
		untilInto(5 * time.Second)
		if c := eu.check(descriptor(1, "login", "bob")); !c.Decision.Allowed {
			t.Fatalf("%+v", c.Statuses[0])
		}
		time.Sleep(time.Second) // an unused lease is returned
		w.isolate("us")
		asked := func(user string) (*node.Call, time.Duration) {
			begin := time.Now()
			return eu.check(descriptor(1, "login", user)), time.Since(begin)
		}
		c, took := asked("bob")
		if c.Decision.Allowed || c.Statuses[0].Degraded != node.OwnerUnreachable || took < 200*time.Millisecond || took > 300*time.Millisecond {
			t.Errorf("after %v: %+v, want owner_unreachable after the round trip and 100 ms", took, c.Statuses[0])
		}
		for range 20 {
			c, took = asked("bob")
		}
		if c.Decision.Allowed || c.Statuses[0].Degraded != node.CircuitOpen || took != 0 {
			t.Errorf("after %v: %+v, want circuit_breaker_open at once", took, c.Statuses[0])
		}
		if got := w.stricts[eu.name].Circuits(); len(got) == 0 || got[len(got)-1].State != breaker.Open {
			t.Errorf("circuits %+v, want one that is open", got)
		}
		w.heal()
		w.within(90*time.Second, "the owner is asked again", func() bool {
			c, _ := asked("eve") // no answer for her is on its way since the partition
			return c.Decision.Allowed && c.Statuses[0].Degraded == node.NotDegraded
		})
		for _, event := range []string{"circuit_breaker_open", "circuit_breaker_half_open", "circuit_breaker_closed"} {
			if len(eu.lines(event)) == 0 {
				t.Errorf("the log lacks %s", event)
			}
		}
	})
}

// TestStrictReserve gives a region that cannot reach the owner its regional
// reserve, and no more.
func TestStrictReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(40, rules.Share)
		l.ReserveShare, l.Home, l.Unit = 50*rules.Percent, "us", rules.Hour // the first calls wait long
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: l}), "us", "eu", "ap")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		count := func(region string, n int) (passed int) {
			for i := range n {
				if w.in(region)[i%3].check(descriptor(1, "login", "bob")).Decision.Allowed {
					passed++
				}
			}
			return passed
		}
		w.isolate("us")
		eu, ap, us := count("eu", 30), count("ap", 30), count("us", 60)
		time.Sleep(time.Second) // unused leases are returned
		c := w.in("eu")[0].check(descriptor(20, "login", "bob"))
		if st := c.Statuses[0]; st.Degraded == node.NotDegraded || st.Gate != node.OwnerGate {
			t.Errorf("a regional reserve that is used up: %+v", st)
		}
		eu, ap, us = eu+count("eu", 30), ap+count("ap", 30), us+count("us", 60)
		reserve, rest := int(l.ReserveLimit(3).Requests), int(l.OwnerLimit(3).Requests)
		if eu != reserve || ap != reserve || us != rest || reserve == 0 || rest+2*reserve > 40 {
			t.Errorf("%d, %d and %d passed in eu, ap and us, want %d, %d and %d", eu, ap, us, reserve, reserve, rest)
		}
	})
}

// TestStrictDisks restarts strict voters with their disk, without it, and with
// a damaged one.
func TestStrictDisks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(6, rules.Deny)}), "us")
		defer w.closeDisks()
		restart := func(r *resident, meanwhile func()) {
			w.kill(r)
			meanwhile()
			r.start()
			w.within(10*time.Second, r.name+" is back", w.whole)
		}
		untilInto(5 * time.Second)
		passed := 0
		ask := func() {
			for i := range 12 {
				if w.residents[i%3].check(descriptor(1, "login", "bob")).Decision.Allowed {
					passed++
				}
			}
		}
		ask()
		first := w.residents[0]
		restart(first, func() {})
		w.within(time.Second, "it votes", w.voting)
		if s := w.status(first); !s.Voting || s.Keys != 1 || s.Lost {
			t.Errorf("with its disk: %+v", s)
		}
		generation := w.status(first).Generation
		restart(first, func() { remove(t, w.journalOf(first)) })
		if len(first.lines("lost disk")) == 0 {
			t.Error("a lost disk is not logged")
		}
		w.within(5*time.Second, "it has copied", w.voting)
		if s := w.status(first); s.Generation <= generation || s.Keys != 1 {
			t.Errorf("without its disk: %+v", s)
		}
		generation = w.status(first).Generation
		restart(first, func() { damage(t, w.journalOf(first)) })
		if len(first.lines("journal_damaged", "ERROR")) == 0 {
			t.Error("a damaged disk is not logged")
		}
		w.within(5*time.Second, "it has copied", w.voting)
		if s := w.status(first); s.Generation <= generation || s.Keys != 1 {
			t.Errorf("with a damaged disk: %+v", s)
		}
		ask()
		if passed > 6 {
			t.Errorf("%d passed, limit 6", passed)
		}
		// Alone with a damaged disk it never votes, and calls fail.
		for _, r := range w.residents[1:] {
			w.kill(r)
		}
		time.Sleep(10 * time.Second)
		if c := first.check(descriptor(1, "login", "eve")); c.Decision.Allowed || c.Statuses[0].Degraded != node.OwnerUnreachable {
			t.Errorf("without a majority: %+v", c.Statuses[0])
		}
	})
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// damage changes a byte in the middle of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 0x55
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestStrictLayout puts other strict voters in force while a key is in use:
// they vote once they have a snapshot of the former ones, and the limit holds
// throughout.
func TestStrictLayout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 5, strictRules(t, rules.Node{Key: "login", Limit: perMinute(20, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		passed := 0
		ask := func(n int) {
			for i := range n {
				if w.residents[i%5].check(descriptor(1, "login", "bob")).Decision.Allowed {
					passed++
				}
			}
		}
		ask(9)
		time.Sleep(time.Second)
		w.layouts.change(func(report quorum.Reports) {
			next := w.layouts.log.Active.Clone()
			next.Regions[0].Replicas = []string{"us-2", "us-3", "us-4"}
			if err := w.layouts.log.Announce(next, report); err != nil {
				t.Fatal(err)
			}
		})
		w.within(20*time.Second, "the next layout is in force", func() bool {
			return !slices.ContainsFunc(w.residents[2:5], func(r *resident) bool {
				s := w.status(r)
				return !s.Voting || s.Layout.Number != 2
			})
		})
		owner := w.ownerOf(w.residents[0], "login", "bob")
		if owner.name < "us-2" {
			t.Errorf("%s is the owner, and no strict voter any more", owner.name)
		}
		ask(60)
		time.Sleep(time.Second)
		ask(20)
		if passed > 20 || passed < 12 {
			t.Errorf("%d passed, want 20, less the headroom and leases of the former owner", passed)
		}
	})
}

// TestStrictRegionLost: a region is lost for good. Its keys have owners
// elsewhere from the next window on, and those of other regions at once.
func TestStrictRegionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 1, strictRules(t, rules.Node{Key: "login", Limit: perMinute(6, rules.Deny)}), "us", "eu", "ap")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		us, eu := w.in("us")[0], w.in("eu")[0]
		users := map[string]string{} // by the region of the owner
		for i := range 100 {
			user := fmt.Sprint("user", i)
			users[w.ownerOf(eu, "login", user).region] = user
		}
		ask := func(user string, n int) (passed int) {
			for range n {
				if eu.check(descriptor(1, "login", user)).Decision.Allowed {
					passed++
				}
			}
			return passed
		}
		first, other := ask(users["us"], 4), ask(users["ap"], 4)
		w.kill(us)
		w.layouts.change(func(report quorum.Reports) {
			is := w.layouts.log.Active
			next := is.Clone().WithLost(is.LossOf("us", time.Now().Add(time.Second).UnixMilli()))
			next.Regions = slices.DeleteFunc(next.Regions, func(g route.Region) bool { return g.Name == "us" })
			if err := w.layouts.log.Announce(next, report); err != nil {
				t.Fatal(err)
			}
		})
		w.within(10*time.Second, "the next layout is active", func() bool { return w.status(eu).Active == 2 && w.voting() })
		if n := first + ask(users["us"], 10); n > 6 {
			t.Errorf("%d passed in the window of the loss, limit 6", n)
		}
		if c := eu.check(descriptor(1, "login", users["us"])); c.Decision.Allowed || c.Statuses[0].Degraded != node.OwnerUnreachable {
			t.Errorf("%+v in the window of the loss: want owner_unreachable", c.Statuses[0])
		}
		if n := other + ask(users["ap"], 10); n != 6 {
			t.Errorf("%d of a key passed whose owner is in no lost region, want 6", n)
		}
		untilInto(time.Second)
		if n := ask(users["us"], 10); n != 6 {
			t.Errorf("%d passed in the next window, want 6", n)
		}
	})
}

// TestStrictOlderDisk restores an older copy of the disk of a voter, or cuts
// its last writes off, while the third voter is partitioned from it.
// The owner knows of them: the voter counts as one that lost its disk.
func TestStrictOlderDisk(t *testing.T) {
	for name, harm := range map[string]func(before, after []byte) []byte{
		"put back": func(before, _ []byte) []byte { return before },
		"cut":      func(before, after []byte) []byte { return after[:len(before)] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(30, rules.Deny)}), "us")
				defer w.closeDisks()
				untilInto(5 * time.Second)
				owner := w.ownerOf(w.residents[0], "login", "bob")
				others := slices.DeleteFunc(slices.Clone(w.residents), func(r *resident) bool { return r == owner })
				old, late := others[0], others[1]
				passed := 0
				ask := func(r *resident, n int) {
					for range n {
						if r.check(descriptor(1, "login", "bob")).Decision.Allowed {
							passed++
						}
					}
				}
				w.kill(late) // the other two are the majority
				ask(owner, 3)
				time.Sleep(time.Second)
				before := readFile(t, w.journalOf(old))
				ask(owner, 40)
				time.Sleep(time.Second)
				w.kill(old)
				if err := os.WriteFile(w.journalOf(old), harm(before, readFile(t, w.journalOf(old))), 0o600); err != nil {
					t.Fatal(err)
				}
				old.start()
				late.start()
				w.within(10*time.Second, "they are back", w.whole)
				w.within(time.Second, "an older disk is logged", func() bool { return len(old.lines("lost disk")) > 0 })
				w.kill(owner)
				time.Sleep(3 * time.Second)
				ask(late, 40)
				ask(old, 40)
				if passed > 30 {
					t.Errorf("%d passed, limit 30", passed)
				}
			})
		})
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
