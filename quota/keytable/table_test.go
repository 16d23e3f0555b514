package keytable

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// A table that grows by thousands of keys, and loses some on the way, equals a
// map at every step, also when keys share all the bits that it hashes by. Until
// Settle, entries stay where they are. Settle moves few of them.
func TestTableEqualsAMap(t *testing.T) {
	grew, removed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		// The lowest bits that a table hashes by lead to the same start.
		spread := rapid.SampledFrom([]uint64{0, 1<<6 - 1, 3 << 30, 1<<32 - 1}).Draw(t, "spread")
		removals := rapid.IntRange(0, 6).Draw(t, "removals in ten")
		settle := rapid.IntRange(1, 40).Draw(t, "keys to a Settle")
		s, model, keys := New(nil), map[crdt.Key]*Entry{}, []crdt.Key(nil)
		steps := rapid.IntRange(1, 4_000).Draw(t, "steps")
		if spread < 1<<6 {
			steps = min(steps, 400) // nearly all keys are in one chain
		}
		for range steps {
			if len(keys) > 0 && rng.IntN(10) < removals {
				i := rng.IntN(len(keys))
				k := keys[i]
				keys = slices.Delete(keys, i, i+1)
				if s.hand != s.slots {
					removed++
				}
				s.Remove(number(t, &s, k))
				delete(model, k)
				if got := s.Find(k); got != nil {
					t.Fatalf("found %v, which was removed", k)
				}
			} else if k := key(rng, spread); s.Find(k) == nil {
				model[k] = s.Insert(k)
				model[k].KeepUntil(int64(rng.IntN(1_000)))
				keys = append(keys, k)
			}
			if rng.IntN(settle) == 0 {
				grew += checkSettle(t, &s, model)
			}
			if len(keys) > 0 {
				if k := keys[rng.IntN(len(keys))]; s.Find(k) != model[k] {
					t.Fatalf("find %v: %p, want %p", k, s.Find(k), model[k])
				}
			}
		}
		checkContents(t, &s, model)
	})
	if grew == 0 || removed == 0 {
		t.Errorf("no table was used while it grew (%d moves, %d removals): the test is empty", grew, removed)
	}
}

// key returns a random key that has its start by the bits of spread alone.
func key(rng *rand.Rand, spread uint64) crdt.Key {
	const others = ^uint64(1<<(32+crdt.ShardBits) - 1)
	return crdt.Key(rng.Uint64()&others | rng.Uint64()&spread<<crdt.ShardBits)
}

// number returns the number of a key's entry.
func number(t *rapid.T, s *Table, k crdt.Key) int32 {
	e := s.Find(k)
	for i := range s.Used() {
		if s.At(i) == e {
			return i
		}
	}
	t.Fatalf("%v is not in the table", k)
	return -1
}

// checkSettle calls Settle, takes over where the entries of model are, and
// returns how many have moved.
func checkSettle(t *rapid.T, s *Table, model map[crdt.Key]*Entry) (moved int) {
	chunks, owed, hand, slots := len(s.chunks), s.owed, s.hand, s.slots
	expires := s.Settle()
	for k, was := range model {
		is := s.Find(k)
		if is == nil {
			t.Fatalf("%v is lost", k)
		}
		if is != was {
			moved++
			if is.Expires() < expires {
				t.Fatalf("an entry moved that expires at %d, before %d", is.Expires(), expires)
			}
		}
		model[k] = is
	}
	if len(s.chunks) > chunks+1 {
		t.Fatalf("%d chunks were added, at most one", len(s.chunks)-chunks)
	}
	starts := int(hand - s.hand)
	if s.slots != slots { // all have moved
		starts = int(hand)
	}
	if starts > readsPerAdd*max(owed, 1) {
		t.Fatalf("%d starts moved for %d keys", starts, owed)
	}
	return moved
}

// checkContents checks that a table has the entries of model and no others.
func checkContents(t *rapid.T, s *Table, model map[crdt.Key]*Entry) {
	if s.Len() != len(model) {
		t.Fatalf("%d keys, want %d", s.Len(), len(model))
	}
	for k, e := range model {
		if s.Find(k) != e || e.Key != k {
			t.Fatalf("find %v: %p, want %p", k, s.Find(k), e)
		}
	}
	n := 0
	for e := range s.All {
		if model[e.Key] != e {
			t.Fatalf("entry of %v is none of the table", e.Key)
		}
		n++
	}
	if n != len(model) {
		t.Fatalf("All yields %d entries, want %d", n, len(model))
	}
}

// A large table is nearly full at all times, keys are a few slots behind their
// starts, and its growth is over before it has to grow again. So a key takes
// little memory, and its entry is found with few reads.
func TestLoadOfATable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	s := New(nil)
	for n := 1; n <= 200_000; n++ {
		s.Settle()
		if s.hand != s.slots && s.hand != 0 && loadBase*s.count > maxLoad*int(s.grown) {
			t.Fatalf("with %d keys the table has to grow again before its growth is over", n)
		}
		s.Insert(key(rng, 1<<32-1))
		if n < 20_000 || n%5_000 != 0 {
			continue
		}
		if bytes := len(s.chunks) * ChunkSize * 64 / n; bytes > 78 {
			t.Errorf("%d bytes a key with %d keys", bytes, n)
		}
		sum := 0
		for i := range s.Used() {
			if e := s.At(i); e.Rule != Free {
				sum += int(i) - int(s.start(e.Key))
			}
		}
		if sum > 4*n {
			t.Errorf("with %d keys they are %d slots behind their starts", n, sum/n)
		}
	}
}

// A table in which keys come and go for long stays as large as it is, and a
// search in it reads few slots.
func TestChurnOfATable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	s := New(nil)
	for range 20_000 {
		s.Settle()
		s.Insert(key(rng, 1<<32-1))
	}
	grown := s.grown
	for range 400_000 {
		if i := int32(rng.IntN(int(s.Used()))); s.At(i).Rule != Free {
			s.Remove(i)
			s.Settle()
			s.Insert(key(rng, 1<<32-1))
		}
	}
	sum := 0
	for i := range s.Used() {
		sum += int(s.At(i).reach)
	}
	if s.grown != grown || sum > 10*int(s.slots) {
		t.Errorf("%d slots, want %d, with a reach of %d on average", s.grown, grown, sum/int(s.slots))
	}
}

// TestInherit: the mark of an entry and its expiry do not change each other.
func TestInherit(t *testing.T) {
	var e Entry
	e.KeepUntil(1_000)
	if e.Inherited() {
		t.Error("a new entry inherits")
	}
	e.Inherit()
	if !e.Inherited() || e.Expires() != 1_000 {
		t.Errorf("inherited %v, expires %d", e.Inherited(), e.Expires())
	}
	if e.KeepUntil(2_000); !e.Inherited() || e.Expires() != 2_000 {
		t.Errorf("kept on: inherited %v, expires %d", e.Inherited(), e.Expires())
	}
	if e.Restart(3_000); e.Inherited() || e.Expires() != 3_000 {
		t.Errorf("restarted: inherited %v, expires %d", e.Inherited(), e.Expires())
	}
}

// TestEntryIsALine: an entry shares no cache line with another one.
func TestEntryIsALine(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size != 64 {
		t.Errorf("%d bytes", size)
	}
}

// TestBurstsOfKeys: a table that gets more keys at once than one Settle moves
// is not overloaded for long.
func TestBurstsOfKeys(t *testing.T) {
	const burst, settles = 4 * maxOwed, 8
	s, rng := New(nil), rand.New(rand.NewPCG(1, 2))
	var added []crdt.Key
	for range 100 {
		for range burst {
			added = append(added, key(rng, 1<<32-1))
			s.Insert(added[len(added)-1])
		}
		for range settles {
			s.Settle()
		}
	}
	for range 2_000 {
		s.Settle()
	}
	longest := int32(0)
	for i := range s.Used() {
		longest = max(longest, s.At(i).reach)
	}
	if loadBase*s.count > maxLoad*int(s.slots) || longest > 500 {
		t.Errorf("%d keys in %d slots, the longest search of %d", s.count, s.slots, longest)
	}
	for _, k := range added {
		if e := s.Find(k); e == nil || e.Key != k {
			t.Fatalf("%v is lost", k)
		}
	}
}
