package wire

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// busy is the message of a daemon with changed cells of so many keys and rules.
func busy(cells, rules int) gossip.Message {
	rng := rand.New(rand.NewPCG(1, 2))
	m := idle()
	m.Lo = m.Hi - min(m.Hi, uint64(cells))
	for range cells {
		rule := rng.IntN(rules)
		width := int64(1000) << (rule % 6)
		m.Cells = append(m.Cells, gossip.Cell{
			CellID: gossip.CellID{
				Key:    crdt.Key(rng.Uint64()),
				Window: now.Millis() / width * width, Incarnation: m.From,
			},
			CellMeta: gossip.CellMeta{Rule: 0x9e3779b97f4a7c15 * uint64(rule+1), WindowLength: width},
			Value:    crdt.PN{P: uint64(rng.IntN(1000))},
		})
	}
	slices.SortFunc(m.Cells, func(a, b gossip.Cell) int { return a.CellID.Compare(b.CellID) })
	return m
}

// logged is the message of a daemon with one key with a sliding log: cells by
// millisecond.
func logged(cells int) gossip.Message {
	m := busy(cells, 1)
	for i := range m.Cells {
		c := &m.Cells[i]
		c.Key, c.Window, c.Value.P = 1<<63, now.Millis()+int64(7*(i-cells)), 1
	}
	return m
}

// scattered is the message of a daemon whose cells have nothing in common.
func scattered(cells int) gossip.Message {
	m := busy(cells, 1)
	for i := range m.Cells {
		c := &m.Cells[i]
		c.Rule, c.WindowLength, c.Carry, c.Regional = 1<<63+uint64(i), math.MaxInt64, math.MaxInt64, true
		c.Kind, c.Incarnation, c.Window = gossip.Others, 1<<63+crdt.Incarnation(i), math.MinInt64
		c.Value, c.Rate = crdt.PN{P: math.MaxUint64, N: math.MaxUint64}, math.MaxUint32
		c.Level, c.Seen = math.MaxUint64, math.MaxUint64
	}
	return m
}

// regions is the message of a daemon with a view of so many regions.
func regions(n int) gossip.Message {
	m := idle()
	m.HasViews = true
	for region := range crdt.Incarnation(n) {
		m.Staleness = append(m.Staleness, gossip.Staleness{Region: region})
	}
	return m
}

// inRegion adds the messages between daemons of a region with two others.
func inRegion(m gossip.Message) gossip.Message {
	m.HasViews, m.Own = true, 101*time.Millisecond
	m.Staleness = []gossip.Staleness{
		{Region: gossip.RegionIncarnation("ap"), Age: 310 * time.Millisecond},
		{Region: gossip.RegionIncarnation("us"), Age: 290 * time.Millisecond},
	}
	slices.SortFunc(m.Staleness, func(a, b gossip.Staleness) int { return compareInts(a.Region, b.Region) })
	return m
}

// answerOnly is the message of a daemon with one shard to a regional peer, an
// answer without cells.
func answerOnly() gossip.Message {
	m := idle()
	m.Stamp, m.Rules, m.Nonce, m.Echo, m.Held = 0, 0, 1<<21-1, 1<<21-1, 60_000
	m.HasViews, m.Own = true, 101*time.Millisecond
	return m
}

// knownCells is a message with cells of one description that the receiver
// knows, without an answer.
func knownCells(n int, kind gossip.Kind) gossip.Message {
	m := busy(n, 1)
	m.Header = gossip.Header{Ready: true, Nonce: 1<<21 - 1}
	m.Answers, m.Ack = false, 0
	for i := range m.Cells {
		c := &m.Cells[i]
		c.CellMeta, c.MetaRef, c.Window = gossip.CellMeta{}, gossip.MetaRef{Number: 17, Known: true}, 40
		if c.Kind = kind; kind == gossip.Others {
			c.Incarnation = m.To
		}
	}
	return m
}

// shards is a message of each of n shards, all with the same content.
func shards(n int, m gossip.Message) []gossip.Message {
	var msgs []gossip.Message
	for i := range n {
		m.Shard, m.Shards = i, n
		msgs = append(msgs, m)
	}
	return msgs
}

// TestSize holds the bytes of frames, and prints them.
func TestSize(t *testing.T) {
	month := idle() // a daemon that has run for a month
	month.Nonce, month.Echo, month.Hi, month.Lo, month.Ack = 1<<41, 1<<41, 1<<30, 1<<30, 1<<30
	small := idle() // most messages of a daemon with one shard
	small.Stamp, small.Rules = 0, 0
	one := busy(1, 1)
	one.Stamp, one.Rules = 0, 0
	for _, test := range []struct {
		name string
		msgs []gossip.Message
		most int // bytes of the frame, or, in hundredths, of each cell
	}{
		{"answer without cells", shards(1, answerOnly()), 22},
		{"1 cell, known", shards(1, knownCells(1, gossip.Daemon)), 26_00},
		{"1 estimate, known", shards(1, knownCells(1, gossip.Others)), 26_00},
		{"4 cells, known", shards(1, knownCells(4, gossip.Daemon)), 14_00},
		{"4 cells, known, 2 with short keys", shards(1, shortKeys()), 11_25},
		{"4096 cells, known", shards(1, knownCells(4096, gossip.Daemon)), 9_90},
		{"idle, without stamp and rules", shards(1, small), 22},
		{"1 cell, without stamp and rules", shards(1, one), 50_00},
		{"idle", shards(1, idle()), 38},
		{"idle after a month", shards(1, month), 48},
		{"idle, in a region of three", shards(1, inRegion(idle())), 63},
		{"idle, 8 shards", shards(8, idle()), 74},
		{"idle, 64 shards, in a region of three", shards(MaxShards, inRegion(idle())), 379},
		{"1 cell", shards(1, busy(1, 1)), 66_00},
		{"10 cells of 3 rules", shards(1, busy(10, 3)), 19_30},
		{"100 cells of 5 rules", shards(1, busy(100, 5)), 12_00},
		{"4096 cells of 1 rule", shards(1, busy(4096, 1)), 9_90},
		{"4096 cells of 20 rules", shards(1, busy(4096, 20)), 11_00},
		{"8 shards of 100 cells of 20 rules", shards(8, busy(100, 20)), 11_40},
		{"1000 stamps of a sliding log", shards(1, logged(1000)), 2_10},
	} {
		frame, cells := mustEncode(t, test.msgs...), 0
		for i := range test.msgs {
			cells += len(test.msgs[i].Cells)
		}
		got := len(frame)
		if cells > 0 {
			got = got * 100 / cells
		}
		t.Logf("%s: %d", test.name, got)
		if got > test.most {
			t.Errorf("%s: %d, want at most %d", test.name, got, test.most)
		}
	}
}
