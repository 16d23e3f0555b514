// Package topk finds the most frequent keys of a stream in bounded memory, with
// the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, "Efficient
// computation of frequent and top-k elements in data streams", 2005).
package topk

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/georld/rld/crdt"
)

// Sketch finds the most frequent keys in memory that does not depend on the
// number of keys. It is not safe for concurrent use. Only Above allocates.
//
// It counts by the second, the current and the former one. If W hits were added
// in a second, its count of a key is at most the true count, and less by at
// most W/capacity. So every key it returns is as frequent as reported, and it
// returns every key that exceeds a threshold by W/capacity. The rate at an
// instant is the count of the current second and, of the former one, the part
// that the last 1,000 ms overlap, as if its hits were spread evenly.
type Sketch struct {
	second    int64 // the number of the one at hand
	now       int64 // the latest instant, in milliseconds
	at, prior counter
}

// Entry is a frequent key, and the least number of its hits per second.
type Entry struct {
	Key  crdt.Key
	Rate uint64
}

// MaxCapacity bounds the capacity of a Sketch.
const MaxCapacity = 4_096

// period is a second, in milliseconds.
const period = 1_000

// New returns a sketch that counts so many keys, from 1 to MaxCapacity.
func New(capacity int) *Sketch {
	capacity = min(max(capacity, 1), MaxCapacity)
	return &Sketch{at: newCounter(capacity), prior: newCounter(capacity)}
}

// Add counts hits of a key. at is in milliseconds from the start of some clock;
// an earlier instant than the latest counts as the latest.
func (h *Sketch) Add(key crdt.Key, hits uint64, at int64) {
	if h.advance(at); hits > 0 {
		h.at.add(key, hits)
	}
}

// Rate returns the least number of hits per second of a key.
func (h *Sketch) Rate(key crdt.Key, at int64) uint64 {
	h.advance(at)
	return h.rate(key)
}

// Above returns the keys with at least threshold hits a second, the most
// frequent first.
func (h *Sketch) Above(threshold uint64, at int64) []Entry {
	h.advance(at)
	var out []Entry
	for _, s := range [...]*counter{&h.at, &h.prior} {
		for i := range s.heap {
			key := s.heap[i].key
			if s == &h.prior && h.at.find(key) >= 0 {
				continue // it was there
			}
			if rate := h.rate(key); rate >= threshold {
				out = append(out, Entry{key, rate})
			}
		}
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), a.Key.Compare(b.Key))
	})
	return out
}

// rate returns the rate of a key at the latest instant.
func (h *Sketch) rate(key crdt.Key) uint64 {
	left := uint64(period - (h.now - h.second*period))
	return h.at.least(key) + h.prior.least(key)*left/period
}

// advance moves to the second of an instant.
func (h *Sketch) advance(at int64) {
	h.now = max(h.now, at)
	second := h.now / period
	if second == h.second {
		return
	}
	h.at, h.prior = h.prior, h.at
	h.at.clear()
	if second > h.second+1 {
		h.prior.clear()
	}
	h.second = second
}

// maxCount bounds counts, so that a thousand times two of them does not
// overflow.
const maxCount = 1 << 52

// counter counts the keys of one second. A key without room replaces the key
// with the lowest count, and starts from that count.
type counter struct {
	heap  []counted // by count, the lowest first
	table []uint16  // by hash: 1 + where in heap, 0 for nothing
	shift int
}

type counted struct {
	key   crdt.Key
	count uint64 // at most so many hits were its
	over  uint64 // of them so many may have been of others
	slot  uint32 // in table
}

func newCounter(capacity int) counter {
	n := bits.Len(uint(4*capacity - 1)) // a quarter full at most, so that it is quick
	return counter{heap: make([]counted, 0, capacity), table: make([]uint16, 1<<n), shift: 64 - n}
}

func (s *counter) clear() {
	for i := range s.heap {
		s.table[s.heap[i].slot] = 0
	}
	s.heap = s.heap[:0]
}

// start returns the slot of the table at which the search for a key begins.
func (s *counter) start(key crdt.Key) uint32 {
	return uint32(uint64(key) * 0x9e3779b97f4a7c15 >> s.shift)
}

// find returns the index of a key in the heap, -1 if it has none.
func (s *counter) find(key crdt.Key) int {
	mask := uint32(len(s.table) - 1)
	for slot := s.start(key); s.table[slot] != 0; slot = (slot + 1) & mask {
		if i := int(s.table[slot]) - 1; s.heap[i].key == key {
			return i
		}
	}
	return -1
}

// least returns the least number of hits that a key can have.
func (s *counter) least(key crdt.Key) uint64 {
	if i := s.find(key); i >= 0 {
		return s.heap[i].count - s.heap[i].over
	}
	return 0
}

func (s *counter) add(key crdt.Key, hits uint64) {
	i := s.find(key)
	switch {
	case i >= 0:
	case len(s.heap) < cap(s.heap):
		i = len(s.heap)
		s.heap = append(s.heap, counted{key: key})
		s.insert(i)
		i = s.up(i)
	default:
		i = 0
		s.remove(s.heap[0].slot)
		s.heap[0].key, s.heap[0].over = key, s.heap[0].count
		s.insert(0)
	}
	e := &s.heap[i]
	e.count = min(e.count+min(hits, maxCount), maxCount)
	s.down(i)
}

// insert puts the key at index i of the heap into the table.
func (s *counter) insert(i int) {
	mask := uint32(len(s.table) - 1)
	slot := s.start(s.heap[i].key)
	for s.table[slot] != 0 {
		slot = (slot + 1) & mask
	}
	s.put(i, slot)
}

func (s *counter) put(i int, slot uint32) {
	s.table[slot] = uint16(i + 1)
	s.heap[i].slot = slot
}

// remove empties a slot of the table, and moves the keys after it that belong
// there.
func (s *counter) remove(slot uint32) {
	mask := uint32(len(s.table) - 1)
	s.table[slot] = 0
	for next := (slot + 1) & mask; s.table[next] != 0; next = (next + 1) & mask {
		i := int(s.table[next]) - 1
		if (next-s.start(s.heap[i].key))&mask >= (next-slot)&mask {
			s.table[next] = 0
			s.put(i, slot)
			slot = next
		}
	}
}

func (s *counter) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.put(i, s.heap[i].slot)
	s.put(j, s.heap[j].slot)
}

// up moves an entry up the heap to its place, and returns the place.
func (s *counter) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if s.heap[parent].count <= s.heap[i].count {
			break
		}
		s.swap(i, parent)
		i = parent
	}
	return i
}

// down moves an entry down the heap to its place.
func (s *counter) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.heap); child++ {
			if s.heap[child].count < s.heap[least].count {
				least = child
			}
		}
		if least == i {
			return
		}
		s.swap(i, least)
		i = least
	}
}
