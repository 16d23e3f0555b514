package sticky

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/georld/rld/quota"
)

// Watermark is the high-water mark of one window: up to Amount may have been
// consumed in Window. It is forgotten after End, in Unix milliseconds.
type Watermark = quota.Watermark

// Watermarks are the watermarks of one key, ascending by window, at most
// MaxWatermarks of them. They form a join semilattice: the greater amount and
// the later end per window. No method changes its receiver or argument, so
// values may be shared once they are built.
type Watermarks []Watermark

// Validate returns an error for watermarks that are too many or out of order.
func (m Watermarks) Validate() error {
	if len(m) > MaxWatermarks {
		return fmt.Errorf("%d watermarks: want at most %d", len(m), MaxWatermarks)
	}
	for i := 1; i < len(m); i++ {
		if m[i-1].Window >= m[i].Window {
			return fmt.Errorf("watermark of window %d after window %d: want ascending windows", m[i].Window, m[i-1].Window)
		}
	}
	return nil
}

// Amount returns the amount of a window, 0 if it has none.
func (m Watermarks) Amount(window int64) uint64 {
	i, ok := slices.BinarySearchFunc(m, window, func(x Watermark, w int64) int { return cmp.Compare(x.Window, w) })
	if !ok {
		return 0
	}
	return m[i].Amount
}

// Join returns the least upper bound of m and o. It may return m or o itself,
// and more than MaxWatermarks.
func (m Watermarks) Join(o Watermarks) Watermarks {
	switch {
	case m.Above(o):
		return m
	case o.Above(m):
		return o
	}
	out := make(Watermarks, 0, len(m)+len(o))
	i, j := 0, 0
	for i < len(m) || j < len(o) {
		switch {
		case j == len(o) || i < len(m) && m[i].Window < o[j].Window:
			out = append(out, m[i])
			i++
		case i == len(m) || o[j].Window < m[i].Window:
			out = append(out, o[j])
			j++
		default:
			out = append(out, Watermark{Window: m[i].Window, Amount: max(m[i].Amount, o[j].Amount), End: max(m[i].End, o[j].End)})
			i, j = i+1, j+1
		}
	}
	return out
}

// Since returns the watermarks that end at or after t: m itself if all do.
func (m Watermarks) Since(t int64) Watermarks {
	ended := func(x Watermark) bool { return x.End < t }
	if !slices.ContainsFunc(m, ended) {
		return m
	}
	return slices.DeleteFunc(slices.Clone(m), ended)
}

// Latest returns the n watermarks that end last, and the latest end of the
// others, 0 if there are none.
func (m Watermarks) Latest(n int) (kept Watermarks, ended int64) {
	if len(m) <= n {
		return m, 0
	}
	ends := make([]int64, len(m))
	for i, x := range m {
		ends[i] = x.End
	}
	slices.Sort(ends)
	ended = ends[len(m)-n-1]
	kept = m.Since(ended + 1)
	return kept, ended
}

// Above reports whether m joined with o is m: no amount and no end of o is
// greater.
func (m Watermarks) Above(o Watermarks) bool {
	i := 0
	for _, x := range o {
		for i < len(m) && m[i].Window < x.Window {
			i++
		}
		if i == len(m) || m[i].Window != x.Window || m[i].Amount < x.Amount || m[i].End < x.End {
			return false
		}
	}
	return true
}

// FirstEnd returns the earliest end, 0 without any watermark.
func (m Watermarks) FirstEnd() int64 {
	if len(m) == 0 {
		return 0
	}
	return slices.MinFunc(m, func(a, b Watermark) int { return cmp.Compare(a.End, b.End) }).End
}
