package wire

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
)

// Decoder decodes frames of counts, one after the other, and reuses the memory
// of the one before. The zero value is ready; it is not safe for concurrent
// use. In a frame it keeps the first fault and stops
// there.
type Decoder struct {
	ends ends
	head gossip.Message // the common fields of the messages

	incarnations table[crdt.Incarnation] // without sender and receiver
	rows         rows
	cells        int
	denied       int // refusals

	part int // number of the current part, -1 outside
	err  error

	messages []gossip.Message // of the latest frame
}

// reset makes the decoder ready for a frame from one incarnation to another. It
// keeps the memory of a usual frame.
func (d *Decoder) reset(head gossip.Message) {
	for i := range d.messages {
		if m := &d.messages[i]; cap(m.Cells) > keptCells {
			m.Cells = nil
		}
	}
	d.head, d.messages = head, d.messages[:0]
	d.incarnations, d.rows = d.incarnations.emptied(), d.rows.emptied()
	d.cells, d.denied, d.part, d.err = 0, 0, -1, nil
}

// fail keeps the first fault.
func (d *Decoder) fail(format string, args ...any) {
	if d.err != nil {
		return
	}
	where := "frame: "
	if d.part >= 0 {
		where = fmt.Sprintf("part %d of the frame: ", d.part)
	}
	d.err = malformed("%s", where+fmt.Sprintf(format, args...))
}

func (d *Decoder) exceed(what string, got, limit int) {
	if d.err == nil {
		d.err = &SizeError{What: what, Got: got, Max: limit}
	}
}

// frame decodes the content of a frame. After a fault it returns nil.
func (d *Decoder) frame(content []byte) []gossip.Message {
	if d.head.From == d.head.To {
		d.fail("it is from %v to itself", d.head.From)
		return nil
	}
	r := reader{d: d, b: content}
	d.readHead(&r)
	if d.err != nil {
		return nil
	}
	msgs := slices.Grow(d.messages, min(d.head.Shards, len(r.b)/partLeast))
	before := &gossip.Message{Shard: -1}
	for i := 0; i == 0 || len(r.b) > 0; i++ {
		if d.part = -1; len(r.b) < partLeast || before.Shard == d.head.Shards-1 {
			d.fail("%d bytes after part %d, want a part of at least %d bytes, or none after the last shard", len(r.b), i-1, partLeast)
			return nil
		}
		msgs = msgs[:i+1]
		d.messages, d.part = msgs, i
		cells := msgs[i].Cells[:0]
		msgs[i] = d.head
		d.readPart(&r, before, cells, &msgs[i])
		if d.err != nil {
			return nil
		}
		before = &msgs[i]
	}
	return msgs
}

// partLeast is the size of the shortest part: its flags and a version.
const partLeast = 2

// readHead reads the common fields of the messages.
func (d *Decoder) readHead(r *reader) {
	set := r.byte()
	if set&^frameFlags != 0 {
		r.fail("flags %#x, want only those of %#x", set, frameFlags)
	}
	lastShard := r.optional(set&frameShards != 0, "number of the last shard")
	if lastShard >= MaxShards {
		r.fail("it is of one of %d shards, want at most %d", lastShard+1, MaxShards)
	}
	h := &d.head
	h.Shards = int(lastShard) + 1
	h.Ready = set&frameUnready == 0
	h.Nonce = r.varint()
	if set&frameEcho != 0 {
		if h.Echo, h.Held = r.varint(), r.varint(); h.Echo|h.Held == 0 {
			r.fail("echo and its age are 0, want them left out")
		}
	}
	h.Rules = r.optionalWord(set&frameRules != 0, "hash of rules")
	h.Stamp = hlc.Timestamp(r.optionalWord(set&frameStamp != 0, "stamp"))
}

// keptCells is the number of cells of a message whose memory is kept for the
// next frame.
const keptCells = 256

// readPart decodes the part of one shard into m. before is the message before
// it, cells empty memory for its cells.
func (d *Decoder) readPart(r *reader, before *gossip.Message, cells []gossip.Cell, m *gossip.Message) {
	set, rare := r.byte(), byte(0)
	if set&partRare != 0 {
		if rare = r.byte(); rare == 0 || rare&^rareFlags != 0 {
			r.fail("second flags %#x of a part, want some of %#x", rare, rareFlags)
		}
	}
	skipped := r.optional(set&partSkipped != 0, "number of skipped shards")
	if skipped >= uint64(m.Shards-before.Shard-1) {
		r.fail("%d shards after shard %d are skipped, and there are only %d", skipped, before.Shard, m.Shards)
		return
	}
	m.Shard = before.Shard + 1 + int(skipped)
	m.Hi = r.varint()
	changed := r.optional(set&partChanged != 0, "number of versions")
	if changed > m.Hi {
		r.fail("%d versions up to %d, want at most as many", changed, m.Hi)
	}
	m.Lo = m.Hi - changed
	if set&partAnswers != 0 {
		if m.Answers, m.Ack = true, r.varint(); m.Ack == math.MaxUint64 {
			r.fail("acknowledgement of version %d, which is none", m.Ack)
		}
	}
	m.Complete = set&partIncomplete == 0
	m.Unsent = r.duration(r.optional(set&partUnsent != 0, "age of increments"))
	d.readPartViews(r, before, m, set&partViews != 0, rare&rareNoViews != 0)
	if set&partCells != 0 {
		m.Cells = cells
		for more := true; more && d.err == nil; {
			more = d.readGroup(r, m)
		}
	}
	if rare != 0 {
		d.readRare(r, m, rare)
	}
}

// readRare decodes the content of a part that its second flags name.
func (d *Decoder) readRare(r *reader, m *gossip.Message, set byte) {
	if set&rareRefused != 0 {
		d.readRefused(r, m)
	}
	if set&rareDigests != 0 {
		d.readDigests(r, m)
	}
	if set&rareRepair != 0 {
		d.readRepair(r, m)
	}
	if set&rareRights != 0 {
		d.readRightsMessages(r, m)
	}
	if set&rareLoads != 0 {
		d.readLoads(r, m)
	}
}

// readPartViews decodes the views of a part, or takes them from the part
// before.
func (d *Decoder) readPartViews(r *reader, before, m *gossip.Message, own, none bool) {
	switch {
	case none && (own || !before.HasViews):
		r.fail("no views, and it has some or the part before has none")
	case own:
		d.readViews(r, m)
		if before.HasViews && sameViews(before, m) {
			r.fail("views as in the part before, want them left out")
		}
	case !none:
		m.HasViews, m.Own, m.Staleness = before.HasViews, before.Own, slices.Clone(before.Staleness)
	}
}

func (d *Decoder) readViews(r *reader, m *gossip.Message) {
	own := r.varint()
	m.HasViews, m.Own = true, r.duration(own>>1)
	if own&1 == 0 {
		return
	}
	n := r.number("regions", MaxViews, 2)
	if n > 0 {
		m.Staleness = make([]gossip.Staleness, n)
	}
	for i := range m.Staleness {
		m.Staleness[i] = gossip.Staleness{Region: r.incarnation(), Age: r.duration(r.varint())}
		if i > 0 && m.Staleness[i].Region <= m.Staleness[i-1].Region {
			r.fail("regions are not ascending at %d", i)
		}
		if d.err != nil {
			return
		}
	}
}

func (d *Decoder) readDigests(r *reader, m *gossip.Message) {
	n := r.number("digests", math.MaxUint16+1, 1+8)
	if n > 0 {
		m.Digests = make([]gossip.BucketDigest, n)
	}
	after := uint64(0)
	for i := range m.Digests {
		m.Digests[i] = gossip.BucketDigest{Bucket: r.bucket(&after), Digest: crdt.Digest(r.word("digest"))}
		if d.err != nil {
			return
		}
	}
}

func (d *Decoder) readRepair(r *reader, m *gossip.Message) {
	n := r.number("buckets", math.MaxUint16+1, 1)
	if n > 0 {
		m.Repair = make([]uint16, n)
	}
	after := uint64(0)
	for i := range m.Repair {
		if m.Repair[i] = r.bucket(&after); d.err != nil {
			return
		}
	}
}

// bucket reads the distance of a bucket from after, and sets after to the one
// behind the bucket.
func (r *reader) bucket(after *uint64) uint16 {
	distance := r.varint()
	if distance > math.MaxUint16-min(*after, math.MaxUint16) || *after > math.MaxUint16 {
		r.fail("bucket beyond %d", math.MaxUint16)
		return 0
	}
	bucket := *after + distance
	*after = bucket + 1
	return uint16(bucket)
}

func (r *reader) duration(ms uint64) time.Duration {
	if ms > uint64(maxMillis) {
		r.fail("duration of %d ms, want at most %d", ms, maxMillis)
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
