package rules

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counter is the decoded form of a key.
type counter struct {
	grid    uint64
	domain  string
	entries []Entry
	pooled  []bool
}

// decodeKey reads an encoding back. That it can proves that no two counters
// have one encoding.
func decodeKey(b []byte) (counter, []byte) {
	c := counter{grid: binary.LittleEndian.Uint64(b)}
	n, w := binary.Uvarint(b[8:])
	b = b[8+w:]
	text := func() (string, bool) {
		size, w := binary.Uvarint(b)
		s := string(b[w : w+int(size>>1)])
		b = b[w+int(size>>1):]
		return s, size&1 == 1
	}
	c.domain, _ = text()
	for range n {
		k, _ := text()
		v, pooled := text()
		c.entries, c.pooled = append(c.entries, Entry{Key: k, Value: v}), append(c.pooled, pooled)
	}
	return c, b
}

// FuzzKey checks that the encoding of a counter is unambiguous: domains, keys
// and values that contain each other's bytes, patterns, and grids.
func FuzzKey(f *testing.F) {
	f.Add("coll", "p_q", "v", "", "", uint64(1), false)
	f.Add("coll_p", "q", "v", "", "", uint64(1), false)
	f.Add("d", "k", "v", "l", "w", uint64(2), true)
	f.Add("d", "k", "v_l_w", "", "", uint64(2), true)
	f.Add("d", "", "\x00\x01", "\xff", "*", ^uint64(0), true)
	f.Fuzz(func(t *testing.T, domain, k1, v1, k2, v2 string, grid uint64, pooled bool) {
		entries := []Entry{{Key: k1, Value: v1}, {Key: k2, Value: v2}}
		var patterns []string
		want := counter{grid: grid, domain: domain, entries: entries, pooled: []bool{false, false}}
		if pooled && v2 != "" {
			patterns = []string{"", v2}
			want.pooled[1] = true
		}
		b := appendKey(nil, domain, entries, patterns, grid)
		got, rest := decodeKey(b)
		if len(rest) != 0 {
			t.Fatalf("%d bytes left", len(rest))
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(counter{})); diff != "" {
			t.Fatalf("%q reads back as something else:\n%s", b, diff)
		}
		h := NewHasher([SecretBytes]byte{1})
		x, _ := h.Key(nil, domain, entries, patterns, grid)
		y, _ := h.Key(nil, domain, entries, patterns, grid+1)
		if x == y {
			t.Fatal("two grids, one key")
		}
	})
}
