package gossip

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// receive passes a1 a message of a peer with cells.
func receive(r *rig, from crdt.Incarnation, nonce uint64, cells ...Cell) error {
	return r.hand(Message{
		From: from, To: r.of("a1").self.ID, Shards: 1, Header: Header{Nonce: nonce, Rules: 7},
		Part: Part{Hi: nonce, Cells: cells, Complete: true},
	})
}

// No peer may send cells of other writers; the rest of the message counts.
func TestForgedIncarnations(t *testing.T) {
	good := func(kind Kind, incarnation crdt.Incarnation) Cell {
		return Cell{CellID: CellID{testKey(1), epoch, kind, incarnation}, CellMeta: minute, Value: crdt.PN{P: 5}}
	}
	edit := func(c Cell, edit func(*Cell)) Cell { edit(&c); return c }
	const dead = crdt.Incarnation(77)
	for _, c := range []struct {
		name  string
		from  string
		cell  Cell
		taken bool
	}{
		{"regional peer, its own incarnation", "a2", good(Daemon, 2), true},
		{"regional peer, an incarnation that is gone", "a2", good(Daemon, dead), true},
		{"regional peer, our incarnation", "a2", good(Daemon, 1), false},
		{"regional peer, another region's sum", "a2", good(RegionSum, RegionIncarnation("b")), true},
		{"other region, its sum", "b1", good(RegionSum, RegionIncarnation("b")), true},
		{"other region, our sum", "b1", good(RegionSum, RegionIncarnation("a")), true},
		{"other region, a third one's sum", "b1", good(RegionSum, RegionIncarnation("c")), false},
		{"other region, a daemon", "b1", good(Daemon, 3), false},
		{"other region, our incarnation", "b1", good(Daemon, 1), false},
		{"more refunds than hits", "a2", edit(good(Daemon, 2), func(c *Cell) { c.Value.N = 6 }), false},
		{"no width", "a2", edit(good(Daemon, 2), func(c *Cell) { c.WindowLength = 0 }), false},
		{"negative carry", "a2", edit(good(Daemon, 2), func(c *Cell) { c.Carry = -1 }), false},
		{"end of time", "a2", edit(good(Daemon, 2), func(c *Cell) { c.Carry = 1<<63 - 1 }), true},
		{"past the end of time", "a2", edit(good(Daemon, 2), func(c *Cell) { c.Window = 1<<63 - 1 }), false},
		{"over", "a2", edit(good(Daemon, 2), func(c *Cell) { c.Window -= 2 * minute.WindowLength }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(Config{}, "a", "a", "b")
			if err := receive(r, r.of(c.from).self.ID, 1, c.cell); err != nil {
				t.Fatal(err)
			}
			a1 := r.of("a1")
			if got := a1.state.find(c.cell.CellID) != none; got != c.taken {
				t.Errorf("taken: %v, want %v", got, c.taken)
			}
			counts := c.taken && c.cell.Incarnation != a1.Engine.region
			if got := a1.Total(testKey(1), epoch); got > 0 != counts {
				t.Errorf("%d hits count", got)
			}
		})
	}
}

// Messages for others, or from unknown senders, change nothing.
func TestRefusedMessages(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	a1, a2 := r.of("a1"), r.of("a2")
	cell := Cell{CellID: CellID{testKey(1), epoch, Daemon, a2.self.ID}, CellMeta: minute, Value: crdt.PN{P: 5}}
	good := Message{
		From: a2.self.ID, To: a1.self.ID, Shards: 1, Header: Header{Nonce: 1},
		Part: Part{Hi: 1, Cells: []Cell{cell}},
	}
	var unknown *UnknownSenderError
	var shards *ShardsError
	for _, c := range []struct {
		name string
		edit func(*Message)
		is   func(error) bool
	}{
		{"unknown sender", func(m *Message) { m.From = 99 }, func(err error) bool { return errors.As(err, &unknown) }},
		{"other incarnation", func(m *Message) { m.To = 99 }, func(err error) bool { return errors.Is(err, ErrMisplaced) }},
		{"our own", func(m *Message) { m.From = a1.self.ID }, func(err error) bool { return errors.Is(err, ErrMisplaced) }},
		{"other shard", func(m *Message) { m.Shard = 1 }, func(err error) bool { return errors.Is(err, ErrMisplaced) }},
		{"other split", func(m *Message) { m.Shards = 2 }, func(err error) bool { return errors.As(err, &shards) }},
	} {
		m := good
		c.edit(&m)
		_, err := a1.Receive(r.mono(a1), r.wall(a1), 250, 7, &m)
		if !c.is(err) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if len(a1.Cells(r.wall(a1), nil)) > 0 {
			t.Errorf("%s: a cell was taken", c.name)
		}
	}
	if err := r.hand(good); err != nil || r.total("a1", 1) != 5 {
		t.Errorf("the good message: error %v, %d hits", err, r.total("a1", 1))
	}
}

// A change holds the gain over the known count, once.
func TestChangesAreWhatWasGained(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	a1 := r.of("a1")
	cell := Cell{CellID: CellID{testKey(1), epoch, Daemon, r.of("a2").self.ID}, CellMeta: minute}
	for i, c := range []struct {
		told crdt.PN
		want []Change
	}{
		{crdt.PN{P: 5}, []Change{{Key: cell.Key, Window: epoch, Span: minute, Gain: 5}}},
		{crdt.PN{P: 5}, nil},
		{crdt.PN{P: 3}, nil},
		{crdt.PN{P: 9, N: 2}, []Change{{Key: cell.Key, Window: epoch, Span: minute, Gain: 4, Less: 2}}},
	} {
		cell.Value = c.told
		got, err := a1.Receive(r.mono(a1), r.wall(a1), 250, 7, &Message{
			From: r.of("a2").self.ID, To: a1.self.ID, Shards: 1, Header: Header{Nonce: uint64(i + 1)},
			Part: Part{Hi: uint64(i + 1), Cells: []Cell{cell}},
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v after the others: %v, error %v, want %v", c.told, got, err, c.want)
		}
	}
}

// A cell counts from the start of its window on the fastest clock that is
// followed, until its end, its carry and the grace have passed.
func TestWindowsInTime(t *testing.T) {
	for _, c := range []struct {
		name   string
		window int64
		taken  bool
	}{
		{"too far ahead", epoch + minute.WindowLength + 2_000, false},
		{"as far ahead as may be", epoch + minute.WindowLength + 1_250, true},
		{"now", epoch, true},
		{"over, within grace", epoch - minute.WindowLength - 3_999, true},
		{"over", epoch - minute.WindowLength - 4_000, false},
	} {
		r := newRig(Config{}, "a", "a") // a second past epoch
		id := CellID{testKey(1), c.window, Daemon, r.of("a2").self.ID}
		if err := receive(r, id.Incarnation, 1, Cell{CellID: id, CellMeta: CellMeta{WindowLength: 60_000}, Value: crdt.PN{P: 5}}); err != nil {
			t.Fatal(err)
		}
		if got := r.of("a1").state.find(id) != none; got != c.taken {
			t.Errorf("%s: taken %v", c.name, got)
		}
	}
}

// Different rules are reported once, and once more when they agree again.
func TestRulesDiverge(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	a1, other := r.of("a1"), uint64(8)
	r.sending = func(m *member, msg *Message) {
		if m != a1 {
			msg.Rules = other
		}
	}
	r.run(4 * time.Second)
	other = 7
	r.run(4 * time.Second)
	if d, a := a1.count(RulesDiverged), a1.count(RulesAgree); d != 1 || a != 1 {
		t.Errorf("diverged %d times, agreed %d times", d, a)
	}
}

// A daemon decides before it has any peers.
func TestCountsBeforePeersAreKnown(t *testing.T) {
	e := New(Config{}, Peer{ID: 1, Name: "a1", Region: "a"}, 0, 1)
	for range 3 {
		e.Add(time.Second, testKey(1), epoch, minute, 1, Room{10, 60})
	}
	if got := e.Total(testKey(1), epoch); got != 3 {
		t.Errorf("%d counted, want 3", got)
	}
}

// A peer may request too many repairs, again and again: each is done once.
func TestRepairIsBounded(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	a1, a2 := r.of("a1"), r.of("a2")
	for i := range 100 {
		a1.Add(r.mono(a1), testKey(i), epoch, hour, 1, roomy)
	}
	r.run(time.Second)
	was := a1.state.version
	r.sending = func(m *member, msg *Message) {
		if m == a2 {
			for i := range 10_000 {
				msg.Repair = append(msg.Repair, uint16(i))
			}
		}
	}
	r.run(5 * time.Second)
	if n := a1.state.version - was; n != 100 || a1.count(BucketRepaired) != 1 {
		t.Errorf("%d cells were sent again in %d repairs, want 100 in one", n, a1.count(BucketRepaired))
	}
}

// Names that a peer makes up do not collide here.
func TestHashesOfForgedKeysAreSpread(t *testing.T) {
	s := newState(1<<20, 42)
	ofKeys, ofCells := map[uint32]bool{}, map[uint32]bool{}
	for i := range 10_000 {
		k := crdt.Key(i)
		ofKeys[s.hashKey(k)] = true
		ofCells[s.hash(&CellID{Key: k})] = true
	}
	if len(ofKeys) < 9_990 || len(ofCells) < 9_990 {
		t.Errorf("%d and %d hashes of 10,000 names", len(ofKeys), len(ofCells))
	}
	if other := newState(1, 43); other.hashKey(0) == s.hashKey(0) {
		t.Error("the seed makes no difference")
	}
}

// The counts of a window end together, with the one that is kept longest: else
// a region would have less of it than the others have of the region.
func TestCountsOfAWindowEndTogether(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b", "b")
	r.run(time.Second)
	long := minute
	long.Carry = minute.WindowLength
	for name, span := range map[string]CellMeta{"a1": minute, "a2": long} {
		m := r.of(name)
		m.Add(r.mono(m), testKey(1), epoch, span, 1, roomy)
	}
	want := func(what string, hits uint64) {
		t.Helper()
		for m := range r.up {
			if got := r.total(m.name, 1); got != hits {
				t.Errorf("%s: %s knows %d hits, want %d", what, m.name, got, hits)
			}
		}
	}
	r.run(time.Duration(minute.WindowLength) * time.Millisecond)
	if got := len(r.of("a1").Cells(r.wall(r.of("a1")), nil)); got != 2 {
		t.Errorf("a1 lists %d counts after the end of the shorter one, want 2", got)
	}
	r.run(DefaultGrace + 10*time.Second)
	want("after the shorter one", 2)
	r.restart(r.of("a2"))
	r.run(10 * time.Second)
	want("after a restart", 2)
	r.run(time.Duration(minute.WindowLength)*time.Millisecond + DefaultGrace)
	want("after the longer one", 0)
}

// Hits of a key under an override alone have no rule, and those of other
// daemons have one: all daemons know it in the end, whatever comes first.
func TestRuleOfOverrideIsReplicated(t *testing.T) {
	for _, first := range []string{"a1", "a2", "b1", "b2"} {
		r := newRig(Config{}, "a", "a", "b", "b")
		r.run(time.Second)
		for m := range r.up {
			span := CellMeta{WindowLength: minute.WindowLength}
			if m.name == first {
				span = minute
			}
			m.Add(r.mono(m), testKey(1), epoch, span, 5, roomy)
			r.run(50 * time.Millisecond)
		}
		r.run(5 * time.Second)
		for m := range r.up {
			for _, c := range m.Cells(r.wall(m), nil) {
				if sums := c.Kind == RegionSum && c.Incarnation == RegionIncarnation(first[:1]); sums && c.Rule != minute.Rule {
					t.Errorf("%s knows the rule: %s has %v without it", first, m.name, c)
				}
			}
		}
		if cells := r.cells(r.of("a1")); !slices.Equal(cells, r.cells(r.of("a2"))) {
			t.Errorf("%s knows the rule: a1 and a2 differ", first)
		}
	}
}

// A rule that needs a count for longer than the former one makes all daemons
// keep it for as long, also those without traffic for the key.
func TestLongerCarryIsReplicated(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b", "b")
	r.run(time.Second)
	k := r.keyOf("a2")
	r.add("a1", k, 10)
	r.run(time.Second)
	r.of("a1").Keep(testKey(k), minute.WindowLength)
	r.run(time.Second)
	for m := range r.up {
		for _, c := range m.Cells(r.wall(m), nil) {
			if c.Carry != minute.WindowLength {
				t.Errorf("%s keeps %v for %d ms beyond its end, want %d", m.name, c, c.Carry, minute.WindowLength)
			}
		}
	}
	// The aggregator sent its regional peer the sum of the other region, and
	// gets it back.
	from, to := r.of("b1"), r.of("b2")
	if to.Aggregates(testKey(k)) {
		from, to = to, from
	}
	to.Keep(testKey(k), 2*minute.WindowLength)
	r.run(time.Second)
	sum := from.state.find(CellID{Key: testKey(k), Window: epoch, Kind: RegionSum, Incarnation: RegionIncarnation("a")})
	if sum == none || from.state.meta(from.state.cells.at(sum)).Carry != 2*minute.WindowLength {
		t.Error("the aggregator does not keep a sum as long as its regional peer")
	}
	told := r.of("a1").state.version
	r.of("a1").Keep(testKey(k), minute.WindowLength)
	if r.of("a1").state.version != told {
		t.Error("what is kept as long as it was is told again")
	}
	r.run(time.Duration(minute.WindowLength)*time.Millisecond + DefaultGrace)
	for m := range r.up {
		if got := r.total(m.name, k); got != 10 {
			t.Errorf("%s knows %d hits of 10 that a rule needs", m.name, got)
		}
	}
}
