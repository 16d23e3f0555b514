package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
)

// entry is one live key. It is a cache line, and holds no pointer, so that a
// million of them cost the garbage collector nothing.
type entry struct {
	key   crdt.Key
	cell  quota.Cell
	due   uint64 // see expires and inherited
	rule  int32  // index of the rule that charged it last, -1 for an override
	extra int32  // index of its extra, -1 when it has none
}

// expires is the instant in Unix milliseconds from which the cell can no
// longer matter.
func (e *entry) expires() int64 { return int64(e.due >> 1) }

// keepUntil puts off the expiry; it never brings it forward.
func (e *entry) keepUntil(t int64) {
	if t > e.expires() {
		e.due = uint64(t)<<1 | e.due&1
	}
}

// inherited says that the cell began as a copy of an overflow counter.
func (e *entry) inherited() bool { return e.due&1 != 0 }

// free marks an entry that is not in use; its extra field links to the next.
const free = -2

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits
)

// store is a map of keys to entries. Entries lie in chunks that never move,
// so that growing copies nothing and a ref stays good.
type store struct {
	index  index
	chunks []*[chunkSize]entry
	used   int32 // entries handed out so far, in use or on the free list
	head   int32 // first of the free list, -1 when it is empty
}

// newStore returns an empty store that leaves the first entries of its first
// chunk unused. Chunks begin at the start of a page, so without a different
// skip for each shard the few keys of many shards would all lie in the same
// sets of a cache and drive each other out of it.
func newStore(skip int) store {
	s := store{head: -1}
	if skip %= chunkSize; skip > 0 {
		s.chunks = append(s.chunks, new([chunkSize]entry))
		for i := range skip {
			s.chunks[0][i].rule = free
		}
		s.used = int32(skip)
	}
	return s
}

func (s *store) at(i int32) *entry { return &s.chunks[i>>chunkBits][i&(chunkSize-1)] }

// find returns the number of a key's entry, or -1.
func (s *store) find(k crdt.Key) int32 { return s.index.find(k, s) }

// insert adds an entry for a key that has none and returns its number.
func (s *store) insert(k crdt.Key) int32 {
	i := s.head
	if i >= 0 {
		s.head = s.at(i).extra
	} else {
		i = s.used
		if int(i)>>chunkBits == len(s.chunks) {
			s.chunks = append(s.chunks, new([chunkSize]entry))
		}
		s.used++
	}
	*s.at(i) = entry{key: k, rule: -1, extra: -1}
	s.index.add(k, i, s)
	return i
}

// remove frees an entry.
func (s *store) remove(i int32) {
	e := s.at(i)
	s.index.remove(e.key, i, s)
	*e = entry{rule: free, extra: s.head}
	s.head = i
}

func (s *store) len() int { return s.index.count }
