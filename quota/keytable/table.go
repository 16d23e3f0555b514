package keytable

import (
	"math"

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
	// reach belongs to the slot and not to the key in it: no key that starts
	// here is more slots behind it.
	reach int32
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

// set replaces the key of a slot.
func (e *Entry) set(to Entry) {
	to.reach = e.reach
	*e = to
}

// Free is the Rule of an unused entry.
const Free = -2

const (
	chunkBits = 8
	// ChunkSize is the number of entries that are allocated together.
	ChunkSize = 1 << chunkBits
	// MaxEntries is the maximum number of keys of a Table.
	MaxEntries = 1<<24 - 1
)

// Table is a map of keys to entries: a hash table with linear probing whose
// slots are the entries. So a lookup waits for one line of memory and those
// behind it, which a processor reads together. An index beside the entries
// would be a second line to wait for (docs/adr/0044).
//
// Keys are keyed hashes already, so their bits are used as they are: without
// the secret they cannot be made to collide. All keys of a shard may have the
// lowest crdt.ShardBits bits in common. The 32 bits above them, as a fraction
// of the slots, are a key's start: the slot at which its search begins.
//
// A full table grows by a small part of its slots. The fraction stays, so all
// starts move towards the end, in their order. Settle moves the keys of some
// starts at a time, from the last start to the first. Insert and Remove move no
// entry: pointers to entries are good until the next Settle.
type Table struct {
	chunks [][]Entry
	slots  uint32 // starts of keys
	// While the table grows, the keys whose start was hand or later have moved
	// to a start of grown. Otherwise both are equal to slots.
	hand, grown uint32
	end         int32 // all slots from here on are unused
	count       int
	owed        int // keys that were added since the latest Settle
	take        func() []Entry
}

const (
	minSlots = 32
	// maxLoad and loadBase are the part of the slots that may be used before a
	// table grows, and growPart the part by which it does. Then a key takes 73
	// to 77 bytes and lies 3 slots behind its start on average.
	maxLoad, loadBase = 7, 8
	growPart          = 20
	// readsPerAdd entries are read with each added key to move some of them: a
	// microsecond. A table has loadBase*growPart/maxLoad starts for each key
	// until it grows again, and keys of a start are on fewer than ten slots.
	readsPerAdd = 512
	// maxOwed bounds the reads of one Settle.
	maxOwed = 64
)

// New returns an empty table. take returns ChunkSize zero entries for each
// chunk after the first. It may be nil.
func New(take func() []Entry) Table {
	return Table{slots: minSlots, hand: minSlots, grown: minSlots, take: take}
}

// At returns an entry by its number, below Used.
func (s *Table) At(i int32) *Entry { return s.at(uint32(i)) }

func (s *Table) at(i uint32) *Entry { return &s.chunks[i>>chunkBits][i&(ChunkSize-1)] }

// All calls yield for each entry.
func (s *Table) All(yield func(*Entry) bool) {
	for i := range s.end {
		if e := s.At(i); e.Rule != Free && !yield(e) {
			return
		}
	}
}

// start returns the slot at which the search for a key begins.
func (s *Table) start(k crdt.Key) uint32 {
	i := scale(k, s.slots)
	if i >= s.hand {
		i = scale(k, s.grown)
	}
	return i
}

// scale returns the start of a key in a number of slots.
func scale(k crdt.Key, slots uint32) uint32 {
	return uint32(uint64(uint32(k>>crdt.ShardBits)) * uint64(slots) >> 32)
}

// Find returns the entry of a key, nil for none.
func (s *Table) Find(k crdt.Key) *Entry {
	if s.count == 0 {
		return nil
	}
	i := s.start(k)
	for left := s.at(i).reach; ; {
		c := s.chunks[i>>chunkBits]
		for j := i & (ChunkSize - 1); j < uint32(len(c)); j++ {
			if e := &c[j]; e.Key == k && e.Rule != Free {
				return e
			}
			if left--; left < 0 {
				return nil
			}
		}
		i = i&^(ChunkSize-1) + ChunkSize
	}
}

// Insert adds an entry for a key that has none and returns it.
func (s *Table) Insert(k crdt.Key) *Entry {
	for len(s.chunks)*ChunkSize < int(s.slots) {
		s.addChunk()
	}
	s.count++
	s.owed++
	return s.put(Entry{Key: k, Rule: -1, Extra: -1})
}

// put writes an entry into the first unused slot from its start on.
func (s *Table) put(e Entry) *Entry {
	start := s.start(e.Key)
	for i := start; ; i++ {
		if int(i) == len(s.chunks)*ChunkSize {
			s.addChunk()
		}
		if to := s.at(i); to.Rule == Free {
			at := s.at(start)
			at.reach = max(at.reach, int32(i-start))
			to.set(e)
			s.end = max(s.end, int32(i+1))
			return to
		}
	}
}

// addChunk adds unused slots at the end.
func (s *Table) addChunk() {
	var c []Entry
	if s.take == nil || len(s.chunks) == 0 {
		c = make([]Entry, ChunkSize)
	} else {
		c = s.take()
	}
	for i := range c {
		c[i].Rule = Free
	}
	s.chunks = append(s.chunks, c)
}

// Remove frees an entry.
func (s *Table) Remove(i int32) {
	e := s.At(i)
	start := s.start(e.Key)
	e.set(Entry{Rule: Free})
	s.count--
	if first := s.at(start); first.reach == i-int32(start) {
		first.reach = s.reach(start, first.reach)
	}
}

// reach returns how many slots behind a start its last key is, at most most.
func (s *Table) reach(start uint32, most int32) int32 {
	for ; most > 0; most-- {
		if e := s.at(start + uint32(most)); e.Rule != Free && s.start(e.Key) == start {
			break
		}
	}
	return most
}

// Settle moves entries towards the new end of a table that grows, some for each
// key that was added. It returns the least time at which one of those expires,
// the greatest time for none.
func (s *Table) Settle() (expires int64) {
	expires = math.MaxInt64
	full := loadBase*s.count > maxLoad*int(s.slots)
	if s.owed == 0 && !full {
		return expires
	}
	if s.hand == s.slots && full {
		s.grown = s.slots + max(minSlots, s.slots/growPart, uint32(loadBase*s.count/maxLoad)-s.slots)
	}
	if s.grown == s.slots {
		s.owed = 0
		return expires
	}
	if len(s.chunks)*ChunkSize < int(s.grown) {
		s.addChunk() // one at a time: the system has to clear its memory
		return expires
	}
	for n := readsPerAdd * int32(min(max(s.owed, 1), maxOwed)); n > 0 && s.hand > 0; {
		s.hand--
		n -= 1 + s.at(s.hand).reach
		expires = min(expires, s.move(s.hand))
	}
	s.owed -= min(s.owed, maxOwed)
	if s.hand == 0 {
		s.slots, s.hand = s.grown, s.grown
	}
	return expires
}

// move moves the keys of a start to their start in the grown table. It returns
// the least time at which one of them expires.
func (s *Table) move(start uint32) (expires int64) {
	expires = math.MaxInt64
	first := s.at(start)
	reach := uint32(first.reach)
	first.reach = 0
	for i := start; i <= start+reach; i++ {
		if from := s.at(i); from.Rule != Free && scale(from.Key, s.slots) == start {
			e := *from
			from.set(Entry{Rule: Free})
			s.put(e)
			expires = min(expires, e.Expires())
		}
	}
	return expires
}

// Used returns the number of entries from At(0) to the last one in use; unused
// ones among them are Free.
func (s *Table) Used() int32 { return s.end }

// Len returns the number of keys.
func (s *Table) Len() int { return s.count }
