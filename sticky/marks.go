package sticky

import (
	"fmt"
	"slices"
)

// Watermarks are a join semilattice: the greater amount and the later end of each
// label. They ascend by label. No method changes its receiver or its argument,
// so that marks may be shared once they are built.

// Validate returns what is wrong with marks that came from elsewhere.
func (m Watermarks) Validate() error {
	if len(m) > MaxWatermarks {
		return fmt.Errorf("%d marks: want at most %d", len(m), MaxWatermarks)
	}
	for i := 1; i < len(m); i++ {
		if m[i-1].Window >= m[i].Window {
			return fmt.Errorf("mark of label %d after that of %d: want ascending labels", m[i].Window, m[i-1].Window)
		}
	}
	return nil
}

// Amount returns up to which amount label is marked, 0 when it is not.
func (m Watermarks) Amount(window int64) uint64 {
	if i, ok := m.find(window); ok {
		return m[i].Amount
	}
	return 0
}

// Covers reports whether o marks nothing above m. Ends do not matter.
func (m Watermarks) Covers(o Watermarks) bool {
	i := 0
	for _, x := range o {
		for i < len(m) && m[i].Window < x.Window {
			i++
		}
		if x.Amount > 0 && (i == len(m) || m[i].Window != x.Window || m[i].Amount < x.Amount) {
			return false
		}
	}
	return true
}

// Join returns the least marks that are nowhere below m and o. It returns m
// itself when that is all, and may return o. There may be more than MaxWatermarks.
func (m Watermarks) Join(o Watermarks) Watermarks {
	switch {
	case m.above(o):
		return m
	case o.above(m):
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
			out = append(out, Watermark{m[i].Window, max(m[i].Amount, o[j].Amount), max(m[i].End, o[j].End)})
			i, j = i+1, j+1
		}
	}
	return out
}

// since returns the marks that end at or after t: m itself when all do.
func (m Watermarks) since(t int64) Watermarks {
	ended := func(x Watermark) bool { return x.End < t }
	if !slices.ContainsFunc(m, ended) {
		return m
	}
	return slices.DeleteFunc(slices.Clone(m), ended)
}

// latest returns the n marks that end last, and the latest end of the others.
func (m Watermarks) latest(n int) (kept Watermarks, ended int64) {
	if len(m) <= n {
		return m, 0
	}
	ends := make([]int64, len(m))
	for i, x := range m {
		ends[i] = x.End
	}
	slices.Sort(ends)
	ended = ends[len(m)-n-1]
	kept = m.since(ended + 1)
	return kept, ended
}

// above reports whether o has no amount and no end that m lacks.
func (m Watermarks) above(o Watermarks) bool {
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

// firstEnd returns the earliest end, 0 of no marks.
func (m Watermarks) firstEnd() int64 {
	if len(m) == 0 {
		return 0
	}
	end := m[0].End
	for _, x := range m {
		end = min(end, x.End)
	}
	return end
}

func (m Watermarks) find(window int64) (int, bool) {
	return slices.BinarySearchFunc(m, window, func(x Watermark, l int64) int {
		switch {
		case x.Window < l:
			return -1
		case x.Window > l:
			return 1
		}
		return 0
	})
}
