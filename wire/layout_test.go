package wire

import (
	"encoding/binary"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
)

// layoutReader is a second decoder, written after the comment of layout.go with
// its numbers and without any check: it reads one field after the other.
type layoutReader struct {
	b            []byte
	from, to     crdt.Incarnation
	incarnations []crdt.Incarnation
	rows         []cellMeta
	latest       []int64
}

func (l *layoutReader) byte() byte {
	b := l.b[0]
	l.b = l.b[1:]
	return b
}

func (l *layoutReader) uint() uint64 {
	v, n := binary.Uvarint(l.b)
	l.b = l.b[n:]
	return v
}

// maybe reads a number if bit i of the flags is set.
func (l *layoutReader) maybe(flags byte, i int) uint64 {
	if flags>>i&1 == 0 {
		return 0
	}
	return l.uint()
}

func (l *layoutReader) int() int64 {
	v := l.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (l *layoutReader) word() uint64 {
	v := binary.LittleEndian.Uint64(l.b)
	l.b = l.b[8:]
	return v
}

func (l *layoutReader) key() crdt.Key {
	v := binary.BigEndian.Uint64(l.b)
	l.b = l.b[8:]
	return crdt.Key(v)
}

func (l *layoutReader) age() time.Duration { return time.Duration(l.uint()) * time.Millisecond }

func (l *layoutReader) incarnation() crdt.Incarnation {
	n := l.uint()
	if n == uint64(len(l.incarnations))+2 {
		l.incarnations = append(l.incarnations, crdt.Incarnation(l.word()))
	}
	return append([]crdt.Incarnation{l.from, l.to}, l.incarnations...)[n]
}

// column reads n numbers if bit i of the flags is set, and zeros otherwise.
func (l *layoutReader) column(flags byte, i, n int) []uint64 {
	column := make([]uint64, n)
	for j := range column {
		column[j] = l.maybe(flags, i)
	}
	return column
}

func (l *layoutReader) frame() []gossip.Message {
	flags := l.byte()
	head := gossip.Message{From: l.from, To: l.to}
	head.Ready = flags&1 == 0
	head.Shards = int(l.maybe(flags, 1)) + 1
	head.Nonce = l.uint()
	head.Echo, head.Held = l.maybe(flags, 2), l.maybe(flags, 2)
	if flags>>3&1 != 0 {
		head.Rules = l.word()
	}
	if flags>>4&1 != 0 {
		head.Stamp = hlc.Timestamp(l.word())
	}
	var msgs []gossip.Message
	before := gossip.Message{Shard: -1}
	for len(l.b) > 0 {
		m := head
		l.part(&before, &m)
		msgs = append(msgs, m)
		before = m
	}
	return msgs
}

func (l *layoutReader) part(before, m *gossip.Message) {
	flags, rare := l.byte(), byte(0)
	if flags>>7 != 0 {
		rare = l.byte()
	}
	m.Shard = before.Shard + 1 + int(l.maybe(flags, 6))
	m.Hi = l.uint()
	m.Lo = m.Hi - l.maybe(flags, 0)
	m.Answers, m.Ack = flags>>1&1 != 0, l.maybe(flags, 1)
	m.Complete = flags>>2&1 == 0
	m.Unsent = time.Duration(l.maybe(flags, 3)) * time.Millisecond
	switch {
	case flags>>4&1 != 0:
		own := l.uint()
		m.HasViews, m.Own = true, time.Duration(own>>1)*time.Millisecond
		for n := l.maybe(byte(own&1), 0); n > 0; n-- {
			m.Staleness = append(m.Staleness, gossip.Staleness{Region: l.incarnation(), Age: l.age()})
		}
	case rare>>5&1 == 0:
		m.HasViews, m.Own, m.Staleness = before.HasViews, before.Own, before.Staleness
	}
	for more := flags>>5&1 != 0; more; {
		more = l.group(m)
	}
	window := int64(0)
	for n := l.maybe(rare, 0); n > 0; n-- {
		head := l.byte()
		id := gossip.CellID{Kind: gossip.Kind(head & 7), Incarnation: l.incarnation(), Key: l.key()}
		window += l.int()
		id.Window = window
		m.Refused = append(m.Refused, gossip.Refusal{CellID: id, Reason: gossip.Reason(head>>3 + 1)})
	}
	after := uint64(0)
	for n := l.maybe(rare, 1); n > 0; n-- {
		bucket := after + l.uint()
		after = bucket + 1
		m.Digests = append(m.Digests, gossip.BucketDigest{Bucket: uint16(bucket), Digest: crdt.Digest(l.word())})
	}
	after = 0
	for n := l.maybe(rare, 2); n > 0; n-- {
		bucket := after + l.uint()
		after = bucket + 1
		m.Repair = append(m.Repair, uint16(bucket))
	}
	for n := l.maybe(rare, 3); n > 0; n-- {
		head := l.byte()
		r := gossip.RightsMessage{Kind: gossip.RightsMessageKind(head & 7), Key: l.key(), Window: l.int(), Rule: l.word()}
		r.Rights, r.Second, r.Need = l.uint(), l.uint(), l.uint()
		if head>>3&1 != 0 {
			r.For = l.incarnation()
		}
		m.RightsMessages = append(m.RightsMessages, r)
	}
	window = 0
	for n := l.maybe(rare, 4); n > 0; n-- {
		head := l.uint()
		r := gossip.LoadReport{Key: l.key(), Others: head&1 != 0}
		r.Offered = head >> 3
		if head>>2&1 != 0 {
			window += l.int()
		}
		r.Window, r.Doubted = window, l.maybe(byte(head), 1)
		m.Loads = append(m.Loads, r)
	}
}

// group reads a group and reports whether another one follows.
func (l *layoutReader) group(m *gossip.Message) bool {
	head, columns := l.byte(), byte(0)
	if head>>7 != 0 {
		columns = l.byte()
	}
	id := gossip.CellID{Kind: gossip.Kind(head & 7), Incarnation: l.from}
	if id.Kind == gossip.Others || id.Kind == gossip.Given {
		id.Incarnation = l.to
	}
	if head>>3&1 != 0 {
		id.Incarnation = l.incarnation()
	}
	n, refs := 1, 1
	if v := l.maybe(head, 4); v > 0 {
		n = int(v >> 1)
		if v&1 != 0 {
			refs = n
		}
	}
	keys := n
	if k := l.maybe(columns, 1); k > 0 {
		keys = int(k)
	}
	short := 0
	if head>>6&1 != 0 {
		if short = 1; n > 1 {
			short = int(l.uint())
		}
	}
	var names []crdt.Key
	for i := range keys {
		if i < short {
			names = append(names, crdt.Key(l.byte())<<56|crdt.Key(l.byte())<<48)
		} else {
			names = append(names, l.key())
		}
	}
	more := l.column(columns, 1, keys)
	ref := l.column(1, 0, refs)
	windows, admitted := l.column(columns, 0, n), l.column(1, 0, n)
	refunded, rates := l.column(columns, 2, n), l.column(columns, 5, n)
	levels, seen := l.column(columns, 3, n), l.column(columns, 4, n)
	row := 0
	for i := range n {
		if len(ref) > i {
			row = l.row(ref[i])
		}
		l.latest[row] += int64(windows[i]>>1) ^ -int64(windows[i]&1)
		c := gossip.Cell{CellID: id, CellMeta: l.rows[row].CellMeta, MetaRef: l.rows[row].MetaRef, Rate: uint32(rates[i])}
		c.Key, c.Window, c.Value = names[0], l.latest[row], crdt.PN{P: admitted[i], N: refunded[i]}
		c.Level, c.Seen, c.Short = levels[i], seen[i], keys-len(names) < short
		m.Cells = append(m.Cells, c)
		if more[0] > 0 {
			more[0]--
		} else {
			names, more = names[1:], more[1:]
		}
	}
	return head>>5&1 != 0
}

// row returns the row of a ref.
func (l *layoutReader) row(ref uint64) int {
	if ref > 0 && ref < 1025 {
		return int(ref) - 1
	}
	var s cellMeta
	var window int64
	if ref == 0 {
		form := l.byte()
		if form>>6&1 != 0 {
			s.Rule = l.word()
		}
		s.WindowLength = int64(l.uint()) * [...]int64{1, 1000, 60_000}[form&3]
		s.Carry = int64(l.maybe(form, 2))*s.WindowLength + int64(l.maybe(form, 3))
		s.Regional = form>>4&1 != 0
		window = l.int()
		if form>>5&1 == 0 {
			window *= s.WindowLength
		}
		s.Number = uint32(l.maybe(form, 7))
	} else {
		s.Known, s.Number, window = true, uint32((ref-1025)/64)+1, int64((ref-1025)%64)
	}
	if len(l.rows) == 1024 {
		l.rows, l.latest = l.rows[:1023], l.latest[:1023]
	}
	l.rows, l.latest = append(l.rows, s), append(l.latest, window)
	return len(l.rows) - 1
}
