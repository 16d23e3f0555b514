package wire

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// allCells writes the cells of a part, incarnation by incarnation.
func (e *Encoder) allCells(m *gossip.Message) error {
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
		e.incarnationCells(cells[:n])
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

// compareCells orders cells as in a frame: the known ones of a key by number
// after the others.
func compareCells(a, b *gossip.Cell) int {
	if !a.Known && !b.Known {
		if a.Before(&b.CellID) {
			return -1
		}
		return a.CellID.Compare(b.CellID)
	}
	x, y := a.CellID, b.CellID
	x.Window, y.Window = 0, 0
	return cmp.Or(x.Compare(y), cmp.Compare(knownNumber(a), knownNumber(b)), cmp.Compare(a.Window, b.Window))
}

// knownNumber returns the number of a known meta, 0 for any other.
func knownNumber(c *gossip.Cell) uint32 {
	if c.Known {
		return c.Number
	}
	return 0
}

// incarnationCells writes the cells of one incarnation.
func (e *Encoder) incarnationCells(cells []gossip.Cell) {
	at := e.open(partCells)
	e.uint(cellsKind, uint64(cells[0].Kind))
	e.uint(cellsIncarnation, e.incarnation(cells[0].Incarnation))
	e.cellKeys(cells)
	e.cellWindows(cells)
	column, refunded, rates, levels := e.numbers[:0], false, false, false
	for i := range cells {
		c := &cells[i]
		column = append(column, c.Value.P)
		refunded, rates, levels = refunded || c.Value.N != 0, rates || c.Rate != 0, levels || c.Level != 0
	}
	e.required(cellsAdmitted, column)
	if refunded {
		for i := range cells {
			column[i] = cells[i].Value.N
		}
		e.required(cellsRefunded, column)
	}
	if rates {
		for i := range cells {
			column[i] = uint64(cells[i].Rate)
		}
		e.required(cellsRates, column)
	}
	if levels {
		for i := range cells {
			column[i] = cells[i].Level
		}
		e.required(cellsLevels, column)
		for i := range cells {
			column[i] = cells[i].Seen
		}
		e.column(cellsSeen, column)
	}
	e.close(at)
}

// cellKeys writes each key once, and how many cells it has beyond one.
func (e *Encoder) cellKeys(cells []gossip.Cell) {
	at := e.open(cellsKeys)
	more, b := slices.Grow(e.numbers[:0], len(cells)), slices.Grow(e.b, keySize*len(cells))
	for i := range cells {
		k := &cells[i].Key
		if i > 0 && *k == cells[i-1].Key {
			more[len(more)-1]++
			continue
		}
		b = appendKey(b, *k)
		more = append(more, 0)
	}
	e.b = b
	e.close(at)
	e.column(cellsMore, more)
	e.numbers = more
}

// cellWindows encodes the metas and windows.
func (e *Encoder) cellWindows(cells []gossip.Cell) {
	metas, distances := e.numbers[:0], slices.Grow(e.distances[:0], len(cells))
	n := -1 // number of the meta of the cell before
	var before cellMeta
	for i := range cells {
		meta, window := metaOf(&cells[i])
		if i == 0 || meta != before {
			var first bool
			if n, first = e.metas.number(meta); first {
				if cap(e.windows) == 0 {
					e.windows = make([]metaWindows, 0, firstRoom)
				}
				e.windows = append(e.windows, metaWindows{first: window, latest: window})
			}
			before = meta
		}
		metas = append(metas, uint64(n))
		distances = append(distances, zigzag(window-e.windows[n].latest))
		e.windows[n].latest = window
	}
	e.column(cellsMetas, metas)
	e.column(cellsWindows, distances)
	e.numbers, e.distances = metas, distances
}

func appendKey(b []byte, k crdt.Key) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(k))
}

// allRefused writes the refusals of a part, incarnation by incarnation.
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
	for len(refused) > 0 {
		n := 1
		for n < len(refused) && refused[n].Incarnation == refused[0].Incarnation && refused[n].Kind == refused[0].Kind {
			n++
		}
		e.incarnationRefused(refused[:n])
		refused = refused[n:]
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

// incarnationRefused writes the refusals of one incarnation.
func (e *Encoder) incarnationRefused(refused []gossip.Refusal) {
	at := e.open(partRefused)
	e.uint(refusedKind, uint64(refused[0].Kind))
	e.uint(refusedIncarnation, e.incarnation(refused[0].Incarnation))
	keys := e.open(refusedKeys)
	for i := range refused {
		e.b = appendKey(e.b, refused[i].Key)
	}
	e.close(keys)
	column, before := e.numbers[:0], int64(0)
	for i := range refused {
		column = append(column, zigzag(refused[i].Window-before))
		before = refused[i].Window
	}
	e.column(refusedWindows, column)
	column = column[:0]
	for i := range refused {
		column = append(column, uint64(refused[i].Reason-1))
	}
	e.column(refusedReasons, column)
	e.numbers = column
	e.close(at)
}
