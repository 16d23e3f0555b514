package wire

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// groups writes the cells of a part, one group for each kind and incarnation.
func (e *Encoder) groups(m *gossip.Message) error {
	if e.cells += len(m.Cells); e.cells > MaxFrameCells {
		return &SizeError{What: "cells", Got: e.cells, Max: MaxFrameCells}
	}
	cells, twice := sorted(m.Cells)
	if twice != nil {
		return malformed("shard %d: cell %v is there twice", m.Shard, twice)
	}
	for i := range cells {
		c := &cells[i]
		if !knownKind(c.Kind) {
			return malformed("shard %d: cell of kind %d, want at most %d", m.Shard, c.Kind, gossip.MaxKind)
		}
		if fault := cellFault(c); fault != "" {
			return malformed("shard %d: cell %v: %s", m.Shard, c, fault)
		}
	}
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].Incarnation == cells[0].Incarnation && cells[n].Kind == cells[0].Kind {
			n++
		}
		e.group(cells[:n], n < len(cells))
		cells = cells[n:]
	}
	return nil
}

// sorted returns the cells in order, and one that is there twice, nil for none.
func sorted(cells []gossip.Cell) ([]gossip.Cell, *gossip.Cell) {
	at := disorder(cells)
	if at < len(cells) {
		cells = slices.SortedFunc(slices.Values(cells), func(a, b gossip.Cell) int { return compareCells(&a, &b) })
		if at = disorder(cells); at < len(cells) {
			return nil, &cells[at]
		}
	}
	return cells, nil
}

// disorder returns the first cell that does not come after the one before it.
func disorder(cells []gossip.Cell) int {
	for i := 1; i < len(cells); i++ {
		if compareCells(&cells[i-1], &cells[i]) >= 0 {
			return i
		}
	}
	return len(cells)
}

// compareCells orders cells as in a frame: those with short keys first, and the
// known ones of a key by number after the others.
func compareCells(a, b *gossip.Cell) int {
	if !a.Known && !b.Known && !a.Short && !b.Short {
		if a.Before(&b.CellID) {
			return -1
		}
		return a.CellID.Compare(b.CellID)
	}
	x, y := a.CellID, b.CellID
	x.Window, y.Window = 0, 0
	x.Key, y.Key = keyInFrame(a), keyInFrame(b)
	if a.Short != b.Short {
		x.Key, y.Key = 0, 1
		if b.Short {
			x.Key, y.Key = 1, 0
		}
	}
	return cmp.Or(x.Compare(y), cmp.Compare(knownNumber(a), knownNumber(b)), cmp.Compare(a.Window, b.Window))
}

// keyInFrame returns the key of a cell as the decoder returns it.
func keyInFrame(c *gossip.Cell) crdt.Key {
	if c.Short {
		const rest = 64 - gossip.ShortKeyBits
		return c.Key >> rest << rest
	}
	return c.Key
}

// sameKey reports whether two cells of a group have one key in a frame.
func sameKey(a, b *gossip.Cell) bool { return a.Key == b.Key && a.Short == b.Short }

// knownNumber returns the number of a known meta, 0 for any other.
func knownNumber(c *gossip.Cell) uint32 {
	if c.Known {
		return c.Number
	}
	return 0
}

// usual returns the incarnation of most cells of a kind in messages.
func usual(k gossip.Kind, from, to crdt.Incarnation) crdt.Incarnation {
	if k == gossip.Others || k == gossip.Given {
		return to
	}
	return from
}

// group writes the cells of one kind and incarnation. more reports whether
// another group follows.
func (e *Encoder) group(cells []gossip.Cell, more bool) {
	first := &cells[0]
	keys, short, mixed, distances := e.numberRows(cells)
	set := cellValues(cells)
	columns := flag(columnWindows, distances != nil) | flag(columnMore, keys < len(cells)) |
		flag(columnRefunded, set.Value.N != 0) | flag(columnLevels, set.Level != 0) | flag(columnSeen, set.Seen != 0) |
		flag(columnRates, set.Rate != 0)
	named := first.Incarnation != usual(first.Kind, e.from, e.to)
	e.byte(byte(first.Kind) | flag(groupNamed, named) | flag(groupSeveral, len(cells) > 1) |
		flag(groupMore, more) | flag(groupShort, short > 0) | flag(groupColumns, columns != 0))
	if columns != 0 {
		e.byte(columns)
	}
	if named {
		e.incarnation(first.Incarnation)
	}
	if len(cells) > 1 {
		e.uint(uint64(len(cells))<<1 | uint64(flag(1, mixed)))
	}
	e.cellKeys(cells, keys, short)
	if mixed {
		e.column(e.refs)
	} else {
		e.uint(e.refs[0])
	}
	e.column(distances)
	e.admitted(cells)
	if set.Value.N != 0 {
		e.values(cells, func(c *gossip.Cell) uint64 { return c.Value.N })
	}
	if set.Rate != 0 {
		e.values(cells, func(c *gossip.Cell) uint64 { return uint64(c.Rate) })
	}
	if set.Level != 0 {
		e.values(cells, func(c *gossip.Cell) uint64 { return c.Level })
	}
	if set.Seen != 0 {
		e.values(cells, func(c *gossip.Cell) uint64 { return c.Seen })
	}
	for i, ref := range e.refs {
		if ref == 0 {
			e.description(&cells[i])
		}
	}
}

// cellValues returns the optional values of the cells, or-ed.
func cellValues(cells []gossip.Cell) gossip.Cell {
	var set gossip.Cell
	for i := range cells {
		c := &cells[i]
		set.Value.N |= c.Value.N
		set.Rate |= c.Rate
		set.Level |= c.Level
		set.Seen |= c.Seen
	}
	return set
}

// numberRows sets refs to those of the cells, only the first one if not mixed.
// It returns the number of keys, that of short ones, and the distances of the
// windows, nil if all are 0.
func (e *Encoder) numberRows(cells []gossip.Cell) (keys, short int, mixed bool, distances []uint64) {
	row, ref := e.row(&cells[0])
	e.refs = append(e.refs[:0], ref)
	for i := range cells {
		c := &cells[i]
		if i == 0 || !sameKey(c, &cells[i-1]) {
			if keys++; c.Short {
				short++
			}
		}
		if i > 0 && !sameMeta(c, &cells[i-1]) {
			if !mixed { // all cells before have one row
				e.refs = slices.Grow(e.refs, len(cells))
				for len(e.refs) < i {
					e.refs = append(e.refs, uint64(row)+1)
				}
				mixed = true
			}
			row, ref = e.row(c)
			e.refs = append(e.refs, ref)
		} else if mixed {
			e.refs = append(e.refs, uint64(row)+1)
		}
		window := c.Window
		if c.Known {
			window = c.PlaceInBlock()
		}
		distance := window - e.rows.latest[row]
		if distance != 0 && distances == nil {
			distances = slices.Grow(e.columns[:0], len(cells))[:i]
			clear(distances)
		}
		if distances != nil {
			distances = append(distances, zigzag(distance))
			e.rows.latest[row] = window
		}
	}
	if distances != nil {
		e.columns = distances
	}
	return keys, short, mixed, distances
}

// row returns the row of a cell's description and the ref to it. It adds a row
// for a new description.
func (e *Encoder) row(c *gossip.Cell) (row int, ref uint64) {
	meta, window := metaOf(c)
	if row = e.rows.find(&meta); row >= 0 {
		return row, uint64(row) + 1
	}
	row = e.rows.add(&meta, window)
	if c.Known {
		return row, firstKnown + uint64(c.Number-1)*gossip.BlockWindows + uint64(window)
	}
	return row, 0
}

// cellKeys writes each key once, the short ones first, and how many cells it
// has beyond one.
func (e *Encoder) cellKeys(cells []gossip.Cell, keys, short int) {
	if keys < len(cells) {
		e.uint(uint64(keys))
	}
	if short > 0 && len(cells) > 1 {
		e.uint(uint64(short))
	}
	b := slices.Grow(e.b, keySize*keys)
	for i := range cells {
		switch c := &cells[i]; {
		case keys < len(cells) && i > 0 && sameKey(c, &cells[i-1]):
		case c.Short:
			b = binary.BigEndian.AppendUint16(b, uint16(c.Key>>(64-gossip.ShortKeyBits)))
		default:
			b = appendKey(b, c.Key)
		}
	}
	e.b = b
	if keys == len(cells) {
		return
	}
	n := uint64(0)
	for i := 1; i <= len(cells); i++ {
		if i < len(cells) && sameKey(&cells[i], &cells[i-1]) {
			n++
			continue
		}
		e.uint(n)
		n = 0
	}
}

// admitted writes the column of admitted hits, which each group has.
func (e *Encoder) admitted(cells []gossip.Cell) {
	b := slices.Grow(e.b, 2*len(cells))
	for i := range cells {
		if v := cells[i].Value.P; v < 0x80 {
			b = append(b, byte(v))
		} else {
			b = binary.AppendUvarint(b, v)
		}
	}
	e.b = b
}

// values writes another column.
func (e *Encoder) values(cells []gossip.Cell, of func(*gossip.Cell) uint64) {
	for i := range cells {
		e.uint(of(&cells[i]))
	}
}

// description writes the description of a cell and its window.
func (e *Encoder) description(c *gossip.Cell) {
	unit, length := unitOf(c.WindowLength)
	carry, carryMillis := multipleOf(c.Carry, c.WindowLength)
	window, windowMillis := multipleOf(c.Window, c.WindowLength)
	e.byte(unit | flag(formCarry, c.Carry != 0 && !carryMillis) | flag(formCarryMillis, carryMillis) |
		flag(formRegional, c.Regional) | flag(formWindowMillis, windowMillis) |
		flag(formRule, c.Rule != 0) | flag(formNumber, c.Number != 0))
	if c.Rule != 0 {
		e.word(c.Rule)
	}
	e.uint(uint64(length))
	e.optional(uint64(carry))
	e.uint(zigzag(window))
	e.optional(uint64(c.Number))
}

// allRefused writes the refusals of a part.
func (e *Encoder) allRefused(m *gossip.Message) error {
	if e.refused += len(m.Refused); e.refused > MaxFrameCells {
		return &SizeError{What: "refusals", Got: e.refused, Max: MaxFrameCells}
	}
	refused := latest(m.Refused)
	for i := range refused {
		r := &refused[i]
		switch {
		case !knownKind(r.Kind):
			return malformed("shard %d: refusal of kind %d, want at most %d", m.Shard, r.Kind, gossip.MaxKind)
		case !knownReason(r.Reason):
			return malformed("shard %d: refusal for reason %d, want %d to %d",
				m.Shard, r.Reason, gossip.TooFarAhead, gossip.MaxReason)
		}
	}
	e.optional(uint64(len(refused)))
	before := int64(0)
	for i := range refused {
		r := &refused[i]
		e.byte(byte(r.Kind) | byte(r.Reason-1)<<refusedReason)
		e.incarnation(r.Incarnation)
		e.key(r.Key)
		e.uint(zigzag(r.Window - before))
		before = r.Window
	}
	return nil
}

// latest returns the refusals in order; of several of one cell only the last.
func latest(refused []gossip.Refusal) []gossip.Refusal {
	compare := func(a, b gossip.Refusal) int { return a.CellID.Compare(b.CellID) }
	ascending := true
	for i := 1; i < len(refused) && ascending; i++ {
		ascending = compare(refused[i-1], refused[i]) < 0
	}
	if ascending {
		return refused
	}
	refused = slices.Clone(refused)
	slices.Reverse(refused) // the last comes first and is kept
	slices.SortStableFunc(refused, compare)
	return slices.CompactFunc(refused, func(a, b gossip.Refusal) bool { return a.CellID == b.CellID })
}
