package rules

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Hash returns a fingerprint of the rules: sets of the same rules in the same
// order, with the same limits, have the same hash on every daemon. Positions
// and metadata of rules do not take part.
func (s *Set) Hash() uint64 { return s.hash }

// SameDomain reports whether two sets have equal rules in a domain, as Hash
// compares them.
func SameDomain(a, b *Set, name string) bool {
	of := func(s *Set) uint64 {
		return hashOf(slices.DeleteFunc(slices.Clone(s.rules), func(r *Rule) bool { return r.Domain != name }))
	}
	return of(a) == of(b)
}

func hashOf(all []*Rule) uint64 {
	var b []byte
	for _, r := range all {
		b = appendText(b, r.Domain)
		b = appendText(b, r.Path)
		b = binary.LittleEndian.AppendUint64(b, uint64(r.ID))
		for _, p := range r.Patterns {
			b = appendText(b, p)
		}
		b = appendLimit(b, r.Limit)
	}
	return xxhash.Sum64(b)
}

func appendLimit(b []byte, l *Limit) []byte {
	if l == nil {
		return append(b, 0)
	}
	b = append(b, 1, byte(l.Algorithm), byte(l.Unit), byte(l.Scope), byte(l.Consistency), byte(l.Placement), byte(l.OnFailure))
	for _, n := range []uint32{l.Multiplier, l.Requests, l.Burst, uint32(l.Budget), uint32(l.ReserveShare)} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	for _, f := range []bool{l.Unlimited, l.Shadow, l.Quota, l.CarryDebt, l.ChargeDenied, l.HasBudget} {
		if f {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	b = appendText(b, l.Name)
	for _, r := range l.Replaces {
		b = appendText(b, r)
	}
	b = append(b, 0xff)
	for _, w := range l.Weights {
		b = appendText(b, w.Region)
		b = binary.LittleEndian.AppendUint32(b, uint32(w.Share))
	}
	b = append(b, 0xff)
	if l.Home != "" {
		b = appendText(append(b, 0xfe), l.Home) // no text begins with this byte
	}
	return b
}
