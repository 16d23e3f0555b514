package crdt

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func genCellID() *rapid.Generator[CellID] {
	return rapid.Custom(func(t *rapid.T) CellID {
		n := rapid.Uint64Range(0, 1)
		return CellID{
			Key:         Key(n.Draw(t, "key")),
			Window:      int64(n.Draw(t, "window")),
			Incarnation: Incarnation(n.Draw(t, "incarnation")),
		}
	})
}

// digestOf computes the digest of a set of cells from scratch, in the order of
// ids.
func digestOf(ids []CellID, cells map[CellID]PN) Digest {
	var d Digest
	for _, id := range ids {
		d += cellDigest(id, cells[id])
	}
	return d
}

// TestDigestIncremental: a digest updated by Replace through any history equals
// the digest of the present cells.
func TestDigestIncremental(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Digest
		cells := map[CellID]PN{}
		var ids []CellID
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			id := genCellID().Draw(t, "cell")
			is := genPN(2).Draw(t, "value") // at times zero: dropped
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			d = d.Replace(id, cells[id], is)
			cells[id] = is
		}
		if want := digestOf(rapid.Permutation(ids).Draw(t, "order"), cells); d != want {
			t.Fatalf("digest %#x, from scratch %#x: %v", d, want, cells)
		}
		k := rapid.IntRange(0, len(ids)).Draw(t, "split")
		if d-digestOf(ids[:k], cells) != digestOf(ids[k:], cells) {
			t.Fatalf("a digest without some cells is not the digest of the others")
		}
		for _, id := range ids {
			d = d.Replace(id, cells[id], PN{})
		}
		if d != 0 {
			t.Fatalf("digest %#x of no cells", d)
		}
	})
}

// TestDigestSeesEveryPart changes one number of a cell that counted something.
func TestDigestSeesEveryPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.Uint64()
		w := [5]uint64{}
		for i := range w {
			w[i] = word.Draw(t, "word")
		}
		w[3] |= 1 // P stays above 0: no change touches the lowest bit
		v := w
		i := rapid.IntRange(0, 4).Draw(t, "part")
		v[i] ^= word.Filter(func(x uint64) bool { return x > 1 }).Draw(t, "change") &^ 1
		if digestOfWords(w) == digestOfWords(v) {
			t.Fatalf("%v and %v have one digest", w, v)
		}
	})
}

func digestOfWords(w [5]uint64) Digest {
	return cellDigest(CellID{Key(w[0]), int64(w[1]), Incarnation(w[2])}, PN{w[3], w[4]})
}

// TestDigestDistinct enumerates small cells: no two sets of up to two of them
// may share a digest.
func TestDigestDistinct(t *testing.T) {
	var single []Digest
	for n := range uint64(1 << 7) {
		v := PN{P: 1 + n>>4&3, N: n >> 6 & 1}
		id := CellID{Key(n & 3), int64(n >> 2 & 1), Incarnation(n >> 3 & 1)}
		single = append(single, cellDigest(id, v))
	}
	seen := map[Digest]bool{0: true}
	add := func(d Digest) {
		if seen[d] {
			t.Fatalf("digest %#x twice", d)
		}
		seen[d] = true
	}
	for i, a := range single {
		add(a)
		for _, b := range single[:i] {
			add(a + b)
		}
	}
}

// TestDigestGolden pins the mix: daemons of two versions compare digests.
func TestDigestGolden(t *testing.T) {
	tests := []struct {
		id   CellID
		v    PN
		want Digest
	}{
		{CellID{}, PN{}, 0},
		{CellID{}, PN{P: 1}, 0x2d6527ba78af243f},
		{CellID{Key(1), 3, 4}, PN{5, 6}, 0x89bd574988a70a2},
		{CellID{Key(^uint64(0)), -1, ^Incarnation(0)}, PN{P: ^uint64(0)}, 0x1d52796b1cd54a0d},
	}
	for _, tt := range tests {
		if got := cellDigest(tt.id, tt.v); got != tt.want {
			t.Errorf("digest of %v %v is %#x, want %#x", tt.id, tt.v, got, tt.want)
		}
	}
}
