package gossip

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// until runs the rig until a daemon knows n hits of a key, and returns how long
// that took, -1 for longer than a minute.
func (r *rig) until(name string, k int, n uint64) time.Duration {
	for start := r.now; r.now < start+time.Minute; r.run(step) {
		if r.total(name, k) >= n {
			return r.now - start
		}
	}
	return -1
}

// What does not matter yet waits for the quiet interval, what does is sent at
// once, all the way to the last daemon of another region.
func TestQuietAndUrgent(t *testing.T) {
	for _, c := range []struct {
		name      string
		room      Room
		low, high time.Duration
	}{
		{"cold", roomy, 4 * time.Second, 4*time.Second + 3*maxQuietInterval + 3*step},
		{"near the limit", Room{10, 60}, 0, 4 * (DefaultMinGap + step)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(Config{Quiet: 4 * time.Second}, "a", "a", "b", "b")
			r.room = c.room
			r.run(3 * time.Second)
			k := 0
			for !r.of("a2").Aggregates(testKey(k)) || !r.of("b2").Aggregates(testKey(k)) {
				k++
			}
			r.of("a1").Add(r.mono(r.of("a1")), testKey(k), epoch, minute, 9, c.room)
			took := r.until("b1", k, 9)
			if took < c.low || took > c.high {
				t.Errorf("b1 knows after %v, want %v to %v", took, c.low, c.high)
			}
		})
	}
}

// A key that was near its limit is expedited in the next window from the first
// hit on, and in the one after it only if it was near again.
func TestNearKeysStayUrgentForAWindow(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.run(time.Second)
	a1, length := r.of("a1"), minute.WindowLength
	for _, c := range []struct {
		window int64
		left   uint64
		urgent bool
	}{
		{0, 59, false},
		{0, 31, false},
		{0, 30, true},
		{1, 60, true},
		{2, 60, false},
		{2, 9, true},
		{4, 60, false},
	} {
		r.run(time.Second)
		a1.Add(r.mono(a1), testKey(1), epoch+c.window*length, minute, 40, Room{c.left, 60})
		if got := a1.Expedited(); got != c.urgent {
			t.Errorf("window %d, %d left: expedited = %v", c.window, c.left, got)
		}
	}
}

// A window that ends soon is not delayed.
func TestShortWindowsAreNotKeptBack(t *testing.T) {
	r := newRig(Config{Quiet: 8 * time.Second}, "a", "a")
	r.run(time.Second)
	a1 := r.of("a1")
	a1.Add(r.mono(a1), testKey(1), epoch, CellMeta{WindowLength: 10_000}, 9, roomy)
	if took := r.until("a2", 1, 9); took > maxQuietInterval+2*step {
		t.Errorf("a2 knows after %v", took)
	}
}

// The staleness of a view is at least the age of the oldest delayed increment.
func TestStalenessCoversUnsentCounts(t *testing.T) {
	for _, peer := range []string{"a", "b"} {
		r := newRig(Config{Quiet: 5 * time.Second}, "a", peer)
		r.run(2 * time.Second)
		r.add("a1", 1, 9)
		counted := r.now
		other := r.members[1]
		for r.total(other.name, 1) == 0 {
			l := r.link(other)
			if waits := r.now - counted; l.Unsent < waits-step {
				t.Fatalf("%s: the view is said to lack at most %v, and lacks hits of %v ago", peer, l.Unsent, waits)
			}
			r.run(step)
		}
		r.run(2 * time.Second)
		if l := r.link(other); l.Unsent > l.Age {
			t.Errorf("%s: the view is %v old, and lacks hits of %v ago where nothing waits", peer, l.Age, l.Unsent)
		}
	}
}

// TestViewIsAsOldAsItsProof: a frame that comes after a lost one lacks changes,
// so the view gets older for as long as the loss is not repaired, and no view
// is younger than a message takes.
func TestViewIsAsOldAsItsProof(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.run(2 * time.Second)
	a2 := r.of("a2")
	r.lost = func(from, _ *member) bool { return from.name == "a1" }
	r.add("a1", 1, 1)
	r.run(step)
	for len(r.flight) == 0 || len(r.flight[0].Cells) == 0 {
		r.run(step)
	}
	complete := r.now
	r.run(step)                                                      // loses the frame
	r.lost = func(from, _ *member) bool { return from.name == "a2" } // a1 does not learn of the loss
	for range 100 {
		r.add("a1", 1, 1)
		r.run(step)
		if l := r.link(a2); l.Age < r.now-complete {
			t.Fatalf("a view of a peer whose changes of %v ago are lost is %v old", r.now-complete, l.Age)
		}
	}
	r.lost = nil
	for r.total("a2", 1) != 101 {
		r.run(step)
	}
	for range 100 {
		r.run(step)
		if l := r.link(a2); l.Age < 2*step {
			t.Fatalf("a view is %v old, and a message and its answer take %v", l.Age, 2*step)
		}
	}
}

// More cells than may be on their way: with Quiet, too, they follow each
// acknowledgement, and that comes after the interval.
func TestQuietDoesNotDelayManyCells(t *testing.T) {
	for _, names := range [][]string{{"a", "a"}, {"a", "b"}} {
		r := newRig(Config{Quiet: time.Minute, FrameCells: 2}, names...)
		r.run(3 * time.Second)
		for k := range 200 {
			r.add("a1", k, 1)
		}
		r.run(200 * 2 * DefaultWANInterval / (maxInflight * 2))
		for k := range 200 {
			if got := r.total(r.members[1].name, k); got != 1 {
				t.Fatalf("%v: cell %d of 200 did not arrive", names, k)
			}
		}
	}
}

// However much is urgent, a peer is not sent more than one message in a gap.
func TestMinGap(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	r.run(time.Second)
	sent := 0
	r.sending = func(m *member, _ *Message) {
		if m.name == "a1" {
			sent++
		}
	}
	a1 := r.of("a1")
	for range 200 {
		a1.Add(r.mono(a1), testKey(1), epoch, minute, 5, Room{1, 60})
		r.run(step)
	}
	if most := int(time.Second/DefaultMinGap) + 1; sent > most || sent < most/2 {
		t.Errorf("%d messages in a second, want up to %d", sent, most)
	}
}

// A peer that acknowledges nothing gets a window of cells and no more, again
// and again and ever more slowly, while its messages stay small.
func TestWindowOfUnacknowledgedCells(t *testing.T) {
	const frame = 10
	r := newRig(Config{FrameCells: frame}, "a", "a")
	r.run(time.Second)
	for i := range 1_000 {
		r.add("a1", i, 1)
	}
	r.lost = func(from, _ *member) bool { return from.name == "a2" }
	sent := 0
	r.sending = func(m *member, msg *Message) {
		if m.name == "a1" {
			sent += len(msg.Cells)
			if len(msg.Cells) > frame {
				t.Errorf("a message of %d cells", len(msg.Cells))
			}
		}
	}
	r.run(300 * time.Millisecond)
	if sent != maxInflight*frame {
		t.Errorf("%d cells on their way, want %d", sent, maxInflight*frame)
	}
	r.run(20 * time.Second)
	if resent := r.of("a1").count(Resent); resent < 4 || resent > 10 {
		t.Errorf("sent again %d times in 20 s", resent)
	}
	r.lost = nil
	r.run(5 * time.Second)
	for i := range 1_000 {
		if r.total("a2", i) != 1 {
			t.Fatalf("cell %d was lost", i)
		}
	}
}

// The aggregator of a key dies before it sent a sum; the next aggregator sends
// it.
func TestResyncAfterTheTeamChanged(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "b")
	r.run(3 * time.Second)
	k := r.keyOf("a3")
	r.lost = func(from, to *member) bool { return from.name == "a3" && to.name == "b1" }
	r.add("a1", k, 10)
	r.run(2 * time.Second)
	if r.total("b1", k) != 0 {
		t.Fatal("b heard of it")
	}
	r.crash(r.of("a3"))
	r.run(2 * time.Second)
	if got := r.total("b1", k); got != 10 {
		t.Errorf("b knows %d of 10", got)
	}
}

// Cells of a resync after a change of members are not considered sent when a
// former message is acknowledged that was considered lost.
func TestResyncBeforeALateMessage(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "a")
	r.run(3 * time.Second)
	k := r.kept("a3", "a1")
	lost := map[string]bool{"a4 a2": true, "a4 a3": true}
	r.lost = func(from, to *member) bool { return lost[from.name+" "+to.name] }
	r.addNear("a4", k, 9)
	r.run(300 * time.Millisecond)

	// Only a1 has a cell, and leaves it to a3, which does not receive it, to
	// send it to a2. a2 receives the second message of a1 before the first.
	var late []Message
	r.sending = func(m *member, msg *Message) {
		if m.name == "a1" && msg.To == r.of("a2").self.ID {
			late = append(late, *msg)
		}
	}
	lost["a1 a2"], lost["a1 a3"] = true, true
	r.crash(r.of("a4"))
	for len(late) < 2 {
		r.run(step)
	}
	if err := r.hand(late[1]); err != nil {
		t.Fatal(err)
	}
	for r.of("a1").count(Resent) == 0 {
		r.run(step)
	}
	r.crash(r.of("a3"))
	if err := r.hand(late[0]); err != nil {
		t.Fatal(err)
	}
	r.run(DefaultInterval + 2*step) // a1 receives the acknowledgement, a2 nothing
	if r.total("a1", k) != 9 || r.total("a2", k) != 0 {
		t.Fatal("a2 heard of it")
	}
	clear(lost)
	r.run(2 * time.Second)
	if got := r.total("a2", k); got != 9 {
		t.Errorf("a2 knows %d of 9", got)
	}
}

// A daemon that is not the aggregator of a key receives its sum from another
// region, which knows other daemons. It sends each value to the aggregator.
func TestSumsGoToTheAggregator(t *testing.T) {
	e := New(Config{}, Peer{ID: 1, Name: "a2", Region: "a"}, 0, 1)
	e.Peers(0, []Peer{{ID: 2, Name: "a1", Region: "a", Ready: true}, {ID: 3, Name: "b1", Region: "b", Ready: true}})
	receive := func(now time.Duration, from crdt.Incarnation, p Part) {
		t.Helper()
		m := Message{From: from, To: 1, Shards: 1, Header: Header{Nonce: nonceOf(now), Ready: true, Rules: 7}, Part: p}
		if _, err := e.Receive(now, epoch, 250, 7, &m); err != nil {
			t.Fatal(err)
		}
	}
	receive(time.Millisecond, 2, Part{Complete: true}) // now this daemon aggregates, too
	n := 0
	for e.Aggregator(testKey(n)) != 2 {
		n++
	}
	for i := range uint64(3) {
		now := time.Duration(i+1) * time.Second
		sum := Cell{
			CellID:   CellID{Key: testKey(n), Window: epoch, Kind: RegionSum, Incarnation: RegionIncarnation("b")},
			CellMeta: CellMeta{WindowLength: 60_000}, Value: crdt.PN{P: 3 + i},
		}
		receive(now, 3, Part{Lo: i, Hi: i + 1, Complete: true, Cells: []Cell{sum}})
		for _, m := range e.Messages(now+DefaultInterval, 0, 7) {
			if m.To != 2 {
				continue
			}
			if len(m.Cells) != 1 || m.Cells[0].Value != sum.Value {
				t.Errorf("the aggregator receives %v, want %v", m.Cells, sum)
			}
			receive(now+2*DefaultInterval, 2, Part{Answers: true, Ack: m.Hi, Complete: true})
		}
	}
}

// The shards of a turn share its time, which may be before that of a message
// that came meanwhile: no age in their messages is negative.
func TestMessagesOfATurnThatBeganEarlier(t *testing.T) {
	e := New(Config{}, Peer{ID: 1, Name: "eu-0", Region: "eu"}, 0, 1)
	began := time.Second + DefaultWANInterval
	e.Peers(time.Second, []Peer{{ID: 2, Name: "eu-1", Region: "eu", Ready: true}, {ID: 3, Name: "us-0", Region: "us", Ready: true}})
	e.Messages(time.Second, 0, 7)
	m := Message{
		From: 3, To: 1, Shards: 1, Header: Header{Nonce: 1, Ready: true, Rules: 7},
		Part: Part{Hi: 1, Complete: true, HasViews: true, Cells: []Cell{{
			CellID:   CellID{Key: testKey(1), Window: epoch, Kind: RegionSum, Incarnation: RegionIncarnation("us")},
			CellMeta: CellMeta{WindowLength: 60_000}, Value: crdt.PN{P: 10},
		}}},
	}
	if _, err := e.Receive(began+300*time.Microsecond, epoch, 250, 7, &m); err != nil {
		t.Fatal(err)
	}
	e.links.find(3).rated = []int32{e.state.find(m.Cells[0].CellID)} // else the age does not matter
	e.Tick(began, epoch)
	aged := false
	for _, out := range e.Messages(began, 0, 7) {
		for _, s := range out.Staleness {
			if aged = true; s.Age < 0 {
				t.Errorf("the view of %v is %v old", s.Region, s.Age)
			}
		}
	}
	if !aged {
		t.Error("no message had an age")
	}
}

// A cell of a former daemon arrives at a daemon that is about to resync: the
// key's aggregator sends it or, when that one dies before, any daemon with it.
func TestCountsBeforeAResyncComeFromTheAggregator(t *testing.T) {
	for _, dies := range []bool{false, true} {
		r := newRig(Config{}, "a", "a", "a")
		r.run(3 * time.Second)
		k := r.keyOf("a1")
		lost := map[string]bool{"a3 a2": true}
		r.lost = func(from, to *member) bool { return lost[from.name+" "+to.name] }
		r.add("a3", k, 9)
		r.run(smallEvery)
		lost["a1 a3"] = true
		r.of("a3").down = true
		r.restart(r.of("a3"))
		if err := r.hand(r.of("a1").Messages(r.mono(r.of("a1"))+DefaultInterval, 0, 7)[0]); err != nil {
			t.Fatal(err)
		}
		r.run(time.Second)
		if r.total("a2", k) != 9 || r.total("a3", k) != 0 || !r.of("a3").links.find(r.of("a2").self.ID).whole {
			t.Fatalf("a2 knows %d, a3 %d", r.total("a2", k), r.total("a3", k))
		}
		if dies {
			r.crash(r.of("a1"))
		}
		clear(lost)
		r.run(3 * time.Second)
		if got := r.total("a3", k); got != 9 {
			t.Errorf("the aggregator dies %v: a3 knows %d of 9", dies, got)
		}
	}
}

// A daemon dies after one of the pair of a key received its latest hits: the
// pair after it receives them from that one.
func TestLastWordsSpread(t *testing.T) {
	for _, heard := range []string{"a2", "a3"} {
		r := newRig(Config{}, "a", "a", "a", "a", "b")
		r.run(3 * time.Second)
		k := r.kept("a2", "a3")
		r.lost = func(from, to *member) bool { return from.name == "a1" && to.name != heard }
		r.addNear("a1", k, 10)
		r.run(smallEvery + DefaultInterval)
		r.crash(r.of("a1"))
		r.run(2 * time.Second)
		for m := range r.up {
			if got := r.total(m.name, k); r.keeps(m, k) && got != 10 {
				t.Errorf("heard by %s: %s knows %d of 10", heard, m.name, got)
			}
		}
	}
}

// Cells of scope region do not leave their region, in a resync either.
func TestRegionalCellsStay(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b")
	r.sending = func(m *member, msg *Message) {
		leaves := m.region != r.holder(msg.To).region
		if leaves && slices.ContainsFunc(msg.Cells, func(c Cell) bool { return c.Regional }) {
			t.Errorf("%s tells another region: %v", m.name, msg.Cells)
		}
	}
	span := minute
	span.Regional = true
	a1 := r.of("a1")
	a1.Add(r.mono(a1), testKey(1), epoch, span, 9, Room{1, 60})
	r.run(2 * time.Second)
	r.restart(r.of("b1"))
	r.restart(r.of("a2"))
	r.run(5 * time.Second)
	if a, b := r.total("a2", 1), r.total("b1", 1); a != 9 || b != 0 {
		t.Errorf("a2 knows %d of 9, b1 %d of 0", a, b)
	}
}

// A new daemon takes no share before it received all cells of its region,
// unless it receives nothing for long.
func TestReadiness(t *testing.T) {
	for _, c := range []struct {
		name      string
		mute      bool
		low, high time.Duration
	}{
		{"heard", false, 0, 2*DefaultInterval + 2*step},
		{"a sibling is mute", true, DefaultReadyWithin, DefaultReadyWithin + 2*step},
	} {
		r := newRig(Config{}, "a", "a", "a")
		r.run(3 * time.Second)
		r.lost = func(from, to *member) bool { return c.mute && from.name == "a3" && to.name == "a2" }
		a2 := r.of("a2")
		r.restart(a2)
		took := r.now
		for !a2.Synced() {
			r.run(step)
		}
		if took = r.now - took; took < c.low || took > c.high {
			t.Errorf("%s: ready after %v, want %v to %v", c.name, took, c.low, c.high)
		}
	}
}

// The loss of a daemon moves its keys and no others.
func TestAggregators(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "a")
	r.run(3 * time.Second)
	winner := func(k int) string {
		name := ""
		for m := range r.up {
			if m.Aggregates(testKey(k)) {
				name += m.name
			}
		}
		return name
	}
	was, share := map[int]string{}, map[string]int{}
	for k := range 400 {
		was[k] = winner(k)
		share[was[k]]++
	}
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		if share[name] < 60 || share[name] > 140 {
			t.Errorf("%s sums up %d of 400 keys", name, share[name])
		}
	}
	r.crash(r.of("a4"))
	r.run(time.Second)
	for k, name := range was {
		if is := winner(k); name != "a4" && is != name || is == "" {
			t.Errorf("key %d went from %s to %q", k, name, is)
		}
	}
}
