package gossip

// metas holds the descriptions of cells by number. Cells are many and their
// descriptions few, so each is held once. The zero value is empty.
type metas struct {
	all     []usedMeta
	numbers map[CellMeta]int32
	free    []int32
	latest  int32 // that was asked for
}

// usedMeta is a description and the number of cells that have it.
type usedMeta struct {
	CellMeta
	cells int
}

// take returns the number of a description, for one more cell.
func (m *metas) take(meta CellMeta) int32 {
	i := m.latest
	if int(i) >= len(m.all) || m.all[i].cells == 0 || m.all[i].CellMeta != meta {
		i = m.number(meta)
		m.latest = i
	}
	m.all[i].cells++
	return i
}

// number returns the number of a description, a new one at first.
func (m *metas) number(meta CellMeta) int32 {
	if i, ok := m.numbers[meta]; ok {
		return i
	}
	i := int32(len(m.all))
	if n := len(m.free); n > 0 {
		i, m.free = m.free[n-1], m.free[:n-1]
		m.all[i].CellMeta = meta
	} else {
		m.all = append(m.all, usedMeta{CellMeta: meta})
	}
	if m.numbers == nil {
		m.numbers = make(map[CellMeta]int32)
	}
	m.numbers[meta] = i
	return i
}

// release notes that one cell fewer has a description, and forgets it with the
// last one.
func (m *metas) release(i int32) {
	e := &m.all[i]
	if e.cells--; e.cells == 0 {
		delete(m.numbers, e.CellMeta)
		m.free = append(m.free, i)
	}
}
