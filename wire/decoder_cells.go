package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// keySize is the size of a key in bytes.
const keySize = 8

// owner decodes kind and incarnation of the cells that follow. They must be
// above those of the cell before, if there is one.
func (d *Decoder) owner(r *reader, kindField, incarnationField tag, first bool, before gossip.CellID) gossip.CellID {
	kind := r.uint(kindField)
	if kind > uint64(gossip.MaxKind) {
		r.fail("cells of kind %d, want at most %d", kind, gossip.MaxKind)
		return gossip.CellID{}
	}
	id := gossip.CellID{Kind: gossip.Kind(kind), Incarnation: d.incarnation(r.uint(incarnationField))}
	if !first && (id.Kind < before.Kind || id.Kind == before.Kind && id.Incarnation <= before.Incarnation) {
		r.fail("incarnations of cells are not ascending at %v", id.Incarnation)
	}
	return id
}

// readCells decodes the cells of one incarnation and appends them to m.
func (d *Decoder) readCells(r reader, m *gossip.Message) {
	var before gossip.CellID
	if n := len(m.Cells); n > 0 {
		before = m.Cells[n-1].CellID
	}
	id := d.owner(&r, cellsKind, cellsIncarnation, len(m.Cells) == 0, before)
	keys, n := r.rows(cellsKeys, keySize)
	in := columns{
		id: id, more: r.column(cellsMore), metas: r.column(cellsMetas), windows: r.column(cellsWindows),
		admitted: r.column(cellsAdmitted), refunded: r.column(cellsRefunded), rates: r.column(cellsRates),
		levels: r.column(cellsLevels), seen: r.column(cellsSeen),
	}
	r.end()
	count := in.admitted.count()
	if d.cells += count; d.cells > MaxFrameCells {
		d.exceed("cells", d.cells, MaxFrameCells)
	}
	if n == 0 || n > count {
		r.fail("%d keys of %d cells, want at least one each", n, count)
	}
	if d.err != nil {
		return
	}
	start := len(m.Cells)
	m.Cells = slices.Grow(m.Cells, count)[:start+count]
	rest := m.Cells[start:]
	var last crdt.Key
	for i := range n {
		in.id.Key = readKey(keys[keySize*i:])
		if i > 0 && in.id.Key.Compare(last) <= 0 {
			r.fail("keys of incarnation %v are not ascending at %d", id.Incarnation, i)
			return
		}
		last = in.id.Key
		more := in.more.next()
		if more >= uint64(len(rest)) {
			r.fail("more cells of the keys of incarnation %v than its %d", id.Incarnation, count)
			return
		}
		d.keyCells(&r, &in, rest[:more+1])
		if d.err != nil {
			return
		}
		rest = rest[more+1:]
	}
	if len(rest) > 0 {
		r.fail("fewer cells of the keys of incarnation %v than its %d", id.Incarnation, count)
	}
	in.admitted.any = 1 // the column is needed for its length
	for _, c := range [...]*column{&in.more, &in.metas, &in.windows, &in.admitted, &in.refunded, &in.rates, &in.levels, &in.seen} {
		r.ends(c)
	}
}

// columns holds the columns of an incarnation's cells beside their keys, and
// the name of the cell that is read.
type columns struct {
	id                                                            gossip.CellID
	more, metas, windows, admitted, refunded, rates, levels, seen column
}

// keyCells decodes the next cells, all of one key.
func (d *Decoder) keyCells(r *reader, in *columns, cells []gossip.Cell) {
	for i := range cells {
		n, distance := in.metas.next(), in.windows.next()
		if n >= uint64(d.spent) {
			if n > uint64(d.spent) || d.spent == len(d.latest) {
				r.fail("meta %d is named before meta %d or does not exist", n, d.spent)
				return
			}
			if d.spent++; distance != 0 {
				r.fail("first window of meta %d is not that of the meta", n)
			}
		}
		d.latest[n] += unzigzag(distance)
		in.id.Window = d.latest[n]
		rate := in.rates.next()
		c := &cells[i]
		c.CellID, c.CellMeta, c.MetaRef, c.Rate = in.id, d.metas.values[n].CellMeta, d.metas.values[n].MetaRef, uint32(rate)
		c.Value = crdt.PN{P: in.admitted.next(), N: in.refunded.next()}
		c.Level, c.Seen = in.levels.next(), in.seen.next()
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

// readRefused decodes the refusals of one incarnation and appends them to m.
func (d *Decoder) readRefused(r reader, m *gossip.Message) {
	var before gossip.CellID
	if n := len(m.Refused); n > 0 {
		before = m.Refused[n-1].CellID
	}
	id := d.owner(&r, refusedKind, refusedIncarnation, len(m.Refused) == 0, before)
	keys, n := r.rows(refusedKeys, keySize)
	windows, reasons := r.column(refusedWindows), r.column(refusedReasons)
	r.end()
	if d.denied += n; d.denied > MaxFrameCells {
		d.exceed("refusals", d.denied, MaxFrameCells)
	}
	if n == 0 {
		r.fail("refusals of incarnation %v without keys", id.Incarnation)
	}
	if d.err != nil {
		return
	}
	m.Refused = slices.Grow(m.Refused, n)
	window := int64(0)
	for i := range n {
		window += unzigzag(windows.next())
		next := gossip.CellID{Kind: id.Kind, Incarnation: id.Incarnation, Key: readKey(keys[keySize*i:]), Window: window}
		if i > 0 && id.Compare(next) >= 0 {
			r.fail("refusals of incarnation %v are not ascending at %d", id.Incarnation, i)
			return
		}
		id = next
		reason := reasons.next()
		if reason > math.MaxUint8-1 || !knownReason(gossip.Reason(reason+1)) {
			r.fail("refusal for reason %d, want %d to %d", reason+1, gossip.TooFarAhead, gossip.MaxReason)
			return
		}
		m.Refused = append(m.Refused, gossip.Refusal{CellID: next, Reason: gossip.Reason(reason + 1)})
	}
	r.ends(&windows)
	r.ends(&reasons)
}

func readKey(b []byte) crdt.Key {
	return crdt.Key(binary.BigEndian.Uint64(b))
}
