package keytable

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// The store equals a map, also when keys share all the bits that it hashes by.
func TestStoreEqualsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(rapid.IntRange(0, 9).Draw(t, "skip"), nil)
		model := map[crdt.Key]*Entry{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			k := crdt.Key(rapid.Uint64Range(0, 3).Draw(t, "high")<<40 |
				rapid.SampledFrom([]uint64{0, 1, 2, 15, 16, 1 << 32, 1<<32 + 15}).Draw(t, "low")<<crdt.ShardBits)
			e, known := model[k]
			if got := s.Find(k); got != e {
				t.Fatalf("find %v: %p, want %p", k, got, e)
			}
			switch {
			case !known:
				model[k] = s.Insert(k)
			case rapid.Bool().Draw(t, "remove"):
				s.Remove(number(&s, k))
				delete(model, k)
			}
			if s.Len() != len(model) {
				t.Fatalf("%d keys, want %d", s.Len(), len(model))
			}
		}
		for k, e := range model {
			if s.Find(k) != e || e.Key != k {
				t.Fatalf("key %v is lost", k)
			}
		}
	})
}

// number returns the number of a key's entry.
func number(s *Table, k crdt.Key) int32 {
	i, _ := s.index.find(k, s)
	return i
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

// A table that grows by thousands of keys, and loses some on the way, equals a
// map at every step, and each added key moves few old slots.
func TestGrowingStoreEqualsAMap(t *testing.T) {
	growing, removedOld := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		spread := rapid.SampledFrom([]uint64{1<<6 - 1, 1<<12 - 1, 1<<26 - 1}).Draw(t, "spread")
		removals := rapid.IntRange(0, 4).Draw(t, "removals in ten")
		s, model, keys := New(0, nil), map[crdt.Key]*Entry{}, []crdt.Key(nil)
		for range rapid.IntRange(1, 4_000).Draw(t, "steps") {
			if len(keys) > 0 && rng.IntN(10) < removals {
				i := rng.IntN(len(keys))
				k := keys[i]
				keys = slices.Delete(keys, i, i+1)
				if s.index.findOld(k, &s) >= 0 {
					removedOld++
				}
				s.Remove(number(&s, k))
				delete(model, k)
				if got := s.Find(k); got != nil {
					t.Fatalf("found %v, which was removed", k)
				}
			} else {
				k := crdt.Key(rng.Uint64()<<32 | rng.Uint64()&spread<<crdt.ShardBits)
				hand, old := s.index.hand, s.index.old
				model[k] = s.Insert(k)
				keys = append(keys, k)
				if moves := s.index.hand - hand; old != nil && s.index.old != nil && &old[0] == &s.index.old[0] && moves > movesPerAdd {
					t.Fatalf("%d slots moved for one key, at most %d", moves, movesPerAdd)
				}
				if old != nil && s.index.old != nil && &old[0] != &s.index.old[0] {
					t.Fatalf("the slots doubled before all of the old ones had moved")
				}
			}
			if s.index.old != nil {
				growing++
			}
			if s.Len() != len(model) {
				t.Fatalf("%d keys, want %d", s.Len(), len(model))
			}
			if len(keys) > 0 {
				if k := keys[rng.IntN(len(keys))]; s.Find(k) != model[k] {
					t.Fatalf("find %v: %p, want %p", k, s.Find(k), model[k])
				}
			}
		}
		for k, e := range model {
			if s.Find(k) != e || e.Key != k {
				t.Fatalf("find %v: %p, want %p", k, s.Find(k), e)
			}
		}
	})
	if growing == 0 || removedOld == 0 {
		t.Errorf("no table was used while it grew (%d steps, %d removals): the test is empty", growing, removedOld)
	}
}

// TestEntryIsALine: an entry shares no cache line with another one.
func TestEntryIsALine(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size != 64 {
		t.Errorf("%d bytes", size)
	}
}
