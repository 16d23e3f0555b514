package gossip

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// A peer that knows a description receives its number alone. Another block of
// windows has another number.
func TestMetasByNumber(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	described, known := 0, 0
	r.sending = func(m *member, msg *Message) {
		for _, c := range msg.Cells {
			switch {
			case m.name != "a1":
			case c.Known:
				known++
			default:
				described++
			}
		}
	}
	const length = 1_000
	for window := range 3 {
		described, known = 0, 0
		m := r.of("a1")
		start := r.wall(m) / length * length
		for i := range 4 {
			m.Add(r.mono(m), testKey(i), start, CellMeta{Rule: 1, WindowLength: length, Carry: 60_000}, 1, roomy)
			r.run(3 * time.Second)
			if got := r.of("b1").Total(testKey(i), start); got != 1 {
				t.Errorf("key %d in window %d: %d of 1", i, window, got)
			}
		}
		if described != 1 || known != 3 {
			t.Errorf("window %d: %d cells described, %d known, want 1 and 3", window, described, known)
		}
		r.run(BlockWindows * length * time.Millisecond)
	}
}

// Numbers that were never described do no harm: the cells are not acknowledged,
// and come again with descriptions.
func TestUnknownMeta(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	r.add("a1", 1, 2)
	r.run(3 * time.Second)
	was := r.of("a1").count(ResyncStarted)
	r.of("b1").links[0].metas = nil
	r.add("a1", 2, 5)
	r.run(5 * time.Second)
	if got := r.total("b1", 2); got != 5 || r.of("b1").count(MetaUnknown) == 0 {
		t.Errorf("b1 knows %d of 5, %d events", got, r.of("b1").count(MetaUnknown))
	}
	if n := r.of("a1").count(ResyncStarted); n > was {
		t.Errorf("%d resyncs", n-was)
	}
}

// A peer may name any number: only its own cells are lost.
func TestMetaNumbersOfALiar(t *testing.T) {
	var known receivedMetas
	minute := CellMeta{WindowLength: 60_000}
	m := Message{Part: Part{Hi: 1, Cells: []Cell{
		{CellMeta: minute, MetaRef: MetaRef{1, false}, CellID: CellID{Window: 60_000}},
		{CellMeta: CellMeta{WindowLength: 1 << 62}, MetaRef: MetaRef{2, false}},
		{CellMeta: minute, MetaRef: MetaRef{3, false}, CellID: CellID{Window: -60_000}},
		{CellMeta: minute, MetaRef: MetaRef{4, false}, CellID: CellID{Window: 1}},
		{CellMeta: CellMeta{WindowLength: 1, Carry: 60_000}, MetaRef: MetaRef{6, false}},
		{MetaRef: MetaRef{1, true}, CellID: CellID{Window: 63}},
		{MetaRef: MetaRef{1, true}, CellID: CellID{Window: 64}},
		{MetaRef: MetaRef{1, true}, CellID: CellID{Window: -1}},
		{MetaRef: MetaRef{2, true}},
		{MetaRef: MetaRef{3, true}},
		{MetaRef: MetaRef{4, true}},
		{MetaRef: MetaRef{5, true}},
		{MetaRef: MetaRef{6, true}},
	}}}
	if unknown := known.named(&m); unknown != 7 || len(m.Cells) != 6 || m.Cells[5].Window != 63*60_000 || known != nil {
		t.Errorf("%d unknown, left %v", unknown, m.Cells)
	}
}

// TestMoreMetasThanNumbers: a peer that knows no more descriptions receives
// those that it does not know in full.
func TestMoreMetasThanNumbers(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	m, start := r.of("a1"), epoch/60_000*60_000
	for round := range uint64(2) {
		for i := range 2 * knownMetas {
			m.Add(r.mono(m), testKey(i), start, CellMeta{Rule: uint64(i + 1), WindowLength: 60_000, Carry: 60_000}, 1, roomy)
		}
		r.run(3 * time.Second)
		for i := range 2 * knownMetas {
			if got := r.of("b1").Total(testKey(i), start); got != round+1 {
				t.Fatalf("round %d: b1 knows %d of key %d", round, got, i)
			}
		}
	}
	if n := len(m.links[0].sentMetas); n != knownMetas {
		t.Errorf("%d numbers, want %d", n, knownMetas)
	}
	if n := r.of("b1").count(MetaUnknown); n > 0 {
		t.Errorf("%d unknown", n)
	}
}

// TestKnownMetas: what a sender takes for known, the receiver knows, whatever
// was lost.
func TestKnownMetas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent sentMetas
		var received receivedMetas
		acked, lost := uint64(0), false
		for hi := uint64(1); hi < 100; hi++ {
			var m Message
			m.Hi, m.Lo = hi, hi-min(1, rapid.Uint64Range(0, 4).Draw(t, "versions"))
			for _, n := range rapid.SliceOfN(rapid.Uint32Range(1, 2*knownMetas), 1, 8).Draw(t, "numbers") {
				c := Cell{CellMeta: CellMeta{Rule: uint64(n), WindowLength: 1}}
				c.MetaRef = MetaRef{n, sent.known(n, acked)}
				if c.Known {
					c.CellMeta = CellMeta{}
				}
				if rapid.IntRange(0, 3).Draw(t, "estimate") == 0 {
					c.Kind = Others
				}
				m.Cells = append(m.Cells, c)
			}
			sent.sent(&m)
			switch rapid.IntRange(0, 9).Draw(t, "fate") {
			case 0:
				lost = true
				continue
			case 1: // the loss is found
				sent.forget()
				lost = false
			}
			want := make([]uint64, len(m.Cells))
			for i := range m.Cells {
				want[i] = uint64(m.Cells[i].Number)
			}
			if unknown := received.named(&m); unknown > 0 {
				t.Fatalf("%d of %d unknown", unknown, len(want))
			}
			for i := range m.Cells {
				if m.Cells[i].Rule != want[i] {
					t.Fatalf("number %d names rule %d", want[i], m.Cells[i].Rule)
				}
			}
			if !lost {
				acked = hi
			}
		}
	})
}

// The aggregator receives a key whole until it acknowledged it, and then its
// first bytes alone.
func TestShortKeys(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	var sent []bool
	r.sending = func(m *member, msg *Message) {
		for i := range msg.Cells {
			if c := &msg.Cells[i]; m.name == "a1" {
				if sent = append(sent, c.Short); c.Short {
					c.Key = c.Key >> (64 - ShortKeyBits) << (64 - ShortKeyBits) // as from a frame
				}
			}
		}
	}
	for range 3 {
		r.add("a1", 1, 1)
		r.add("a1", 2, 1)
		r.run(3 * time.Second)
	}
	if want := []bool{false, false, true, true, true, true}; !slices.Equal(sent, want) {
		t.Errorf("keys sent short: %v, want %v", sent, want)
	}
	for key := range 2 {
		if got := r.total("b1", key+1); got != 3 {
			t.Errorf("b1 knows %d hits of key %d, want 3", got, key+1)
		}
	}
}

// A peer that lacks a message makes the short keys of later ones whole: the
// message after a lost one has the newer count of a busy key.
func TestShortKeysAfterALostMessage(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	r.add("a1", 1, 1)
	r.run(3 * time.Second)
	r.lost = func(from, _ *member) bool { return from.name == "a1" }
	r.add("a1", 1, 5)
	r.run(2 * DefaultWANInterval)
	r.lost = nil
	if got := r.total("b1", 1); got != 1 {
		t.Fatalf("b1 knows %d hits, want 1", got)
	}
	r.add("a1", 1, 7)
	r.run(DefaultWANInterval + 50*time.Millisecond)
	if got := r.total("b1", 1); got != 13 || r.of("b1").count(MetaUnknown) > 0 {
		t.Errorf("b1 knows %d hits, want 13, and %d keys were unknown", got, r.of("b1").count(MetaUnknown))
	}
}

// A peer that does not know a short key ignores the cell and acknowledges
// nothing: the cell comes again with its whole key.
func TestUnknownKey(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(time.Second)
	r.add("a1", 1, 2)
	r.run(3 * time.Second)
	was := r.of("a1").count(ResyncStarted)
	r.of("b1").links[0].keys = nil
	r.add("a1", 1, 3)
	r.add("a1", 2, 5)
	r.run(5 * time.Second)
	if a, b := r.total("b1", 1), r.total("b1", 2); a != 5 || b != 5 || r.of("b1").count(MetaUnknown) != 1 {
		t.Errorf("b1 knows %d and %d of 5 and 5, %d events", a, b, r.of("b1").count(MetaUnknown))
	}
	if n := r.of("a1").count(ResyncStarted); n > was {
		t.Errorf("%d resyncs", n-was)
	}
}

// keyLink is one direction of a link, as far as short keys depend on it.
type keyLink struct {
	version, acked, sent, reached uint64 // of the sender
	contiguous                    uint64 // of the receiver
	table, known                  keyTable
	flight                        []Message // with whole keys, but marked as short
}

// send sends a message with cells of keys that share a few places.
func (l *keyLink) send(t *rapid.T) {
	l.version += rapid.Uint64Range(0, 2).Draw(t, "changes")
	m := Message{Shards: 1, Part: Part{Lo: l.sent, Hi: max(l.sent, l.version), Complete: true}}
	if m.Hi > m.Lo+1 && rapid.Bool().Draw(t, "incomplete") {
		m.Hi, m.Complete = m.Lo+1, false
	}
	for _, k := range rapid.SliceOfNDistinct(rapid.Uint64Range(0, 5), 1, 3, rapid.ID[uint64]).Draw(t, "keys") {
		m.Cells = append(m.Cells, Cell{CellID: CellID{Key: crdt.Key(k/3<<48 | k)}})
	}
	l.table.shorten(&m, l.acked, l.reached)
	l.sent, l.reached = m.Hi, max(l.reached, m.Hi)
	l.flight = append(l.flight, m)
}

// receive receives one of the messages under way. It returns its unknown keys,
// and fails if another key than the one that was shortened is restored.
func (l *keyLink) receive(t *rapid.T, at int) (unknown int) {
	m := l.flight[at]
	m.Cells = slices.Clone(m.Cells)
	slices.Reverse(m.Cells) // what an end notes does not depend on the order
	want := slices.Clone(m.Cells)
	unknown = l.known.restore(&m, l.contiguous, true)
	if notes(&m) {
		l.known.note(&m)
	}
	for i := 0; unknown == 0 && i < len(want); i++ {
		if m.Cells[i].Key != want[i].Key {
			t.Fatalf("key %x was restored as %x", want[i].Key, m.Cells[i].Key)
		}
	}
	for i := range m.Cells {
		if !slices.ContainsFunc(want, func(c Cell) bool { return c.Key == m.Cells[i].Key }) {
			t.Fatalf("key %x was restored, and never sent", m.Cells[i].Key)
		}
	}
	if unknown == 0 && m.Lo <= l.contiguous {
		l.contiguous = max(l.contiguous, m.Hi)
	}
	return unknown
}

// TestShortKeysOfALinkMadeAnew: a peer that dropped its link receives an old
// copy of a message, and then a short key of a later one that it lacks.
func TestShortKeysOfALinkMadeAnew(t *testing.T) {
	first, second := crdt.Key(7), crdt.Key(1<<40|7) // of one place
	message := func(k crdt.Key, lo, hi uint64) *Message {
		return &Message{Shards: 1, Part: Part{Lo: lo, Hi: hi, Complete: true, Cells: []Cell{{CellID: CellID{Key: k}}}}}
	}
	if keyPlace(first, 1) != keyPlace(second, 1) {
		t.Fatal("the keys have two places")
	}
	var sender, anew keyTable
	sender.shorten(message(second, 30, 50), 30, 30)
	short := message(second, 50, 55)
	sender.shorten(short, 50, 50)
	if !short.Cells[0].Short {
		t.Fatal("the key is not short")
	}
	anew.note(message(first, 0, 30))
	if unknown := anew.restore(short, 30, false); unknown != 1 {
		t.Errorf("key %x was restored as %x", second, short.Cells[0].Key)
	}
}

// rewind makes the sender send again what was not acknowledged.
func (l *keyLink) rewind() { l.sent, l.table = l.acked, nil }

// TestRestoredKeys: a short key is never restored as another one, whatever
// messages are lost, repeated and reordered; and always, as long as none are.
func TestRestoredKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l keyLink
		inOrder := rapid.Bool().Draw(t, "in order")
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2, 3:
				l.send(t)
			case 4, 5, 6:
				if len(l.flight) == 0 {
					continue
				}
				at := 0
				if !inOrder {
					at = rapid.IntRange(0, len(l.flight)-1).Draw(t, "message")
				}
				if unknown := l.receive(t, at); unknown > 0 && inOrder {
					t.Fatalf("%d keys unknown, and no message was lost", unknown)
				}
				if inOrder || rapid.Bool().Draw(t, "once") {
					l.flight = slices.Delete(l.flight, at, at+1)
				}
			case 7, 8:
				l.acked = l.contiguous
				l.sent = max(l.sent, l.acked)
			default:
				l.rewind()
			}
		}
	})
}
