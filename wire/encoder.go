package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// Encoder encodes frames of counts, one after the other, and reuses the memory
// of the one before. The zero value is ready; it is not safe for concurrent
// use. It writes tables after the parts that
// refer to their rows, and inserts lengths before their content by moving it,
// so that it walks the messages once.
type Encoder struct {
	b []byte

	from, to     crdt.Incarnation
	incarnations table[crdt.Incarnation] // without sender and receiver
	metas        table[cellMeta]
	windows      []metaWindows // of the metas

	ends               ends
	numbers, distances []uint64 // columns under construction
	cells, refused     int
}

// metaWindows holds the windows of the first and the latest cell with a meta.
type metaWindows struct{ first, latest int64 }

// cellMeta is a row of the table of metas: a description with its number, or
// the number of one that the receiver knows.
type cellMeta struct {
	gossip.CellMeta
	gossip.MetaRef
}

// metaOf returns the row of a cell, and its window there.
func metaOf(c *gossip.Cell) (cellMeta, int64) {
	if c.Known {
		return cellMeta{MetaRef: c.MetaRef}, c.PlaceInBlock()
	}
	return cellMeta{c.CellMeta, c.MetaRef}, c.Window
}

// reset makes the encoder append a frame to b.
func (e *Encoder) reset(b []byte) {
	incarnations, metas := e.incarnations.emptied(), e.metas.emptied()
	*e = Encoder{
		b: b, incarnations: incarnations, metas: metas, windows: e.windows[:0],
		numbers: e.numbers[:0], distances: e.distances[:0],
	}
}

// frame encodes the payload of a frame.
func (e *Encoder) frame(msgs []gossip.Message) error {
	if err := checkFrame(msgs); err != nil {
		return err
	}
	head := &msgs[0]
	e.from, e.to = head.From, head.To

	e.uint(frameLastShard, uint64(head.Shards-1))
	e.flag(frameUnready, !head.Ready)
	e.uint(frameNonce, head.Nonce)
	e.uint(frameEcho, head.Echo)
	e.uint(frameHeld, head.Held)
	before := &gossip.Message{Shard: -1}
	for i := range msgs {
		if err := e.part(before, &msgs[i]); err != nil {
			return err
		}
		before = &msgs[i]
	}
	e.words(frameIncarnations, e.incarnations.values)
	for i := range e.metas.values {
		e.meta(&e.metas.values[i], e.windows[i].first)
	}
	e.word(frameRules, head.Rules)
	e.word(frameStamp, uint64(head.Stamp))
	return nil
}

// meta encodes a row of the table of metas.
func (e *Encoder) meta(s *cellMeta, window int64) {
	at := e.open(frameMetas)
	if s.Known {
		e.uint(metaKnown, uint64(s.Number))
		e.uint(metaWindow, zigzag(window))
	} else {
		e.word(metaRule, s.Rule)
		e.length(s.WindowLength)
		e.multiple(metaCarryWindows, metaCarryMillis, s.Carry, s.WindowLength, false)
		e.flag(metaRegional, s.Regional)
		e.multiple(metaWindow, metaWindowMillis, window, s.WindowLength, true)
		e.uint(metaNumber, uint64(s.Number))
	}
	e.close(at)
}

// length encodes a window length in the longest unit that it is a multiple of.
func (e *Encoder) length(ms int64) {
	switch {
	case ms%minute == 0:
		e.uint(metaMinutes, uint64(ms/minute))
	case ms%second == 0:
		e.uint(metaSeconds, uint64(ms/second))
	default:
		e.uint(metaMillis, uint64(ms))
	}
}

// multiple encodes milliseconds as a multiple of a window length, or as they
// are when they are none.
func (e *Encoder) multiple(windows, millis tag, ms, length int64, signed bool) {
	t := millis
	if ms%length == 0 {
		t, ms = windows, ms/length
	}
	if signed {
		e.uint(t, zigzag(ms))
		return
	}
	e.uint(t, uint64(ms))
}

// checkFrame returns an error unless msgs can share a frame.
func checkFrame(msgs []gossip.Message) error {
	if len(msgs) == 0 {
		return malformed("no messages, want at least one")
	}
	head := &msgs[0]
	switch {
	case head.From == head.To:
		return malformed("message from %v to itself", head.From)
	case head.Shards < 1 || head.Shards > MaxShards:
		return malformed("message of one of %d shards, want 1 to %d", head.Shards, MaxShards)
	}
	after := 0
	for i := range msgs {
		m := &msgs[i]
		if m.From != head.From || m.To != head.To || m.Shards != head.Shards || m.Header != head.Header {
			return malformed("message %d differs from message 0 in what a frame holds once", i)
		}
		if m.Shard < after || m.Shard >= m.Shards {
			return malformed("message %d is of shard %d, want %d to %d", i, m.Shard, after, m.Shards-1)
		}
		after = m.Shard + 1
	}
	return nil
}

// part encodes the part of one shard. before is the message before it in the
// frame.
func (e *Encoder) part(before, m *gossip.Message) error {
	if err := checkPart(m); err != nil {
		return err
	}
	at := e.open(frameParts)
	e.uint(partSkipped, uint64(m.Shard-before.Shard-1))
	e.uint(partHi, m.Hi)
	e.uint(partChanged, m.Hi-m.Lo)
	if m.Answers {
		e.uint(partAck, m.Ack+1)
	}
	e.flag(partIncomplete, !m.Complete)
	e.uint(partUnsent, millis(m.Unsent))
	if m.HasViews && !(before.HasViews && sameViews(before, m)) {
		e.views(m)
	}
	if err := e.allCells(m); err != nil {
		return err
	}
	if err := e.allRefused(m); err != nil {
		return err
	}
	e.digests(m.Digests)
	e.repair(m.Repair)
	if err := e.rightsMessages(m); err != nil {
		return err
	}
	e.flag(partNoViews, before.HasViews && !m.HasViews)
	if err := e.loads(m); err != nil {
		return err
	}
	e.close(at)
	return nil
}

// checkPart returns an error unless the fields of m beside its cells are valid.
func checkPart(m *gossip.Message) error {
	switch {
	case m.Lo > m.Hi:
		return malformed("shard %d: versions (%d, %d] are none", m.Shard, m.Lo, m.Hi)
	case m.Ack == math.MaxUint64 || m.Ack > 0 && !m.Answers:
		return malformed("shard %d: acknowledgement of version %d, answers %v", m.Shard, m.Ack, m.Answers)
	case m.Unsent < 0 || m.Own < 0:
		return malformed("shard %d: age of %v or %v, want 0 or more", m.Shard, m.Unsent, m.Own)
	case !m.HasViews && (m.Own != 0 || len(m.Staleness) > 0):
		return malformed("shard %d: views of a message without", m.Shard)
	case len(m.Staleness) > MaxViews:
		return &SizeError{What: "regions", Got: len(m.Staleness), Max: MaxViews}
	}
	for i := range m.Staleness {
		if i > 0 && m.Staleness[i].Region <= m.Staleness[i-1].Region {
			return malformed("shard %d: regions are not ascending at %d", m.Shard, i)
		}
		if m.Staleness[i].Age < 0 {
			return malformed("shard %d: age of %v, want 0 or more", m.Shard, m.Staleness[i].Age)
		}
	}
	for i := 1; i < len(m.Digests); i++ {
		if m.Digests[i].Bucket <= m.Digests[i-1].Bucket {
			return malformed("shard %d: digests are not ascending at %d", m.Shard, i)
		}
	}
	return nil
}

// sameViews reports whether two messages will arrive with the same views.
func sameViews(a, b *gossip.Message) bool {
	return millis(a.Own) == millis(b.Own) && slices.EqualFunc(a.Staleness, b.Staleness, func(x, y gossip.Staleness) bool {
		return x.Region == y.Region && millis(x.Age) == millis(y.Age)
	})
}

func (e *Encoder) views(m *gossip.Message) {
	at := e.open(partViews)
	e.uint(viewsOwn, millis(m.Own))
	e.numbers = e.numbers[:0]
	for i := range m.Staleness {
		e.numbers = append(e.numbers, e.incarnation(m.Staleness[i].Region))
	}
	e.required(viewsRegions, e.numbers)
	e.numbers = e.numbers[:0]
	for i := range m.Staleness {
		e.numbers = append(e.numbers, millis(m.Staleness[i].Age))
	}
	e.column(viewsAges, e.numbers)
	e.close(at)
}

func (e *Encoder) digests(digests []gossip.BucketDigest) {
	if len(digests) == 0 {
		return
	}
	e.numbers = e.numbers[:0]
	after := uint16(0)
	for i := range digests {
		e.numbers = append(e.numbers, uint64(digests[i].Bucket-after))
		after = digests[i].Bucket + 1
	}
	e.column(partBuckets, e.numbers)
	at := e.open(partDigests)
	for i := range digests {
		e.b = binary.LittleEndian.AppendUint64(e.b, uint64(digests[i].Digest))
	}
	e.close(at)
}

// repair encodes the buckets in order, each once.
func (e *Encoder) repair(buckets []uint16) {
	if !slices.IsSorted(buckets) {
		buckets = slices.Sorted(slices.Values(buckets))
	}
	e.numbers = e.numbers[:0]
	after := uint16(0)
	for i, bucket := range buckets {
		if i > 0 && bucket == buckets[i-1] {
			continue
		}
		e.numbers = append(e.numbers, uint64(bucket-after))
		after = bucket + 1
	}
	e.required(partRepair, e.numbers)
}

// incarnation returns the number of an incarnation in the frame.
func (e *Encoder) incarnation(s crdt.Incarnation) uint64 {
	switch s {
	case e.from:
		return 0
	case e.to:
		return 1
	}
	i, _ := e.incarnations.number(s)
	return uint64(i) + 2
}
