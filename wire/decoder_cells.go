package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// group is the cells of one kind and incarnation: the columns beside their
// keys, and the state of reading them.
type group struct {
	id                            gossip.CellID // of the current cell
	mixed, differ                 bool          // should and do descriptions differ
	row                           int           // of the current cell, -1 before the first one
	short                         bool          // is the current key
	more, refs, windows, admitted column
	refunded, rates, levels, seen column
}

// readGroup decodes a group, appends its cells to m and reports whether another
// one follows.
func (d *Decoder) readGroup(r *reader, m *gossip.Message) bool {
	head, set := r.byte(), byte(0)
	if head&groupColumns != 0 {
		if set = r.byte(); set == 0 || set&^columnFlags != 0 {
			r.fail("columns %#x of a group, want some of %#x", set, columnFlags)
		}
	}
	g := group{row: -1, id: d.groupID(r, head, m.Cells)}
	count, keys := 1, 1
	if head&groupSeveral != 0 {
		count = d.groupCells(r, &g)
		keys = count
	}
	if d.cells += count; d.cells > MaxFrameCells {
		d.exceed("cells", d.cells, MaxFrameCells)
	}
	if set&columnMore != 0 {
		n := r.varint()
		if n == 0 || n >= uint64(count) {
			r.fail("%d keys of %d cells, want fewer, and at least one", n, count)
		}
		keys = int(min(n, uint64(count)))
	}
	short := d.shortKeys(r, head, count, keys)
	content := r.bytes(shortSize*short+keySize*(keys-short), "keys")
	if d.err != nil {
		return false
	}
	refs := 1
	if g.mixed {
		refs = count
	}
	g.more = r.column(set&columnMore != 0, keys, "numbers of cells")
	g.refs = r.column(true, refs, "descriptions")
	g.windows = r.column(set&columnWindows != 0, count, "windows")
	g.admitted = r.column(true, count, "admitted hits")
	g.refunded = r.column(set&columnRefunded != 0, count, "refunded hits")
	g.rates = r.column(set&columnRates != 0, count, "rates")
	g.levels = r.column(set&columnLevels != 0, count, "levels")
	g.seen = r.column(set&columnSeen != 0, count, "seen hits")
	if d.err != nil {
		return false
	}
	start := len(m.Cells)
	room := count
	if start == 0 && head&groupMore != 0 { // mostly enough for all groups of the part
		room += len(r.b) / (keySize + 2) / (m.Shards - m.Shard)
	}
	m.Cells = slices.Grow(m.Cells, room)[:start+count]
	d.groupKeys(r, &g, content, short, m.Cells[start:])
	d.endGroup(r, &g)
	return head&groupMore != 0
}

// groupID decodes kind and incarnation of a group, which must be above those of
// the cells before.
func (d *Decoder) groupID(r *reader, head byte, before []gossip.Cell) gossip.CellID {
	kind := gossip.Kind(head & groupKind)
	if !knownKind(kind) {
		r.fail("cells of kind %d, want at most %d", kind, gossip.MaxKind)
		return gossip.CellID{}
	}
	id := gossip.CellID{Kind: kind, Incarnation: usual(kind, d.head.From, d.head.To)}
	if head&groupNamed != 0 {
		named := r.incarnation()
		if named == id.Incarnation {
			r.fail("incarnation %v of cells is the usual one, want it left out", named)
		}
		id.Incarnation = named
	}
	if len(before) > 0 {
		last := &before[len(before)-1]
		if id.Kind < last.Kind || id.Kind == last.Kind && id.Incarnation <= last.Incarnation {
			r.fail("incarnations of cells are not ascending at %v", id.Incarnation)
		}
	}
	return id
}

// groupCells decodes the number of cells of a group that has several, and
// whether they have several descriptions.
func (d *Decoder) groupCells(r *reader, g *group) int {
	n := r.varint()
	g.mixed = n&1 != 0
	if n >>= 1; n < 2 {
		r.fail("group of several cells has %d", n)
		return 0
	}
	return int(min(n, maxClaim))
}

// shortKeys decodes the number of short keys of a group, at most that of its
// keys.
func (d *Decoder) shortKeys(r *reader, head byte, count, keys int) int {
	n := uint64(0)
	if head&groupShort != 0 {
		if n = 1; count > 1 {
			n = r.varint()
		}
		if n == 0 || n > uint64(keys) {
			r.fail("%d short keys of %d, want no more, and at least one", n, keys)
			return 0
		}
	}
	return int(n)
}

// groupKeys decodes the cells of the keys, of which the first ones are short.
func (d *Decoder) groupKeys(r *reader, g *group, keys []byte, short int, cells []gossip.Cell) {
	count := len(cells)
	var last crdt.Key
	for i := 0; len(keys) > 0; i++ {
		if g.short = i < short; g.short {
			g.id.Key = crdt.Key(binary.BigEndian.Uint16(keys)) << (64 - gossip.ShortKeyBits)
			keys = keys[shortSize:]
		} else {
			g.id.Key = readKey(keys)
			keys = keys[keySize:]
		}
		if i > 0 && i != short && g.id.Key <= last {
			r.fail("keys of incarnation %v are not ascending at %d", g.id.Incarnation, i)
			return
		}
		last = g.id.Key
		more := g.more.next()
		if more >= uint64(len(cells)) {
			r.fail("more cells of the keys of incarnation %v than its %d", g.id.Incarnation, count)
			return
		}
		d.keyCells(r, g, cells[:more+1])
		if d.err != nil {
			return
		}
		cells = cells[more+1:]
	}
	if len(cells) > 0 {
		r.fail("fewer cells of the keys of incarnation %v than its %d", g.id.Incarnation, count)
	}
}

// keyCells decodes the next cells, all of one key. New descriptions are read
// from r, where they follow the columns.
func (d *Decoder) keyCells(r *reader, g *group, cells []gossip.Cell) {
	for i := range cells {
		distance := g.windows.next()
		if g.mixed || g.row < 0 {
			ref := g.refs.next()
			if row := int(ref - 1); ref-1 < uint64(len(d.rows.values)) {
				g.differ = g.differ || row != g.row && g.row >= 0
				g.row = row
			} else if d.newRow(r, g, ref, distance); d.err != nil {
				return
			}
		}
		window := d.rows.latest[g.row]
		if distance != 0 {
			window += unzigzag(distance)
			d.rows.latest[g.row] = window
		}
		g.id.Window = window
		rate := g.rates.next()
		c, meta := &cells[i], &d.rows.values[g.row]
		c.CellID, c.CellMeta, c.MetaRef, c.Rate, c.Short = g.id, meta.CellMeta, meta.MetaRef, uint32(rate), g.short
		c.Value = crdt.PN{P: g.admitted.next(), N: g.refunded.next()}
		c.Level, c.Seen = g.levels.next(), g.seen.next()
		switch {
		case rate > math.MaxUint32:
			r.fail("rate of %d, want at most %d", rate, uint32(math.MaxUint32))
		case i > 0 && compareCells(&cells[i-1], c) >= 0:
			r.fail("windows of a key are not ascending at %d", c.Window)
		}
		if fault := cellFault(c); fault != "" {
			r.fail("cell %v: %s", c, fault)
			return
		}
	}
}

// endGroup fails unless the columns were read completely and were necessary.
func (d *Decoder) endGroup(r *reader, g *group) {
	g.refs.any, g.admitted.any = 1, 1 // each group has these
	for _, c := range [...]*column{&g.more, &g.refs, &g.windows, &g.admitted, &g.refunded, &g.rates, &g.levels, &g.seen} {
		r.ends(c)
	}
	if g.mixed && !g.differ {
		r.fail("descriptions of all cells are the same, want one")
	}
}

// newRow makes a new description that of the current cell, whose window has a
// distance from that of the description.
func (d *Decoder) newRow(r *reader, g *group, ref, distance uint64) {
	var s cellMeta
	var window int64
	switch {
	case ref == 0:
		s, window = readDescription(r)
	case ref < firstKnown:
		r.fail("row %d of descriptions is named, and there are only %d", ref-1, len(d.rows.values))
	default:
		ref -= firstKnown
		number := ref/gossip.BlockWindows + 1
		if number > math.MaxUint32 {
			r.fail("number %d of a description, want 32 bits", number)
		}
		s.Number, s.Known, window = uint32(number), true, int64(ref%gossip.BlockWindows)
	}
	switch {
	case d.err != nil:
		return
	case d.rows.find(&s) >= 0:
		r.fail("description %+v with number %d is there twice", s.CellMeta, s.Number)
		return
	case distance != 0:
		r.fail("first window of a description is not its own")
	}
	g.differ = g.differ || g.row >= 0
	g.row = d.rows.add(&s, window)
}

// readRefused decodes the refusals and appends them to m.
func (d *Decoder) readRefused(r *reader, m *gossip.Message) {
	n := r.number("refusals", MaxFrameCells, 1+1+keySize+1)
	if d.denied += n; d.denied > MaxFrameCells {
		d.exceed("refusals", d.denied, MaxFrameCells)
	}
	if d.err != nil {
		return
	}
	m.Refused = make([]gossip.Refusal, n)
	window := int64(0)
	for i := range m.Refused {
		head := r.byte()
		kind, reason := gossip.Kind(head&(1<<refusedReason-1)), gossip.Reason(head>>refusedReason+1)
		if !knownKind(kind) {
			r.fail("refusal of kind %d, want at most %d", kind, gossip.MaxKind)
		}
		if !knownReason(reason) {
			r.fail("refusal for reason %d, want %d to %d", reason, gossip.TooFarAhead, gossip.MaxReason)
		}
		id := gossip.CellID{Kind: kind, Incarnation: r.incarnation(), Key: r.key()}
		window += unzigzag(r.varint())
		id.Window = window
		if i > 0 && m.Refused[i-1].Compare(id) >= 0 {
			r.fail("refusals are not ascending at %d", i)
		}
		if d.err != nil {
			return
		}
		m.Refused[i] = gossip.Refusal{CellID: id, Reason: reason}
	}
}
