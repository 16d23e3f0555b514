package wire

import (
	"encoding/binary"
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

	incarnations table[crdt.Incarnation]
	metas        table[cellMeta]
	latest       []int64 // for each meta the window of its latest cell, or of the first to come
	met          int     // the number of incarnations that parts have referred to
	spent        int     // the number of metas that cells have referred to
	cells        int
	denied       int // refusals

	part int // number of the current part, -1 outside
	err  error

	parts    [][]byte         // of the latest frame
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
	msgs, latest := d.messages[:0], d.latest[:0]
	incarnations, metas := d.incarnations.emptied(), d.metas.emptied()
	if cap(latest) > maxWalk {
		latest = nil
	}
	d.head, d.incarnations, d.metas, d.latest, d.messages = head, incarnations, metas, latest, msgs
	d.met, d.spent, d.cells, d.denied, d.part, d.err = 0, 0, 0, 0, -1, nil
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

// frame decodes the payload of a frame. After a fault it returns nil.
func (d *Decoder) frame(payload []byte) []gossip.Message {
	if d.head.From == d.head.To {
		d.fail("it is from %v to itself", d.head.From)
	}
	r := reader{d: d, b: payload}
	lastShard := r.uint(frameLastShard)
	if lastShard >= MaxShards {
		r.fail("it is of one of %d shards, want at most %d", lastShard+1, MaxShards)
	}
	d.head.Shards = int(lastShard) + 1
	d.head.Ready = !r.flag(frameUnready)
	d.head.Nonce = r.uint(frameNonce)
	d.head.Echo = r.uint(frameEcho)
	d.head.Held = r.uint(frameHeld)
	parts := d.parts[:0]
	for content := r.content(frameParts); content != nil; content = r.content(frameParts) {
		if len(parts) == d.head.Shards {
			r.fail("it has more parts than its %d shards", len(parts))
			break
		}
		parts = append(parts, content)
	}
	d.readIncarnations(&r)
	d.readMetas(&r)
	d.head.Rules = r.word(frameRules, "hash of rules")
	d.head.Stamp = hlc.Timestamp(r.word(frameStamp, "stamp"))
	defer clear(parts) // they would keep the frame
	d.parts = parts
	if r.end(); len(parts) == 0 {
		r.fail("it has no parts, want at least one")
	}
	if d.err != nil {
		return nil
	}
	d.readParts(parts)
	return d.messages
}

// readIncarnations reads the table of incarnations.
func (d *Decoder) readIncarnations(r *reader) {
	content, n := r.rows(frameIncarnations, 8)
	if n == 0 {
		return
	}
	d.incarnations.values = slices.Grow(d.incarnations.values, n)
	for i := range n {
		s := crdt.Incarnation(binary.LittleEndian.Uint64(content[8*i:]))
		if _, first := d.incarnations.number(s); !first || s == d.head.From || s == d.head.To {
			r.fail("incarnation %v is there twice", s)
			return
		}
	}
}

// readMetas reads the table of metas.
func (d *Decoder) readMetas(r *reader) {
	for content := r.content(frameMetas); content != nil; content = r.content(frameMetas) {
		if len(d.latest) == MaxFrameCells {
			d.exceed("metas", len(d.latest)+1, MaxFrameCells)
		}
		if d.err != nil {
			return
		}
		d.readMeta(reader{d: d, b: content})
	}
}

func (d *Decoder) readMeta(r reader) {
	var s cellMeta
	if s.Number = r.number(metaKnown); s.Number != 0 {
		s.Known = true
		d.addMeta(&r, s, unzigzag(r.uint(metaWindow)))
		return
	}
	s.Rule = r.word(metaRule, "rule of a meta")
	s.WindowLength = r.length()
	if d.err != nil {
		return
	}
	s.Carry = r.multiple(metaCarryWindows, metaCarryMillis, s.WindowLength, false)
	s.Regional = r.flag(metaRegional)
	window := r.multiple(metaWindow, metaWindowMillis, s.WindowLength, true)
	s.Number = r.number(metaNumber)
	d.addMeta(&r, s, window)
}

// number reads the number of a meta.
func (r *reader) number(t tag) uint32 {
	n := r.uint(t)
	if n > math.MaxUint32 {
		r.fail("number %d of a meta, want 32 bits", n)
	}
	return uint32(n)
}

// addMeta adds a row to the table of metas.
func (d *Decoder) addMeta(r *reader, s cellMeta, window int64) {
	r.end()
	if _, first := d.metas.number(s); !first {
		r.fail("meta %+v with number %d is there twice", s.CellMeta, s.Number)
	}
	d.latest = append(d.latest, window)
}

// length reads a window length.
func (r *reader) length() int64 {
	minutes, seconds, millis := r.uint(metaMinutes), r.uint(metaSeconds), r.uint(metaMillis)
	switch {
	case seconds == 0 && millis == 0 && minutes > 0 && minutes <= uint64(math.MaxInt64/minute):
		return int64(minutes) * minute
	case minutes == 0 && millis == 0 && seconds <= uint64(math.MaxInt64/second) && int64(seconds)*second%minute != 0:
		return int64(seconds) * second
	case minutes == 0 && seconds == 0 && millis <= math.MaxInt64 && int64(millis)%second != 0:
		return int64(millis)
	}
	r.fail("window length of %d min, %d s and %d ms, want one of them, in the longest unit and 63 bits", minutes, seconds, millis)
	return 0
}

// multiple reads milliseconds that are a multiple of a window length, or none.
func (r *reader) multiple(windows, millis tag, length int64, signed bool) int64 {
	n, rest := r.uint(windows), r.uint(millis)
	times, ms := int64(n), int64(rest)
	if signed {
		times, ms = unzigzag(n), unzigzag(rest)
	}
	switch {
	case rest == 0 && times <= math.MaxInt64/length && times >= math.MinInt64/length && (signed || times >= 0):
		return times * length
	case n == 0 && ms%length != 0 && (signed || ms >= 0):
		return ms
	}
	r.fail("%d windows and %d ms, want one of them, windows where possible, in 63 bits", times, ms)
	return 0
}

// readParts reads the parts.
func (d *Decoder) readParts(parts [][]byte) {
	msgs := slices.Grow(d.messages, len(parts))[:len(parts)]
	d.messages = msgs
	before := &gossip.Message{Shard: -1}
	for i := range msgs {
		cells := msgs[i].Cells[:0]
		msgs[i] = d.head
		d.part = i
		d.readPart(reader{d: d, b: parts[i]}, before, cells, &msgs[i])
		if d.err != nil {
			return
		}
		before = &msgs[i]
	}
	d.part = -1
	if d.met < len(d.incarnations.values) || d.spent < len(d.latest) {
		d.fail("%d incarnations and %d metas, of which %d and %d are used",
			len(d.incarnations.values), len(d.latest), d.met, d.spent)
	}
}

// keptCells is the number of cells of a message whose memory is kept for the
// next frame.
const keptCells = 256

// readPart decodes the part of one shard into m. before is the message before
// it, cells empty memory for its cells.
func (d *Decoder) readPart(r reader, before *gossip.Message, cells []gossip.Cell, m *gossip.Message) {
	skipped := r.uint(partSkipped)
	if skipped >= uint64(m.Shards-before.Shard-1) {
		r.fail("%d shards after shard %d are skipped, and there are only %d", skipped, before.Shard, m.Shards)
		return
	}
	m.Shard = before.Shard + 1 + int(skipped)
	m.Hi = r.uint(partHi)
	changed := r.uint(partChanged)
	if changed > m.Hi {
		r.fail("%d versions up to %d, want at most as many", changed, m.Hi)
	}
	m.Lo = m.Hi - changed
	if ack := r.uint(partAck); ack > 0 {
		m.Answers, m.Ack = true, ack-1
	}
	m.Complete = !r.flag(partIncomplete)
	m.Unsent = r.duration(r.uint(partUnsent))
	if content := r.content(partViews); content != nil {
		d.readViews(reader{d: d, b: content}, m)
		if before.HasViews && sameViews(before, m) {
			r.fail("views as in the part before, want them left out")
		}
	}
	room := len(r.b) / (keySize + 1) // mostly enough for the cells of all incarnations
	for content := r.content(partCells); content != nil; content = r.content(partCells) {
		if m.Cells == nil {
			m.Cells = slices.Grow(cells, room)
		}
		d.readCells(reader{d: d, b: content}, m)
	}
	for content := r.content(partRefused); content != nil; content = r.content(partRefused) {
		d.readRefused(reader{d: d, b: content}, m)
	}
	d.readDigests(&r, m)
	d.readRepair(&r, m)
	d.readRightsMessages(&r, m)
	switch without := r.flag(partNoViews); {
	case without && (m.HasViews || !before.HasViews):
		r.fail("no_views, and it has views or the part before has none")
	case !without && !m.HasViews:
		m.HasViews, m.Own, m.Staleness = before.HasViews, before.Own, slices.Clone(before.Staleness)
	}
	d.readLoads(&r, m)
	r.end()
}

func (d *Decoder) readViews(r reader, m *gossip.Message) {
	m.HasViews = true
	m.Own = r.duration(r.uint(viewsOwn))
	regions, ages := r.column(viewsRegions), r.column(viewsAges)
	r.end()
	n := regions.count()
	if n > MaxViews {
		d.exceed("regions", n, MaxViews)
		return
	}
	if n > 0 {
		m.Staleness = make([]gossip.Staleness, n)
	}
	for i := range m.Staleness {
		m.Staleness[i] = gossip.Staleness{Region: d.incarnation(regions.next()), Age: r.duration(ages.next())}
		if i > 0 && m.Staleness[i].Region <= m.Staleness[i-1].Region {
			r.fail("regions are not ascending at %d", i)
		}
	}
	regions.any = 1 // the list is needed for its length
	r.ends(&regions)
	r.ends(&ages)
}

func (d *Decoder) readDigests(r *reader, m *gossip.Message) {
	buckets := r.column(partBuckets)
	content, n := r.rows(partDigests, 8)
	if n > math.MaxUint16+1 {
		d.exceed("digests", n, math.MaxUint16+1)
		return
	}
	if n > 0 {
		m.Digests = make([]gossip.BucketDigest, n)
	}
	after := uint64(0)
	for i := range m.Digests {
		m.Digests[i] = gossip.BucketDigest{
			Bucket: r.bucket(&after, buckets.next()),
			Digest: crdt.Digest(binary.LittleEndian.Uint64(content[8*i:])),
		}
	}
	r.ends(&buckets)
}

func (d *Decoder) readRepair(r *reader, m *gossip.Message) {
	repair := r.column(partRepair)
	n := repair.count()
	if n > math.MaxUint16+1 {
		d.exceed("buckets", n, math.MaxUint16+1)
		return
	}
	if n > 0 {
		m.Repair = make([]uint16, n)
	}
	after := uint64(0)
	for i := range m.Repair {
		m.Repair[i] = r.bucket(&after, repair.next())
	}
	repair.any = 1 // the list is needed for its length
	r.ends(&repair)
}

// bucket returns the bucket at a distance from after, and sets after to the one
// behind it.
func (r *reader) bucket(after *uint64, distance uint64) uint16 {
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

// incarnation returns the incarnation of a number. Numbers are first used in
// ascending order.
func (d *Decoder) incarnation(n uint64) crdt.Incarnation {
	switch {
	case n == 0:
		return d.head.From
	case n == 1:
		return d.head.To
	case n-2 < uint64(d.met):
	case n-2 == uint64(d.met) && d.met < len(d.incarnations.values):
		d.met++
	default:
		d.fail("incarnation %d is named before incarnation %d or does not exist", n, d.met+2)
		return 0
	}
	return d.incarnations.values[n-2]
}
