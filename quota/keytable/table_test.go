package keytable

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// The store equals a map, also when keys share all the bits that it hashes by.
func TestStoreEqualsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(rapid.IntRange(0, 9).Draw(t, "skip"))
		model := map[crdt.Key]int32{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			k := crdt.Key{
				Hi: rapid.Uint64Range(0, 3).Draw(t, "hi"),
				Lo: rapid.SampledFrom([]uint64{0, 1, 2, 15, 16, 1 << 32, 1<<32 + 15}).Draw(t, "lo"),
			}
			i, known := model[k]
			if !known {
				i = -1
			}
			if got := s.Find(k); got != i {
				t.Fatalf("find %v: %d, want %d", k, got, i)
			}
			switch {
			case !known:
				model[k] = s.Insert(k)
			case rapid.Bool().Draw(t, "remove"):
				s.Remove(i)
				delete(model, k)
			}
			if s.Len() != len(model) {
				t.Fatalf("%d keys, want %d", s.Len(), len(model))
			}
		}
		for k, i := range model {
			if s.Find(k) != i || s.At(i).Key != k {
				t.Fatalf("key %v is lost", k)
			}
		}
	})
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
