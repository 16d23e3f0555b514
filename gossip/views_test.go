package gossip

import (
	"testing"
	"time"

	"github.com/georld/rld/hlc"
)

// TestViewsGrowOld: without fresh views, the latest ones are older by the time
// between the messages at their sender, however long these took.
func TestViewsGrowOld(t *testing.T) {
	const remote = 9
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	cfg := Config{}.WithDefaults()
	l := newLink(0, &cfg, "eu", Peer{ID: 2, Region: "eu"}, 0, 0)
	complete := func(received, sent int, p Part) {
		m := Message{Header: Header{Nonce: nonceOf(ms(sent))}, Part: p}
		l.complete(ms(received), &m)
	}
	check := func(viewed bool, own, other int) {
		t.Helper()
		if l.viewed != viewed || viewed && (l.ownAge != ms(own) || l.staleness[0] != Staleness{remote, ms(other)}) {
			t.Errorf("viewed %v, own %v, others %v, want %v, %v ms, %v ms", l.viewed, l.ownAge, l.staleness, viewed, own, other)
		}
	}
	complete(100, 90, Part{})
	check(false, 0, 0)
	complete(200, 190, Part{HasViews: true, Own: ms(5), Staleness: []Staleness{{remote, ms(40)}}})
	check(true, 5, 40)
	complete(300, 240, Part{})
	check(true, 55, 90)
	complete(305, 300, Part{}) // faster than the one before
	check(true, 115, 150)
	complete(400, 390, Part{HasViews: true, Own: ms(7), Staleness: []Staleness{{remote, ms(20)}}})
	check(true, 7, 20)
	m := Message{Header: Header{Nonce: 1 << 63}}
	l.complete(ms(500), &m)
	if l.ownAge < longestClaim-time.Second || l.ownAge > longestClaim || l.staleness[0].Age > longestClaim {
		t.Errorf("own %v, others %v, want at most %v", l.ownAge, l.staleness, longestClaim)
	}
}

// TestStampsAndViews counts the messages with a stamp: all until the peer has
// echoed one, and then those after a jump of the clock. All have views.
func TestStampsAndViews(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.run(2 * time.Second)
	all, stamps, views := 0, 0, 0
	for _, m := range r.members {
		for i := range 20 {
			r.now += DefaultInterval
			stamp := r.wall(m)
			if i == 19 {
				stamp += 2 * clockTolerance
			}
			r.add(m.name, 1, 1)
			m.Tick(r.mono(m), r.wall(m))
			for _, msg := range m.Messages(r.mono(m), hlc.New(stamp, 0), 0) {
				all++
				if msg.Stamp != 0 {
					stamps++
				}
				if msg.HasViews {
					views++
				}
			}
		}
	}
	if all != 40 || stamps != 2 || views != all {
		t.Errorf("%d messages, %d with a stamp and %d with views, want 40, 2 and 40", all, stamps, views)
	}
	fresh := New(Config{}, Peer{ID: 1, Name: "a1", Region: "a"}, 0, 1)
	fresh.Peers(time.Second, []Peer{{ID: 2, Name: "a2", Region: "a"}})
	for i := range 10 {
		for _, msg := range fresh.Messages(time.Duration(i+2)*time.Second, 1<<40, 0) {
			if msg.Stamp == 0 || !msg.HasViews {
				t.Errorf("message %d without an echo: stamp %v, views %v", i, msg.Stamp, msg.HasViews)
			}
		}
	}
}

// TestViewOfAPeerWithManyChanges: what a peer has to send never fits into one
// message. Each of its answers is in the first message of several, and only the
// last one is complete. Both together prove that the view is fresh.
func TestViewOfAPeerWithManyChanges(t *testing.T) {
	const perFrame, intervals = 10, 100
	r := newRig(Config{FrameCells: perFrame}, "a", "a")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	var answers, ofComplete int
	r.sending = func(_ *member, msg *Message) { // as in frames: only answers echo
		one := []Message{*msg}
		Unite(one)
		*msg = one[0]
	}
	r.taking = func(m *member, msg *Message) {
		if m == a2 && msg.Echo != 0 {
			answers++
			if msg.Complete {
				ofComplete++
			}
		}
	}
	for range intervals {
		for k := range 3 * perFrame {
			r.add("a1", k, 1)
		}
		r.add("a2", 1, 1) // is to be acknowledged
		r.run(DefaultInterval)
		if age := r.link(a2).Age; age < 0 || age > 3*time.Second {
			t.Fatalf("the view of a1 is %v old", age)
		}
	}
	if answers < 5 || ofComplete > 0 {
		t.Errorf("%d answers, %d in complete messages: the schedule shows nothing", answers, ofComplete)
	}
	r.lost = func(from, _ *member) bool { return from == a1 }
	silent := r.link(a2).Age
	r.run(time.Minute)
	if age := r.link(a2).Age; age != silent+time.Minute {
		t.Errorf("the view of a peer without messages is %v old after a minute, and was %v", age, silent)
	}
}

// TestViewOfAnIncompletePeer: answers alone prove nothing, as long as the peer
// has more to send.
func TestViewOfAnIncompletePeer(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	r.taking = func(m *member, msg *Message) { msg.Complete = msg.Complete && m != a2 }
	age := r.link(a2).Age
	for range 10 {
		r.add("a2", 1, 1)
		r.run(time.Second)
	}
	if got := r.link(a2).Age; got != age+10*time.Second || a2.links[0].answered <= a2.links[0].echoed {
		t.Errorf("the view of %s is %v old after ten seconds, and was %v", a1.name, got, age)
	}
}

// TestExpectedAge: the view of an idle peer is as old as its counts would be,
// and that of a peer that became silent as old as it is proven to be.
func TestExpectedAge(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(10 * time.Second)
	a1 := r.of("a1")
	if l := r.link(a1); l.Silent || l.Lag <= 0 || l.Expected(time.Minute) != l.Lag || l.Expected(0) != 0 {
		t.Errorf("of a peer that is heard: %+v", l)
	}
	r.lost = func(*member, *member) bool { return true }
	r.run(10 * time.Second)
	if l := r.link(a1); !l.Silent || l.Age < 10*time.Second || l.Expected(l.Age) != l.Age {
		t.Errorf("of a silent peer: %+v", l)
	}
}
