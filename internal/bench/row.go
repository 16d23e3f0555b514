package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/georld/rld/internal/load"
)

// unit is the unit of a figure.
type unit string

// The units.
const (
	nanoseconds unit = "ns"
	memory      unit = "B"
	perSecond   unit = "/s"
	allocations unit = "allocs"
	times       unit = "x"
	percent     unit = "%"
)

// figure returns a value in a unit for people, with three digits.
func (u unit) figure(v float64) string {
	switch u {
	case nanoseconds:
		return load.Scaled(v, 1e3, "ns", "µs", "ms", "s")
	case memory:
		return load.Scaled(v, 1e3, "B", "KB", "MB", "GB")
	case perSecond:
		return load.Grouped(int64(math.RoundToEven(v))) + "/s"
	case percent:
		return strconv.FormatFloat(100*v, 'f', 2, 64) + " %"
	case allocations:
		return strconv.FormatFloat(v, 'g', 3, 64) + " allocs"
	}
	return strconv.FormatFloat(v, 'f', 2, 64) + " " + string(u)
}

// bound is the limit of a figure.
type bound struct {
	of    subject
	cmp   comparison
	limit float64
	unit  unit
}

// subject is the figure that a bound is about.
type subject int

// The subjects.
const (
	measured subject = iota
	ratio            // measured / beside
)

// comparison is on which side of its limit a figure must be.
type comparison string

// The comparisons.
const (
	atMost  comparison = "<="
	atLeast comparison = ">="
	below   comparison = "<"
)

// String returns the bound as the table shows it, without trailing zeros.
func (b bound) String() string {
	number, name, _ := strings.Cut(b.unit.figure(b.limit), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(fmt.Sprint(b.cmp, " ", number, " ", name))
}

func (b bound) keeps(v float64) bool {
	switch b.cmp {
	case atMost:
		return v <= b.limit
	case atLeast:
		return v >= b.limit
	}
	return v < b.limit
}

// outcome is what measuring a line gave.
type outcome struct {
	Measured float64 `json:"measured"`
	// Beside is the bare cost, or the other side, measured in the same run
	// in the same unit; BesideWhat names it.
	Beside     float64 `json:"beside"`
	BesideWhat string  `json:"beside_what"`
	Unit       unit    `json:"unit"`
	// Ratio is Measured / Beside, or the median of the ratios of the rounds;
	// 0 where Beside is.
	Ratio float64 `json:"ratio"`
	// Readings holds the readings of each round in order: ours, then the other
	// side's.
	Readings [][]float64 `json:"readings,omitempty"`
}

// row is one line of the table.
type row struct {
	Name string `json:"name"`
	What string `json:"what"`
	outcome
	Bound   string `json:"bound"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"` // why it could not be measured
	// LeftOut is why it was not measured, which is no failure.
	LeftOut string `json:"left_out,omitempty"`
}

// leftOut is the error of a line that needs something this machine does not
// have.
type leftOut string

func (e leftOut) Error() string { return string(e) }

// newRow judges an outcome.
func newRow(l *line, o outcome, err error) row {
	r := row{Name: l.Name, What: l.What, Bound: l.bound.String()}
	if e, ok := errors.AsType[leftOut](err); ok {
		r.LeftOut = string(e)
		return r
	}
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	r.outcome = o
	v := o.Measured
	if l.bound.of == ratio {
		v = o.Ratio
	}
	r.OK = l.bound.keeps(v)
	return r
}
