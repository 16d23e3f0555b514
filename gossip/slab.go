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
