package rules

import (
	"testing"

	"github.com/dchest/siphash"
	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// TestRuleHasherEqualsHasher: the hasher of a rule returns the keys of
// Hasher.Key, for prefixes and values of any length, and with patterns.
func TestRuleHasherEqualsHasher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, -1, 40)
		domain, entries := text.Draw(t, "domain"), []Entry(nil)
		var patterns []string
		pooled := rapid.Bool().Draw(t, "patterns")
		for range rapid.IntRange(1, 4).Draw(t, "entries") {
			entries = append(entries, Entry{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")})
			if pooled {
				patterns = append(patterns, rapid.SampledFrom([]string{"", "a*"}).Draw(t, "pattern"))
			}
		}
		limit := &Limit{Unit: Minute, Multiplier: rapid.Uint32Range(1, 9).Draw(t, "multiplier"), Requests: 1}
		r := &Rule{Limit: limit, Patterns: patterns, keyPrefix: appendKeyPrefix(nil, domain, entries, limit.Grid())}
		h := NewHasher([SecretBytes]byte(rapid.SliceOfN(rapid.Byte(), SecretBytes, SecretBytes).Draw(t, "secret")))
		x := h.RuleHasher(r)
		got, _ := x.Key(nil, entries)
		if want, _ := h.Key(nil, domain, entries, patterns, limit.Grid()); got != want {
			t.Fatalf("key %v, want %v", got, want)
		}
	})
}

// TestSipStateEqualsLibrary: a hash that continues after any number of blocks
// is that of the whole text.
func TestSipStateEqualsLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k0, k1 := rapid.Uint64().Draw(t, "k0"), rapid.Uint64().Draw(t, "k1")
		text := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "text")
		r := Rule{keyPrefix: text[:rapid.IntRange(0, len(text)).Draw(t, "prefix")]}
		x := Hasher{k0, k1}.RuleHasher(&r)
		hi, lo := x.state.sum(text[x.hashed:], x.hashed)
		if wantHi, wantLo := siphash.Hash128(k0, k1, text); hi != wantHi || lo != wantLo {
			t.Fatalf("%v, want %v", crdt.Key{Hi: hi, Lo: lo}, crdt.Key{Hi: wantHi, Lo: wantLo})
		}
	})
}
