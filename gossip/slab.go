package gossip

// slab holds elements by number, in chunks that never move: growing copies
// nothing. The numbers of removed elements are used again.
type slab[T any] struct {
	chunks []*[chunkSize]T
	used   int // numbers that were ever in use
	free   []int32
}

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits
)

// at returns an element by its number, below used.
func (s *slab[T]) at(i int32) *T { return &s.chunks[i>>chunkBits][i&(chunkSize-1)] }

// add adds an element and returns its number.
func (s *slab[T]) add(v T) int32 {
	i := int32(s.used)
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		if s.used == len(s.chunks)*chunkSize {
			s.chunks = append(s.chunks, new([chunkSize]T))
		}
		s.used++
	}
	*s.at(i) = v
	return i
}

// remove sets an element to its zero value.
func (s *slab[T]) remove(i int32) {
	var zero T
	*s.at(i) = zero
	s.free = append(s.free, i)
}

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
