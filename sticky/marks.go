package sticky

import (
	"fmt"
	"slices"
)

// Marks are a join semilattice: the greater amount and the later end of each
// label. They ascend by label. No method changes its receiver or its argument,
// so that marks may be shared once they are built.

// Validate returns what is wrong with marks that came from elsewhere.
func (m Marks) Validate() error {
	if len(m) > MaxMarks {
		return fmt.Errorf("%d marks: want at most %d", len(m), MaxMarks)
	}
	for i := 1; i < len(m); i++ {
		if m[i-1].Label >= m[i].Label {
			return fmt.Errorf("mark of label %d after that of %d: want ascending labels", m[i].Label, m[i-1].Label)
		}
	}
	return nil
}

// Amount returns up to which amount label is marked, 0 when it is not.
func (m Marks) Amount(label int64) uint64 {
	if i, ok := m.find(label); ok {
		return m[i].Amount
	}
	return 0
}

// Covers reports whether o marks nothing above m. Ends do not matter.
func (m Marks) Covers(o Marks) bool {
	i := 0
	for _, x := range o {
		for i < len(m) && m[i].Label < x.Label {
			i++
		}
		if x.Amount > 0 && (i == len(m) || m[i].Label != x.Label || m[i].Amount < x.Amount) {
			return false
		}
	}
	return true
}

// Join returns the least marks that are nowhere below m and o. It returns m
// itself when that is all, and may return o. There may be more than MaxMarks.
func (m Marks) Join(o Marks) Marks {
	switch {
	case m.above(o):
		return m
	case o.above(m):
		return o
	}
	out := make(Marks, 0, len(m)+len(o))
	i, j := 0, 0
	for i < len(m) || j < len(o) {
		switch {
		case j == len(o) || i < len(m) && m[i].Label < o[j].Label:
			out = append(out, m[i])
			i++
		case i == len(m) || o[j].Label < m[i].Label:
			out = append(out, o[j])
			j++
		default:
			out = append(out, Mark{m[i].Label, max(m[i].Amount, o[j].Amount), max(m[i].End, o[j].End)})
			i, j = i+1, j+1
		}
	}
	return out
}

// since returns the marks that end at or after t: m itself when all do.
func (m Marks) since(t int64) Marks {
	ended := func(x Mark) bool { return x.End < t }
	if !slices.ContainsFunc(m, ended) {
		return m
	}
	return slices.DeleteFunc(slices.Clone(m), ended)
}

// latest returns the n marks that end last, and the latest end of the others.
func (m Marks) latest(n int) (kept Marks, ended int64) {
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
func (m Marks) above(o Marks) bool {
	i := 0
	for _, x := range o {
		for i < len(m) && m[i].Label < x.Label {
			i++
		}
		if i == len(m) || m[i].Label != x.Label || m[i].Amount < x.Amount || m[i].End < x.End {
			return false
		}
	}
	return true
}

// firstEnd returns the earliest end, 0 of no marks.
func (m Marks) firstEnd() int64 {
	if len(m) == 0 {
		return 0
	}
	end := m[0].End
	for _, x := range m {
		end = min(end, x.End)
	}
	return end
}

func (m Marks) find(label int64) (int, bool) {
	return slices.BinarySearchFunc(m, label, func(x Mark, l int64) int {
		switch {
		case x.Label < l:
			return -1
		case x.Label > l:
			return 1
		}
		return 0
	})
}
