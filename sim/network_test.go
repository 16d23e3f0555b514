package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/georld/rld/rules"
)

// wireless is a world of two regions of one daemon, none of them started, and a
// link between them of a quality of ours.
func wireless(t *testing.T, l Link) *World {
	cfg := small(t)
	cfg.Regions = []Region{{"eu", 1}, {"us", 1}}
	cfg.Network = Network{Across: l}
	w := newWorld(cfg)
	w.now = 0
	return w
}

// sent puts n frames of a size on the link, one each gap, and returns when each
// arrives, in the order of arrival, by the number that its first byte is.
func sent(w *World, n, size int, gap time.Duration) (at []time.Duration, numbers []byte) {
	for i := range n {
		w.now = time.Duration(i) * gap
		frame := make([]byte, size)
		frame[0] = byte(i)
		w.network.send(w, 0, &incarnation{daemon: 1, name: "us-0"}, frame)
	}
	for w.events.len() > 0 {
		e := w.events.pop()
		at = append(at, e.at)
		numbers = append(numbers, w.network.flights.take(e.arg).frame[0])
	}
	return at, numbers
}

func TestLinkWithoutFaults(t *testing.T) {
	w := wireless(t, Link{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond})
	at, numbers := sent(w, 100, 50, time.Millisecond)
	if len(at) != 100 {
		t.Fatalf("%d frames of 100 arrive", len(at))
	}
	for i := range at {
		if numbers[i] != byte(i) {
			t.Fatalf("frame %d arrives as number %d: a stream keeps its order", numbers[i], i)
		}
		if took := at[i] - time.Duration(i)*time.Millisecond; took < 10*time.Millisecond {
			t.Fatalf("frame %d took %v, less than the delay", i, took)
		}
	}
	if w.network.traffic.Bytes != 5_000 || w.network.traffic.Frames != 100 {
		t.Errorf("counted %+v", w.network.traffic)
	}
}

func TestLinkShares(t *testing.T) {
	const n = 10_000
	half := 50 * rules.Percent
	cases := []struct {
		name      string
		link      Link
		low, high int // frames that arrive
	}{
		{"lose all", Link{Loss: 100 * rules.Percent}, 0, 0},
		{"lose half", Link{Loss: half}, n * 48 / 100, n * 52 / 100},
		{"repeat all", Link{Duplicate: 100 * rules.Percent}, 2 * n, 2 * n},
		{"repeat half", Link{Duplicate: half}, n * 148 / 100, n * 152 / 100},
		{"damage all", Link{Corrupt: 100 * rules.Percent}, n, n},
	}
	for _, c := range cases {
		w := wireless(t, c.link)
		at, _ := sent(w, n, 20, time.Microsecond)
		if len(at) < c.low || len(at) > c.high {
			t.Errorf("%s: %d arrive, want %d to %d", c.name, len(at), c.low, c.high)
		}
	}
}

func TestLinkReorders(t *testing.T) {
	w := wireless(t, Link{Delay: time.Millisecond, Jitter: 10 * time.Millisecond, Reorder: 50 * rules.Percent})
	_, numbers := sent(w, 100, 20, time.Millisecond)
	overtaken := 0
	for i := 1; i < len(numbers); i++ {
		if numbers[i] < numbers[i-1] {
			overtaken++
		}
	}
	if overtaken < 5 {
		t.Errorf("%d of 100 frames overtaken", overtaken)
	}
}

// TestLinkQueues: a narrow link takes frames one after the other, and loses
// what would wait too long.
func TestLinkQueues(t *testing.T) {
	w := wireless(t, Link{Bandwidth: 1_000})
	at, _ := sent(w, 10, 1_000, 0)
	for i := range at {
		if want := time.Duration(i+1) * time.Second; at[i] != want {
			t.Errorf("frame %d arrives at %v, want %v", i, at[i], want)
		}
	}
	// The sixth finds five seconds of frames before it, the next ones more.
	if len(at) != 6 || w.network.traffic.Overflowed != 4 {
		t.Errorf("%d arrive, %d were lost in the queue", len(at), w.network.traffic.Overflowed)
	}
}

func TestMangleChangesFrames(t *testing.T) {
	w := wireless(t, Link{})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1_000 {
		frame := make([]byte, 1+rng.IntN(40))
		before := string(frame)
		l := &link{Link: &Link{Corrupt: 50 * rules.Percent, Truncate: 50 * rules.Percent}}
		if changed := w.network.mangle(w, &frame, l); changed != (string(frame) != before) {
			t.Fatalf("reported %t, %x became %x", changed, before, frame)
		}
	}
}

func TestFaultPlaces(t *testing.T) {
	cfg := small(t)
	cfg.Regions = []Region{{"eu", 2}, {"us", 2}, {"ap", 1}}
	w := newWorld(cfg)
	byName := make(map[string]*Daemon)
	for _, d := range w.daemons {
		byName[d.Name] = d
	}
	cases := []struct {
		from, to []string
		oneWay   bool
		a, b     string
		want     bool
	}{
		{[]string{"eu"}, nil, false, "eu-0", "us-0", true},
		{[]string{"eu"}, nil, false, "us-0", "eu-0", true},
		{[]string{"eu"}, nil, true, "us-0", "eu-0", false},
		{[]string{"eu"}, nil, false, "eu-0", "eu-1", false},
		{[]string{"eu"}, nil, false, "us-0", "ap-0", false},
		{[]string{"eu"}, []string{"eu"}, false, "eu-0", "eu-1", true},
		{[]string{"eu-0"}, []string{"eu-1"}, true, "eu-0", "eu-1", true},
		{[]string{"eu-0"}, []string{"eu-1"}, true, "eu-1", "eu-0", false},
		{nil, []string{"ap"}, true, "us-1", "ap-0", true},
		{nil, []string{"ap"}, true, "ap-0", "us-1", false},
		{nil, nil, true, "eu-0", "eu-1", true},
	}
	for _, c := range cases {
		f := Fault{From: c.from, To: c.to, OneWay: c.oneWay}
		if got := f.between(byName[c.a], byName[c.b]); got != c.want {
			t.Errorf("from %v to %v, one way %t: %s to %s is %t", c.from, c.to, c.oneWay, c.a, c.b, got)
		}
	}
}

// TestWarmUp has the daemons know each other when the load begins.
func TestWarmUp(t *testing.T) {
	w := newWorld(small(t))
	w.prepare()
	w.runUntil(-time.Second)
	for _, d := range w.daemons {
		for _, n := range d.Nodes {
			for l := range n.Links(d.Instant(w.now)) {
				if l.Age < 0 || !n.Synced() {
					t.Errorf("%s has received nothing of %s", d.Name, l.Peer.Name)
				}
			}
		}
	}
}
