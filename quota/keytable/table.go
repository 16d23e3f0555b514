package keytable

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
)

// Entry is the counter of one key. It is a cache line and holds no pointer, so
// a million entries cost the garbage collector nothing.
type Entry struct {
	Key   crdt.Key
	Cell  quota.Cell
	due   uint64 // see Expires and Inherited
	Rule  int32  // for the caller; -1 in a new entry, Free in an unused one
	Extra int32  // for the caller; -1 in a new entry
	// Hint is for the caller, 0 in a new entry: where the replicated cell of
	// the key is.
	Hint int32
	_    [4]byte
}

// Expires returns the time, in Unix milliseconds, from which the cell can no
// longer matter.
func (e *Entry) Expires() int64 { return int64(e.due >> 1) }

// KeepUntil postpones the expiry; it never advances it.
func (e *Entry) KeepUntil(t int64) {
	if t > e.Expires() {
		e.due = uint64(t)<<1 | e.due&1
	}
}

// Restart ends an expired entry's past: it inherits nothing and expires at t.
func (e *Entry) Restart(t int64) { e.due = uint64(t) << 1 }

// Inherited reports whether Inherit was called: the cell may hold hits of other
// keys, or lack some of its own.
func (e *Entry) Inherited() bool { return e.due&1 != 0 }

// Inherit marks a cell that does not count exactly the hits of its key.
func (e *Entry) Inherit() { e.due |= 1 }

// Free is the Rule of an unused entry.
const Free = -2

const (
	chunkBits = 8
	// ChunkSize is the number of entries that are allocated together.
	ChunkSize = 1 << chunkBits
)

// Chunk is the entries that are allocated together.
type Chunk [ChunkSize]Entry

// Table is a map of keys to entries. Entries lie in chunks that never move,
// so that growing copies nothing and pointers to entries stay good.
type Table struct {
	chunks []*Chunk
	index  index
	used   int32 // entries ever in use
	head   int32 // first of the free list, -1 when it is empty
	take   func() *Chunk
}

// New returns an empty table that leaves the first entries of its first
// chunk unused. Chunks begin at the start of a page, so without a different
// skip for each shard the few keys of many shards would all lie in the same
// sets of a cache and drive each other out of it.
//
// take returns an empty chunk for each one after the first. It may be nil.
func New(skip int, take func() *Chunk) Table {
	s := Table{head: -1, take: take}
	if skip %= ChunkSize; skip > 0 {
		s.chunks = append(s.chunks, new(Chunk))
		for i := range skip {
			s.chunks[0][i].Rule = Free
		}
		s.used = int32(skip)
	}
	return s
}

// At returns an entry by its number, below Used.
func (s *Table) At(i int32) *Entry { return &s.chunks[i>>chunkBits][i&(ChunkSize-1)] }

// All calls yield for each entry.
func (s *Table) All(yield func(*Entry) bool) {
	for i := range s.used {
		if e := s.At(i); e.Rule != Free && !yield(e) {
			return
		}
	}
}

// Find returns the entry of a key, nil for none.
func (s *Table) Find(k crdt.Key) *Entry {
	_, e := s.index.find(k, s)
	return e
}

// Insert adds an entry for a key that has none and returns it.
func (s *Table) Insert(k crdt.Key) *Entry {
	i := s.head
	if i >= 0 {
		s.head = s.At(i).Extra
	} else {
		i = s.used
		if int(i)>>chunkBits == len(s.chunks) {
			s.grow()
		}
		s.used++
	}
	e := s.At(i)
	*e = Entry{Key: k, Rule: -1, Extra: -1}
	s.index.add(k, i, s)
	return e
}

// grow adds a chunk.
func (s *Table) grow() {
	if s.take == nil || len(s.chunks) == 0 {
		s.chunks = append(s.chunks, new(Chunk))
		return
	}
	s.chunks = append(s.chunks, s.take())
}

// Remove frees an entry.
func (s *Table) Remove(i int32) {
	e := s.At(i)
	s.index.remove(e.Key, i, s)
	*e = Entry{Rule: Free, Extra: s.head}
	s.head = i
}

// Used returns the number of entries that were ever in use at once; unused ones
// among them are Free.
func (s *Table) Used() int32 { return s.used }

// Len returns the number of keys.
func (s *Table) Len() int { return s.index.count }
