package wire

import (
	"math"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// Encoder encodes frames of counts, one after the other, and reuses the memory
// of the one before. The zero value is ready; it is not safe for concurrent
// use. It walks the cells of a message a few times, and its messages once.
type Encoder struct {
	b []byte

	from, to     crdt.Incarnation
	incarnations table[crdt.Incarnation] // without sender and receiver
	rows         rows

	ends           ends
	refs, columns  []uint64 // under construction
	cells, refused int
}

// reset makes the encoder append a frame to b.
func (e *Encoder) reset(b []byte) {
	incarnations, rows := e.incarnations.emptied(), e.rows.emptied()
	*e = Encoder{b: b, incarnations: incarnations, rows: rows, refs: e.refs[:0], columns: e.columns[:0]}
}

// frame encodes the content of a frame.
func (e *Encoder) frame(msgs []gossip.Message) error {
	if err := checkFrame(msgs); err != nil {
		return err
	}
	head := &msgs[0]
	e.from, e.to = head.From, head.To

	e.byte(flag(frameUnready, !head.Ready) | flag(frameShards, head.Shards > 1) |
		flag(frameEcho, head.Echo|head.Held != 0) | flag(frameRules, head.Rules != 0) | flag(frameStamp, head.Stamp != 0))
	e.optional(uint64(head.Shards - 1))
	e.uint(head.Nonce)
	if head.Echo|head.Held != 0 {
		e.uint(head.Echo)
		e.uint(head.Held)
	}
	if head.Rules != 0 {
		e.word(head.Rules)
	}
	if head.Stamp != 0 {
		e.word(uint64(head.Stamp))
	}
	before := &gossip.Message{Shard: -1}
	for i := range msgs {
		if err := e.part(before, &msgs[i]); err != nil {
			return err
		}
		before = &msgs[i]
	}
	return nil
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
	views := m.HasViews && !(before.HasViews && sameViews(before, m))
	skipped, unsent := m.Shard-before.Shard-1, millis(m.Unsent)
	rare := flag(rareRefused, len(m.Refused) > 0) | flag(rareDigests, len(m.Digests) > 0) |
		flag(rareRepair, len(m.Repair) > 0) | flag(rareRights, len(m.RightsMessages) > 0) |
		flag(rareLoads, len(m.Loads) > 0) | flag(rareNoViews, before.HasViews && !m.HasViews)
	e.byte(flag(partChanged, m.Hi != m.Lo) | flag(partAnswers, m.Answers) | flag(partIncomplete, !m.Complete) |
		flag(partUnsent, unsent != 0) | flag(partViews, views) | flag(partCells, len(m.Cells) > 0) |
		flag(partSkipped, skipped != 0) | flag(partRare, rare != 0))
	if rare != 0 {
		e.byte(rare)
	}
	e.optional(uint64(skipped))
	e.uint(m.Hi)
	e.optional(m.Hi - m.Lo)
	if m.Answers {
		e.uint(m.Ack)
	}
	e.optional(unsent)
	if views {
		e.views(m)
	}
	if err := e.groups(m); err != nil || rare == 0 {
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
	return e.loads(m)
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
	own := millis(m.Own) << 1
	if len(m.Staleness) == 0 {
		e.uint(own)
		return
	}
	e.uint(own | 1)
	e.uint(uint64(len(m.Staleness)))
	for i := range m.Staleness {
		e.incarnation(m.Staleness[i].Region)
		e.uint(millis(m.Staleness[i].Age))
	}
}

func (e *Encoder) digests(digests []gossip.BucketDigest) {
	e.optional(uint64(len(digests)))
	after := uint16(0)
	for i := range digests {
		e.uint(uint64(digests[i].Bucket - after))
		e.word(uint64(digests[i].Digest))
		after = digests[i].Bucket + 1
	}
}

// repair encodes the buckets in order, each once.
func (e *Encoder) repair(buckets []uint16) {
	if !slices.IsSorted(buckets) {
		buckets = slices.Sorted(slices.Values(buckets))
	}
	distances := e.columns[:0]
	after := uint16(0)
	for i, bucket := range buckets {
		if i > 0 && bucket == buckets[i-1] {
			continue
		}
		distances = append(distances, uint64(bucket-after))
		after = bucket + 1
	}
	e.optional(uint64(len(distances)))
	e.column(distances)
	e.columns = distances
}
