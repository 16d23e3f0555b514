package rules

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/dchest/siphash"
	"pgregory.net/rapid"
)

// TestSipHash compares the hash of texts in pieces with that of their encoding
// by another implementation.
func TestSipHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k0, k1 := rapid.Uint64().Draw(t, "k0"), rapid.Uint64().Draw(t, "k1")
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "prefix")
		h := newSipHash(k0, k1)
		h.write(b)
		for range rapid.IntRange(0, 4).Draw(t, "texts") {
			size := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 63, 64, 4_096}).Draw(t, "size")
			text := string(rapid.SliceOfN(rapid.Byte(), min(size, 20), min(size, 20)).Draw(t, "text"))
			if size > 20 {
				text = strings.Repeat("abcdefg", size)[:size-len(text)] + text
			}
			flag := rapid.Uint64Range(0, 1).Draw(t, "flag")
			b = appendKeyText(b, text, flag)
			h.text(text, flag)
			if want, _ := siphash.Hash128(k0, k1, b); h.sum() != want {
				t.Fatalf("%x under %x, %x, want %x of %q", h.sum(), k0, k1, want, b)
			}
		}
	})
}

// TestKeysOfRules: keys of a rule are those of its descriptors.
func TestKeysOfRules(t *testing.T) {
	limit := &Limit{Unit: Minute, Multiplier: 1, Requests: 5}
	set, err := NewSet([]DomainNode{{Name: "edge", Children: []Node{
		{Key: "user", Limit: limit},
		{Key: "path", Value: "/api/*", ShareThreshold: true, Limit: limit, Children: []Node{{Key: "user", Limit: limit}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	secret := [SecretBytes]byte{1, 2, 3}
	h := NewHasher(secret)
	for _, entries := range [][]Entry{
		{{"user", "alice"}},
		{{"user", ""}},
		{{"user", strings.Repeat("x", 200)}},
		{{"path", "/api/v1"}},
		{{"path", "/api/v2"}, {"user", "bob"}},
	} {
		r := set.Domain("edge").Match(entries)
		want, b := h.Key(nil, "edge", entries, r.Patterns, limit.Grid())
		keys := h.Rule(r)
		if got := keys.Key(entries); got != want {
			t.Errorf("%v: %v, want %v", entries, got, want)
		}
		if !bytes.HasPrefix(b, binary.LittleEndian.AppendUint64(nil, limit.Grid())) {
			t.Errorf("%v: %x begins without its grid", entries, b)
		}
	}
}
