package swim

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/georld/rld/gossip"
)

func TestWrongKey(t *testing.T) {
	for _, keys := range [][][]byte{{keyB}, nil} {
		t.Run(fmt.Sprint(len(keys)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var inside, outside logbook
				c := r.config("d1", 1, hosts(2)...)
				c.Log = slog.New(&inside)
				a := r.start(c)
				b := r.start(r.config("d2", 2, hosts(2)...))
				r.within(5*time.Second, "join", func() bool { return agree(2, a, b) })
				c = r.config("d3", 3, hosts(2)...)
				c.Keys, c.Log = keys, slog.New(&outside)
				outsider := r.start(c)
				time.Sleep(9 * time.Minute)
				if !agree(2, a, b) || !agree(1, outsider) || outsider.Joined() {
					t.Errorf("let in: %v, %v", a.Members(), outsider.Members())
				}
				if a.Stats().Refused["wrong_key"] == 0 || outsider.Stats().Refused["wrong_key"] == 0 {
					t.Errorf("not counted: %+v, %+v", a.Stats(), outsider.Stats())
				}
				if got := inside.with("wrong key", "10.0.0.3"); len(got) != 1 {
					t.Errorf("inside: %q", inside.with("WARN"))
				}
				if got := outside.with("wrong key"); len(got) != 2 { // one a seed
					t.Errorf("outside: %q", outside.with("WARN"))
				}
			})
		})
	}
}

func TestWrongRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var inside, outside logbook
		c := r.config("d1", 1, hosts(2)...)
		c.Log = slog.New(&inside)
		a := r.start(c)
		b := r.start(r.config("d2", 2, hosts(2)...))
		r.within(5*time.Second, "join", func() bool { return agree(2, a, b) })
		c = r.config("d3", 3, host(1))
		c.Self.Region, c.Log = "eu-west", slog.New(&outside)
		outsider := r.start(c)
		time.Sleep(9 * time.Minute)
		if !agree(2, a, b) || !agree(1, outsider) || outsider.Joined() {
			t.Errorf("let in: %v, %v", a.Members(), outsider.Members())
		}
		if a.Stats().Refused["wrong_region"] == 0 || outsider.Stats().Refused["wrong_region"] == 0 {
			t.Errorf("not counted: %+v, %+v", a.Stats(), outsider.Stats())
		}
		if got := inside.with("WARN"); len(got) != 1 || !strings.Contains(got[0], "wrong region name=d3") {
			t.Errorf("inside: %q", got)
		}
		if got := outside.with("WARN"); len(got) != 2 { // d1 and d2
			t.Errorf("outside: %q", got)
		}
	})
}

func TestNameTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.region(3)
		holder, _ := find(all[0], "d2")
		var book logbook
		c := r.config("d2", 7, hosts(3)...)
		c.Log = slog.New(&book)
		second := r.start(c)
		for range 90 {
			time.Sleep(time.Second)
			if m, ok := find(all[0], "d2"); !ok || m != holder || !agree(3, all...) || !agree(1, second) {
				t.Fatalf("the first did not stay: %v, %v", all[0].Members(), second.Members())
			}
		}
		if s := second.Stats(); second.Joined() || s.HeldBy != host(2) || s.Refused["name_taken"] == 0 {
			t.Errorf("the second does not know: joined %v, %+v", second.Joined(), s)
		}
		if got := book.with("WARN"); len(got) != 1 || !strings.Contains(got[0], "name taken name=d2") {
			t.Errorf("the second says %q", got)
		}
		for i, s := range all {
			if !s.Joined() || s.Stats().HeldBy != "" || s.Stats().Refused["name_taken"] == 0 {
				t.Errorf("daemon %d: joined %v, %+v", i+1, s.Joined(), s.Stats())
			}
		}
		all[1].Close()
		r.within(12*time.Second, "the second takes over", func() bool { return agree(3, all[0], all[2], second) })
		if !second.Joined() || second.Stats().HeldBy != "" {
			t.Errorf("not joined: %+v", second.Stats())
		}
	})
}

// The only daemon of a region stays against a second one that it knows as a
// seed too.
func TestNameTakenOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first := r.start(r.config("d", 1, hosts(2)...))
		time.Sleep(time.Second)
		second := r.start(r.config("d", 2, hosts(2)...))
		time.Sleep(2 * time.Minute)
		if first.Stats().HeldBy != "" || second.Stats().HeldBy != host(1) || second.Joined() {
			t.Errorf("first %+v, second %+v", first.Stats(), second.Stats())
		}
	})
}

// Two that took one name while they could not see each other: the one that is
// alone gives way.
func TestNameTakenDuringCut(t *testing.T) {
	for _, lonely := range []int{1, 3} { // the lesser and the greater incarnation
		t.Run(fmt.Sprint(lonely), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.net.CutAll(host(lonely))
				var one *Swim
				var group []*Swim
				for i := 1; i <= 3; i++ {
					name := fmt.Sprintf("d%d", i)
					if i != 2 {
						name = "d"
					}
					s := r.start(r.config(name, i, hosts(3)...))
					if i == lonely {
						one = s
					} else {
						group = append(group, s)
					}
				}
				r.within(20*time.Second, "join", func() bool { return agree(2, group...) })
				time.Sleep(time.Minute)
				r.net.Heal()
				r.within(30*time.Second, "one gives way", func() bool {
					return one.Stats().HeldBy != "" && one.Stats().Refused["name_taken"] > 0
				})
				if !agree(2, group...) || !agree(1, one) || one.Joined() || !group[0].Joined() || !group[1].Joined() {
					t.Errorf("%v, %v", one.Members(), group[0].Members())
				}
			})
		})
	}
}

// Two that took one name on the two sides of a cut, each with company: the one
// with the greater incarnation gives way, and everybody else lists the other.
func TestNameTakenOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, here := range []int{1, 2} {
			for _, there := range []int{3, 4} {
				r.net.Cut(host(here), host(there))
			}
		}
		stays := r.start(r.config("d", 1, hosts(4)...))
		b := r.start(r.config("b", 2, hosts(4)...))
		goes := r.start(r.config("d", 3, hosts(4)...))
		c := r.start(r.config("c", 4, hosts(4)...))
		r.within(20*time.Second, "two regions of two", func() bool { return agree(2, stays, b) && agree(2, goes, c) })
		time.Sleep(time.Minute)
		r.net.Heal()
		r.within(time.Minute, "one gives way", func() bool { return goes.Stats().HeldBy == host(1) })
		r.within(time.Minute, "the others agree", func() bool { return agree(3, stays, b, c) })
		time.Sleep(time.Minute)
		if goes.Joined() || stays.Stats().HeldBy != "" || !agree(3, stays, b, c) {
			t.Errorf("goes %+v, stays %+v, %v", goes.Stats(), stays.Stats(), b.Members())
		}
	})
}

func TestNameTakenByLoners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.net.CutAll(host(1))
		a := r.start(r.config("d", 1, hosts(2)...))
		b := r.start(r.config("d", 2, hosts(2)...))
		time.Sleep(time.Minute)
		r.net.Heal()
		time.Sleep(time.Minute)
		if a.Stats().HeldBy != "" || b.Stats().HeldBy != host(1) {
			t.Errorf("a %+v, b %+v", a.Stats(), b.Stats())
		}
	})
}

// rude is a memberlist without this package's manners.
type rude struct{ meta []byte }

func (r rude) NodeMeta(int) []byte           { return r.meta }
func (rude) NotifyMsg([]byte)                {}
func (rude) GetBroadcasts(int, int) [][]byte { return [][]byte{[]byte("\x08hello")} }
func (rude) LocalState(bool) []byte          { return []byte("state") }
func (rude) MergeRemoteState([]byte, bool)   {}
func (r *rig) rude(i int, name string, meta []byte) *memberlist.Memberlist {
	r.t.Helper()
	tr, err := r.net.Transport(host(i))
	if err != nil {
		r.t.Fatal(err)
	}
	c := memberlist.DefaultLANConfig()
	c.Name, c.SecretKey, c.Delegate = name, keyA, rude{meta}
	c.Transport = newGuard(tr, nil, new(atomic.Bool))
	c.Logger = (&logAdapter{log: slog.New(slog.DiscardHandler), refused: &refusals{log: slog.New(slog.DiscardHandler)}}).logger()
	list, err := memberlist.Create(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		list.Shutdown()
		time.Sleep(10 * time.Second) // its probes have all been slow
	})
	return list
}

func TestBadMetadata(t *testing.T) {
	good := meta{Member: gossip.Member{Peer: gossip.Peer{ID: 9, Region: "us-east"}, Addr: "10.0.0.9:1"}}.append(nil)
	for name, bad := range map[string][]byte{
		"none":    nil,
		"version": append([]byte{9}, good[1:]...),
		"short":   good[:len(good)-3],
		"longest": make([]byte, 512),
		"name":    good,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var book logbook
				c := r.config("d1", 1, hosts(2)...)
				c.Log = slog.New(&book)
				a := r.start(c)
				b := r.start(r.config("d2", 2, hosts(2)...))
				r.within(5*time.Second, "join", func() bool { return agree(2, a, b) })
				called := "outsider"
				if name == "name" {
					called = strings.Repeat("x", maxName) + "\n"
				}
				outsider := r.rude(3, called, bad)
				for range 5 {
					if _, err := outsider.Join([]string{host(1)}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				}
				if !agree(2, a, b) {
					t.Errorf("let in: %v", a.Members())
				}
				if a.Stats().Refused["bad_metadata"] == 0 {
					t.Errorf("not counted: %+v", a.Stats())
				}
				if got := book.with("WARN"); len(got) != 1 || !strings.Contains(got[0], "bad metadata") {
					t.Errorf("said: %q", got)
				}
			})
		})
	}
}

func TestFull(t *testing.T) {
	r := newRoster(gossip.Member{Peer: gossip.Peer{ID: 1, Name: "own", Region: "r"}, Addr: "h:1"}, true,
		&refusals{log: slog.New(slog.DiscardHandler)})
	for i := range 3 * maxMembers {
		m := gossip.Member{Peer: gossip.Peer{ID: 2, Region: "r"}, Addr: "h:1"}
		n := &memberlist.Node{Name: fmt.Sprint(i), Addr: []byte{10, 0, 0, 1}, Port: 1, Meta: meta{Member: m}.append(nil)}
		if r.NotifyAlive(n) == nil {
			r.NotifyJoin(n)
		}
	}
	if got := len(r.members()); got != maxMembers {
		t.Errorf("%d members", got)
	}
	if got := r.refused.snapshot()["full"]; got == 0 {
		t.Error("not counted")
	}
}
