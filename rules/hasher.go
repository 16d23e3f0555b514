package rules

import (
	"encoding/binary"

	"github.com/dchest/siphash"

	"github.com/georld/rld/crdt"
)

// SecretBytes is the length of a Hasher's secret.
const SecretBytes = 16

// Hasher turns descriptors into keys: the first word of SipHash-128 under a
// secret. So counters hold no text, and without the secret nobody can choose a
// key's hash.
type Hasher struct{ k0, k1 uint64 }

// NewHasher returns the hasher of a secret.
func NewHasher(secret [SecretBytes]byte) Hasher {
	return Hasher{binary.LittleEndian.Uint64(secret[:8]), binary.LittleEndian.Uint64(secret[8:])}
}

// Key returns the counter key of a descriptor in a domain on a grid, and the
// buffer it used, for the next call. patterns is nil or as long as entries. A
// pattern that is not empty replaces its entry's value.
func (h Hasher) Key(
	buf []byte, domain string, entries []Entry, patterns []string, grid uint64,
) (crdt.Key, []byte) {
	buf = appendKey(buf, domain, entries, patterns, grid)
	hi, _ := siphash.Hash128(h.k0, h.k1, buf)
	return crdt.Key(hi), buf
}

// RuleKeys makes the keys of a rule with a limit, on the grid of its limit. It
// has hashed their common beginning.
type RuleKeys struct {
	patterns []string
	begun    sipHash
}

// Rule returns the keys of a rule of a Set, which have no use without a limit.
func (h Hasher) Rule(r *Rule) RuleKeys {
	k := RuleKeys{patterns: r.Patterns, begun: newSipHash(h.k0, h.k1)}
	k.begun.write(r.keyPrefix)
	return k
}

// Key is Hasher.Key for entries that the rule matched.
func (k *RuleKeys) Key(entries []Entry) crdt.Key {
	h := k.begun
	if len(k.patterns) == 0 && len(entries) == 1 { // most rules
		h.text(entries[0].Value, 0)
		return crdt.Key(h.sum())
	}
	for i := range entries {
		if i > 0 {
			h.text(entries[i].Key, 0)
		}
		if i < len(k.patterns) && k.patterns[i] != "" {
			h.text(k.patterns[i], 1)
		} else {
			h.text(entries[i].Value, 0)
		}
	}
	return crdt.Key(h.sum())
}

// Derived returns another key for a key and a text. Keys that differ in either
// have different ones.
func (h Hasher) Derived(k crdt.Key, text string) crdt.Key {
	b := binary.LittleEndian.AppendUint64(make([]byte, 8, 64), uint64(k))
	hi, _ := siphash.Hash128(h.k0, h.k1, append(b, text...)) // a grid is never 0, so no descriptor has these bytes
	return crdt.Key(hi)
}

// appendKey appends the canonical encoding of a counter: the grid, the domain,
// and each key and value, every text after its length, with a flag for
// patterns. No two counters have the same encoding, and none is the prefix of
// another.
func appendKey(b []byte, domain string, entries []Entry, patterns []string, grid uint64) []byte {
	return appendKeyValues(appendKeyPrefix(b, domain, entries, grid), entries, patterns)
}

// appendKeyPrefix appends the encoding of a counter up to its first value.
func appendKeyPrefix(b []byte, domain string, entries []Entry, grid uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, grid)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	b = appendKeyText(b, domain, 0)
	if len(entries) > 0 {
		b = appendKeyText(b, entries[0].Key, 0)
	}
	return b
}

// appendKeyValues appends the encoding of a counter from its first value on.
func appendKeyValues(b []byte, entries []Entry, patterns []string) []byte {
	for i := range entries {
		if i > 0 {
			b = appendKeyText(b, entries[i].Key, 0)
		}
		if i < len(patterns) && patterns[i] != "" {
			b = appendKeyText(b, patterns[i], 1)
		} else {
			b = appendKeyText(b, entries[i].Value, 0)
		}
	}
	return b
}

// appendKeyText appends a text after its length and a flag.
func appendKeyText(b []byte, s string, flag uint64) []byte {
	if n := uint64(len(s)) << 1; n < 0x80 {
		b = append(b, byte(n|flag))
	} else {
		b = binary.AppendUvarint(b, n|flag)
	}
	return append(b, s...)
}
