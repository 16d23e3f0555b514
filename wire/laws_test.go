package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// TestRoundTrip: encoded messages decode to the same messages, bit by bit, and
// back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := genMessages().Draw(t, "messages")
		prefix := []byte("before")
		out, err := Encode(prefix, msgs)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(out, prefix) {
			t.Fatalf("Encode changed what it appends to: %x", out)
		}
		frame := out[len(prefix):]
		got, err := new(Decoder).Decode(msgs[0].From, msgs[0].To, frame)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(msgs, got); d != "" {
			t.Fatalf("messages (-sent +received):\n%s", d)
		}
		again, err := Encode(nil, got)
		if err != nil || !bytes.Equal(again, frame) {
			t.Fatalf("encoded again: %v\n got %x\nwant %x", err, again, frame)
		}
	})
}

// TestReusedCodec: an encoder and a decoder give the same for a frame whatever
// they coded before, faults included.
func TestReusedCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Encoder
		var d Decoder
		for range 2 {
			msgs := genMessages().Draw(t, "messages")
			frame, err := Encode(nil, msgs)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Encode(nil, msgs); err != nil || !bytes.Equal(got, frame) {
				t.Fatalf("encoded %v\n got %x\nwant %x", err, got, frame)
			}
			if rapid.Bool().Draw(t, "broken") {
				_, want := new(Decoder).Decode(msgs[0].From, msgs[0].To, frame[:len(frame)-1])
				if msgs, err := d.Decode(msgs[0].From, msgs[0].To, frame[:len(frame)-1]); err == nil || err.Error() != want.Error() || msgs != nil {
					t.Fatalf("decoded %v, %v, want %v", msgs, err, want)
				}
			}
			got, err := d.Decode(msgs[0].From, msgs[0].To, frame)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(msgs, got); diff != "" {
				t.Fatalf("messages (-sent +received):\n%s", diff)
			}
		}
	})
}

// TestLayout holds the codec to the description of the layout: another decoder,
// written after it, reads every frame completely and gets the same messages.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := genMessages().Draw(t, "messages")
		frame, err := Encode(nil, msgs)
		if err != nil {
			t.Fatal(err)
		}
		if fault := layoutFault(msgs, frame[sealSize:]); fault != "" {
			t.Fatal(fault)
		}
	})
}

// TestFullTable: a frame with more descriptions than the table has rows keeps
// the last one in the last row.
func TestFullTable(t *testing.T) {
	for _, test := range []struct {
		name string
		meta func(c *gossip.Cell, i int)
	}{
		{"in full", func(c *gossip.Cell, i int) { c.Rule = uint64(i) }},
		{"known", func(c *gossip.Cell, i int) {
			c.CellMeta, c.Number, c.Known, c.Window = gossip.CellMeta{}, uint32(i)+1, true, int64(i%64)
		}},
	} {
		m := busy(3*maxRows, 1)
		for i := range m.Cells {
			test.meta(&m.Cells[i], i)
		}
		// The last rows are named again: one of the table, one that was
		// replaced, the latest, and that by all cells of a group.
		test.meta(&m.Cells[3*maxRows-3], 7)
		test.meta(&m.Cells[3*maxRows-2], 2*maxRows)
		test.meta(&m.Cells[3*maxRows-1], 2*maxRows)
		for i := range 3 {
			c := m.Cells[i]
			c.Kind, c.Incarnation = gossip.Given, m.To
			test.meta(&c, 2*maxRows+i/2)
			m.Cells = append(m.Cells, c)
		}
		frame := mustEncode(t, m)
		got, err := decodeFrame(frame)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff([]gossip.Message{m}, got); diff != "" {
			t.Errorf("%s: messages (-sent +received):\n%s", test.name, diff)
		}
		if fault := layoutFault([]gossip.Message{m}, frame[sealSize:]); fault != "" {
			t.Errorf("%s: %s", test.name, fault)
		}
		if again := mustEncode(t, got...); !bytes.Equal(again, frame) {
			t.Errorf("%s: encoded again it is another frame", test.name)
		}
	}
}

// layoutFault compares messages with those that the decoder of the layout finds
// in the content of their frame; "" when they are equal.
func layoutFault(msgs []gossip.Message, content []byte) string {
	l := layoutReader{b: content, from: msgs[0].From, to: msgs[0].To}
	got := l.frame()
	if len(l.b) > 0 {
		return fmt.Sprintf("%d bytes are left", len(l.b))
	}
	return cmp.Diff(msgs, got, cmpopts.EquateEmpty())
}

// TestOrderDoesNotMatter: cells, refusals and buckets to repair in any order,
// the latter two more than once, make one frame, and stay as they are.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := genMessages().Draw(t, "messages")
		want, err := Encode(nil, msgs)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		for i := range msgs {
			for _, r := range msgs[i].Refused {
				if rng.IntN(2) == 0 {
					r.Reason = gossip.NoRoom // the earlier of two; it is not sent
					msgs[i].Refused = append([]gossip.Refusal{r}, msgs[i].Refused...)
				}
			}
			msgs[i].Repair = append(msgs[i].Repair, msgs[i].Repair...)
			cells, repair := msgs[i].Cells, msgs[i].Repair
			rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
			rng.Shuffle(len(repair), func(i, j int) { repair[i], repair[j] = repair[j], repair[i] })
			if rng.IntN(2) == 0 { // sent once each, so that their order is free
				last := latest(msgs[i].Refused)
				rng.Shuffle(len(last), func(i, j int) { last[i], last[j] = last[j], last[i] })
				msgs[i].Refused = last
			}
		}
		before := clone(msgs)
		got, err := Encode(nil, msgs)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("shuffled: %v\n got %x\nwant %x", err, got, want)
		}
		if d := cmp.Diff(before, msgs); d != "" {
			t.Fatalf("Encode changed its messages:\n%s", d)
		}
	})
}

func clone(msgs []gossip.Message) []gossip.Message {
	var out []gossip.Message
	for _, m := range msgs {
		m.Cells = append([]gossip.Cell(nil), m.Cells...)
		m.Refused = append([]gossip.Refusal(nil), m.Refused...)
		m.Repair = append([]uint16(nil), m.Repair...)
		out = append(out, m)
	}
	return out
}

// TestDurationsRoundUp: a view never arrives younger than it is.
func TestDurationsRoundUp(t *testing.T) {
	most := time.Duration(maxMillis) * time.Millisecond
	for _, test := range []struct{ sent, received time.Duration }{
		{0, 0},
		{1, time.Millisecond},
		{time.Millisecond, time.Millisecond},
		{time.Millisecond + 1, 2 * time.Millisecond},
		{most, most},
		{1<<63 - 1, most}, // there is no greater whole one
	} {
		m := idle()
		m.HasViews, m.Unsent, m.Own = true, test.sent, test.sent
		m.Staleness = []gossip.Staleness{{Region: 9, Age: test.sent}}
		got, err := decodeFrame(mustEncode(t, m))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []time.Duration{got[0].Unsent, got[0].Own, got[0].Staleness[0].Age} {
			if d != test.received {
				t.Errorf("%v arrives as %v, want %v", test.sent, d, test.received)
			}
		}
	}
}

// TestDamage: a frame with any bit flipped, or cut anywhere, is refused.
func TestDamage(t *testing.T) {
	frame := mustEncode(t, example())
	for i := range frame {
		for bit := range 8 {
			broken := bytes.Clone(frame)
			broken[i] ^= 1 << bit
			if msgs, err := decodeFrame(broken); err == nil || msgs != nil {
				t.Fatalf("bit %d of byte %d flipped: %v, %v", bit, i, msgs, err)
			}
		}
		if msgs, err := decodeFrame(frame[:i]); err == nil || msgs != nil {
			t.Fatalf("cut to %d bytes: %v, %v", i, msgs, err)
		}
	}
}

// TestOtherStream: a frame of or for another incarnation is refused.
func TestOtherStream(t *testing.T) {
	m := example()
	frame := mustEncode(t, m)
	for _, of := range [][2]crdt.Incarnation{{m.To, m.From}, {m.From + 1, m.To}, {m.From, m.To + 1}, {m.From, 0}, {0, m.To}} {
		var sum *ChecksumError
		if msgs, err := new(Decoder).Decode(of[0], of[1], frame); !errors.As(err, &sum) || msgs != nil {
			t.Errorf("from %v to %v: %v, %v", of[0], of[1], msgs, err)
		}
	}
}

// TestNothingShared: messages do not change with the frame that they came in,
// nor with each other.
func TestNothingShared(t *testing.T) {
	a, b := example(), example()
	a.Shards, b.Shards, b.Shard = 2, 2, 1
	frame := mustEncode(t, a, b)
	got, err := decodeFrame(frame)
	if err != nil {
		t.Fatal(err)
	}
	clear(frame)
	got[0].Staleness[0].Age++
	got[0].Cells[0].Rate++
	if d := cmp.Diff(b, got[1]); d != "" {
		t.Errorf("second message (-sent +received):\n%s", d)
	}
}

// TestFit: messages that Fit combines can be encoded together.
func TestFit(t *testing.T) {
	for _, test := range []struct {
		name string
		msgs []gossip.Message
		want []int // messages of each frame
	}{
		{"idle", shards(MaxShards, inRegion(idle())), []int{64}},
		{"everything", shards(MaxShards, example()), []int{64}},
		{"sweep", shards(8, busy(4096, 99)), []int{6, 2}},
		{"many regions", shards(MaxShards, regions(MaxViews)), []int{31, 31, 2}},
		{"nothing in common", shards(4, scattered(10_000)), []int{2, 2}},
	} {
		var got []int
		for msgs := test.msgs; len(msgs) > 0; msgs = msgs[got[len(got)-1]:] {
			got = append(got, Fit(msgs))
			if _, err := Encode(nil, msgs[:got[len(got)-1]]); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: frames of %d messages, want %d", test.name, got, test.want)
		}
	}
}
