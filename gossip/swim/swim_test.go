package swim

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/goleak"

	"github.com/georld/rld/gossip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestJoinAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var book logbook
		var lists [][]gossip.Member
		c := r.config("d1", 1, hosts(3)...)
		c.Log = slog.New(&book)
		c.Changed = func(l []gossip.Member) { lists = append(lists, l) }
		a := r.start(c)
		b := r.start(r.config("d2", 2, hosts(3)...))
		d := r.start(r.config("d3", 3, hosts(3)...))
		r.within(5*time.Second, "join", func() bool { return agree(3, a, b, d) })
		if !a.Joined() || !b.Joined() || !d.Joined() {
			t.Error("not joined")
		}
		want := gossip.Member{
			Peer: gossip.Peer{ID: 2, Name: "d2", Region: "us-east"}, Addr: "10.0.0.2:7947", Build: "v1",
		}
		if got := a.Members()[1]; got != want {
			t.Errorf("member %+v, want %+v", got, want)
		}
		if err := b.Leave(time.Second); err != nil {
			t.Errorf("leave: %v", err)
		}
		r.within(time.Second, "left", func() bool { return agree(2, a, d) })
		synctest.Wait()
		if last := lists[len(lists)-1]; !slices.Equal(last, a.Members()) {
			t.Errorf("last list handed on %v, want %v", last, a.Members())
		}
		if got := book.with("member joined"); len(got) != 2 {
			t.Errorf("joins logged: %q", got)
		}
		if got := book.with("WARN"); len(got) != 0 {
			t.Errorf("warnings without a cause: %q", got)
		}
	})
}

func TestKilledIsOut(t *testing.T) {
	for _, n := range []int{2, 3, 4, 9} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				all := r.region(n)
				time.Sleep(20 * time.Second)
				killed, rest := all[0], all[1:]
				if err := killed.Close(); err != nil {
					t.Fatal(err)
				}
				r.within(5*time.Second, "killed daemon is out", func() bool { return agree(n-1, rest...) })
			})
		})
	}
}

func TestCutHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(5)
		one, rest := all[0], all[1:]
		r.net.CutAll(host(1))
		r.within(10*time.Second, "cut seen", func() bool { return agree(4, rest...) && agree(1, one) })
		time.Sleep(10 * time.Minute)
		if one.Joined() {
			t.Error("one that sees nobody says that it has joined")
		}
		succeeded := func() (rounds uint64) {
			for _, d := range all {
				s := d.Stats()
				rounds += s.Rejoins - s.RejoinFailures
			}
			return rounds
		}
		before := succeeded()
		r.net.Heal()
		r.within(30*time.Second, "healed", func() bool { return agree(5, all...) })
		// None is faster than every 12 s, but for some at the start.
		if s := one.Stats(); s.RejoinFailures == 0 || s.Rejoins > 60 {
			t.Errorf("rounds: %+v", s)
		}
		// Either side may have been first, and a round is counted when the last
		// of its streams ended.
		r.within(2*streamTimeout, "a round succeeded", func() bool { return succeeded() > before })
	})
}

// Only the seed of all others knows of the other half.
func TestHalvesHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var all []*Swim
		for i := 1; i <= 4; i++ {
			all = append(all, r.start(r.config(fmt.Sprintf("d%d", i), i, host(1))))
		}
		r.within(10*time.Second, "join", func() bool { return agree(4, all...) })
		for _, a := range []int{1, 2} {
			for _, b := range []int{3, 4} {
				r.net.Cut(host(a), host(b))
			}
		}
		time.Sleep(10 * time.Minute)
		if !agree(2, all[:2]...) || !agree(2, all[2:]...) {
			t.Fatal("the halves are not apart")
		}
		r.net.Heal()
		r.within(30*time.Second, "healed", func() bool { return agree(4, all...) })
	})
}

func TestOneWayCutHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(3)
		r.net.CutOneWay(host(1), host(2))
		r.net.CutOneWay(host(1), host(3))
		r.within(10*time.Second, "the mute one is out", func() bool { return agree(2, all[1:]...) })
		time.Sleep(10 * time.Minute)
		r.net.Heal()
		r.within(30*time.Second, "healed", func() bool { return agree(3, all...) })
	})
}

// A killed daemon comes back under its name before anybody missed it.
func TestRestartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(3)
		all[2].SetReady(true) // so that its record is not the first
		r.within(2*time.Second, "ready", func() bool { m, _ := find(all[0], "d3"); return m.Ready })
		if err := all[2].Close(); err != nil {
			t.Fatal(err)
		}
		c := r.config("d3", 3, hosts(3)...)
		again := r.start(c)
		r.within(2*time.Second, "the new incarnation is known", func() bool { return agree(3, all[0], all[1], again) })
		if m, _ := find(all[0], "d3"); m.ID != c.Self.ID || m.Ready {
			t.Errorf("member %+v, want incarnation %v, not ready", m, c.Self.ID)
		}
	})
}

// Killed, held for dead, and back on the same address.
func TestRestartLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(3)
		all[2].Close()
		r.within(5*time.Second, "out", func() bool { return agree(2, all[:2]...) })
		c := r.config("d3", 3, hosts(3)...)
		again := r.start(c)
		r.within(2*time.Second, "back", func() bool { return agree(3, all[0], all[1], again) })
		if m, _ := find(all[0], "d3"); m.ID != c.Self.ID {
			t.Errorf("member %+v, want incarnation %v", m, c.Self.ID)
		}
	})
}

// Killed and back at another address, before anybody missed it.
func TestMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(3)
		all[2].Close()
		c := r.config("d3", 4, hosts(3)...)
		again := r.start(c)
		r.within(10*time.Second, "back elsewhere", func() bool { return agree(3, all[0], all[1], again) })
		if m, _ := find(all[0], "d3"); m != c.Self {
			t.Errorf("member %+v, want %+v", m, c.Self)
		}
		if !again.Joined() || again.Stats().HeldBy != "" {
			t.Errorf("not joined: %+v", again.Stats())
		}
	})
}

// Left in peace, the name is free for another address at once.
func TestLeftAndMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(3)
		if err := all[2].Leave(time.Second); err != nil {
			t.Fatal(err)
		}
		all[2].Close()
		again := r.start(r.config("d3", 4, hosts(3)...))
		r.within(2*time.Second, "back elsewhere", func() bool { return agree(3, all[0], all[1], again) })
	})
}

func TestReadinessReachesTheRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(3)
		for _, ready := range []bool{true, false, true} {
			all[1].SetReady(ready)
			r.within(time.Second, "readiness arrives", func() bool {
				a, _ := find(all[0], "d2")
				b, _ := find(all[2], "d2")
				own, _ := find(all[1], "d2")
				return a.Ready == ready && b.Ready == ready && own.Ready == ready
			})
		}
	})
}

// TestChangedFromTheFirstMember lets a member join before the goroutine that
// reports changes runs for the first time.
func TestChangedFromTheFirstMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := newRig(t), make(chan []gossip.Member, 1)
		c := r.config("d1", 1)
		c.Changed = func(members []gossip.Member) { told <- members }
		s, err := prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		other := r.config("d2", 2).Self
		s.roster.put(&memberlist.Node{Name: other.Name, Addr: net.IPv4(10, 0, 0, 2), Port: 7946, Meta: meta{Member: other}.append(nil)})
		s.running.Go(s.report)
		synctest.Wait()
		s.stop()
		s.running.Wait()
		select {
		case members := <-told:
			if len(members) != 2 || members[1].Name != "d2" {
				t.Errorf("changed to %v, want d1 and d2", members)
			}
		default:
			t.Error("the change was not reported")
		}
	})
}

func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if s := r.start(r.config("d1", 1)); !s.Joined() {
			t.Error("without seeds there is nobody to join")
		}
		own := r.start(r.config("d2", 2, host(2)))
		r.within(time.Second, "its own seed", own.Joined)
		other := r.start(r.config("d3", 3, host(3), host(9)))
		time.Sleep(time.Minute)
		if other.Joined() || other.Stats().RejoinFailures == 0 {
			t.Errorf("a seed is missing, joined %v, %+v", other.Joined(), other.Stats())
		}
	})
}

func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.start(r.config("d1", 1))
		for range 2 {
			if err := s.Leave(time.Second); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := s.Leave(time.Second); err == nil {
			t.Error("left after the end")
		}
		s.SetReady(true)
		if len(s.Members()) != 1 || s.Joined() {
			t.Error("a closed member is alone and has joined nobody")
		}
	})
}

func TestRollingRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(5)
		for i, graceful := range []bool{true, false, true, false, true} {
			if graceful {
				if err := all[i].Leave(time.Second); err != nil {
					t.Error(err)
				}
			}
			all[i].Close()
			all[i] = r.start(r.config(fmt.Sprintf("d%d", i+1), i+1, hosts(5)...))
			r.within(3*time.Second, "back", func() bool { return agree(5, all...) })
		}
		if first := all[0].Members()[0].ID; first != 6 {
			t.Errorf("incarnation %v is there still", first)
		}
	})
}

// All at once, as after a loss of power.
func TestAllRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, s := range r.region(5) {
			s.Close()
		}
		r.region(5)
	})
}

// Readiness reaches every daemon of a region that is larger than one round of
// gossip.
func TestReadinessReachesALargeRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(20)
		for i := range 5 {
			all[i].SetReady(true)
		}
		r.within(2*time.Second, "all know", func() bool {
			return agree(20, all...) && all[19].Members()[0].Ready && all[19].Members()[4].Ready
		})
	})
}
