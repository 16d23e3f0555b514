package load

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// Trace is recorded traffic, in the order of its times. Its texts are kept
// once.
type Trace struct {
	// Start is the wall time of the first entry in Unix nanoseconds, 0 when the
	// recording has relative times.
	Start   int64
	Entries []TraceEntry
	Regions []string   // as first met
	Keys    []TraceKey // as first met
}

// TraceEntry is one recorded call.
type TraceEntry struct {
	At     time.Duration // since the first one
	Region int32         // index in Trace.Regions
	Key    int32         // index in Trace.Keys
	Hits   uint64
}

// TraceKey is the key of a recorded call.
type TraceKey struct {
	Domain      string // "" for the only one of the limits
	Descriptors [][]rules.Entry
}

// Bounds on a trace.
const (
	MaxTraceBytes   = 1 << 30
	maxTraceRegions = 1_024
)

// traceColumns are the columns, in the order they have without a header.
var traceColumns = []string{"time", "region", "key", "hits", "domain"}

// ParseTrace reads a trace in CSV: a line a call with time, region, key, hits
// and, where there is one, domain. A first line of these names may give
// another order or leave out region, hits (1) and domain.
//
// A time is RFC 3339, or seconds since anything, with a fraction if need be. A
// key is the entries of a descriptor, "tier=premium;user=42"; descriptors of
// one call are parted by "|". The lines may come in any order. The error has
// file, line and column.
func ParseTrace(file string, data []byte) (*Trace, error) {
	if len(data) > MaxTraceBytes {
		return nil, fmt.Errorf("%s: %d bytes, at most %d", file, len(data), MaxTraceBytes)
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.ReuseRecord, r.FieldsPerRecord, r.TrimLeadingSpace, r.Comment = true, -1, true, '#'
	p := &traceReader{file: file, csv: r, regions: map[string]int32{}, keys: map[string]int32{}}
	for first := true; ; first = false {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, p.syntax(err)
		}
		if first {
			err = p.header(record)
		}
		if err == nil && !(first && p.named) {
			err = p.line(record)
		}
		if err != nil {
			return nil, err
		}
	}
	return p.finish()
}

// traceReader reads the lines of a trace.
type traceReader struct {
	file    string
	csv     *csv.Reader
	columns []int // by traceColumns: which field, -1 for none
	named   bool  // there is a header
	out     Trace
	times   []int64 // ns, of the entries
	dated   int     // of them, those that are wall times
	regions map[string]int32
	keys    map[string]int32
}

func (p *traceReader) fault(field int, format string, args ...any) error {
	line, column := p.csv.FieldPos(field)
	return fmt.Errorf("%s:%d:%d: %s", p.file, line, column, fmt.Sprintf(format, args...))
}

func (p *traceReader) syntax(err error) error {
	if e := (*csv.ParseError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s:%d:%d: %w; a field with quotes or commas is quoted whole", p.file, e.Line, e.Column, e.Err)
	}
	return fmt.Errorf("%s: %w", p.file, err)
}

// header reads the first line as the names of columns when any of its fields is
// one.
func (p *traceReader) header(record []string) error {
	p.columns = []int{0, 1, 2, 3, 4}
	columns := []int{-1, -1, -1, -1, -1}
	for i, name := range record {
		if at := slices.Index(traceColumns, strings.ToLower(strings.TrimSpace(name))); at >= 0 {
			columns[at], p.named = i, true
		}
	}
	if !p.named {
		return nil
	}
	p.columns = columns
	for _, at := range []int{0, 2} { // time and key
		if columns[at] < 0 {
			return p.fault(0, "no column %s; the columns are %s", traceColumns[at], strings.Join(traceColumns, ", "))
		}
	}
	return nil
}

// field returns a column of a line and the number of its field; "" when it has
// none.
func (p *traceReader) field(record []string, column int) (string, int) {
	i := p.columns[column]
	if i < 0 || i >= len(record) {
		return "", 0
	}
	return strings.TrimSpace(record[i]), i
}

func (p *traceReader) line(record []string) error {
	if n := len(record); !p.named && (n < 4 || n > 5) {
		return p.fault(0, "%d columns, want time, region, key, hits; and, where there is one, domain", n)
	}
	at, err := p.time(record)
	if err != nil {
		return err
	}
	region, i := p.field(record, 1)
	number, known := p.regions[region]
	if !known {
		if len(p.out.Regions) == maxTraceRegions {
			return p.fault(i, "region %q, beyond the %d before it", region, maxTraceRegions)
		}
		number = int32(len(p.out.Regions))
		p.regions[region] = number
		p.out.Regions = append(p.out.Regions, strings.Clone(region))
	}
	key, err := p.key(record)
	if err != nil {
		return err
	}
	hits := uint64(1)
	if text, i := p.field(record, 3); text != "" {
		if hits, err = strconv.ParseUint(text, 10, 32); err != nil {
			return p.fault(i, "hits %q, want a whole number from 0 to %d", text, math.MaxUint32)
		}
	}
	p.times = append(p.times, at)
	p.out.Entries = append(p.out.Entries, TraceEntry{Region: number, Key: key, Hits: hits})
	return nil
}

// time reads the time of a line, in nanoseconds.
func (p *traceReader) time(record []string) (int64, error) {
	text, i := p.field(record, 0)
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		p.dated++
		return t.UnixNano(), nil
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= 0 && s < 1e10) || strings.ContainsAny(text, "xXpP_") {
		return 0, p.fault(i, "time %q, want seconds such as 12.5, or 2026-01-31T12:00:00Z", text)
	}
	whole, fraction := math.Modf(s)
	if whole >= 1e9 { // nobody counts seconds from 31 years ago but Unix
		p.dated++
	}
	return int64(whole)*int64(time.Second) + int64(math.Round(fraction*1e6))*int64(time.Microsecond), nil
}

// key reads the key of a line.
func (p *traceReader) key(record []string) (int32, error) {
	text, i := p.field(record, 2)
	domain, j := p.field(record, 4)
	name := domain + "\x00" + text
	if number, known := p.keys[name]; known {
		return number, nil
	}
	if len(domain) > limits.MaxTextBytes {
		return 0, p.fault(j, "domain of %d bytes, at most %d", len(domain), limits.MaxTextBytes)
	}
	if text == "" {
		return 0, p.fault(i, "no key, want entries such as user=42 or tier=premium;user=42")
	}
	k := TraceKey{Domain: strings.Clone(domain)}
	for _, d := range strings.Split(strings.Clone(text), "|") {
		var entries []rules.Entry
		for _, e := range strings.Split(d, ";") {
			key, value, _ := strings.Cut(strings.TrimSpace(e), "=")
			if key == "" || len(key) > limits.MaxTextBytes || len(value) > limits.MaxTextBytes {
				return 0, p.fault(i, "key %.60q, want entries such as user=42 or tier=premium;user=42", text)
			}
			entries = append(entries, rules.Entry{Key: key, Value: value})
		}
		k.Descriptors = append(k.Descriptors, entries)
	}
	number := int32(len(p.out.Keys))
	p.keys[strings.Clone(name)] = number
	p.out.Keys = append(p.out.Keys, k)
	return number, nil
}

// finish sorts the entries and counts their times from the first.
func (p *traceReader) finish() (*Trace, error) {
	t := &p.out
	if len(t.Entries) == 0 {
		return nil, fmt.Errorf("%s: no traffic; a line is time,region,key,hits", p.file)
	}
	if p.dated != 0 && p.dated != len(t.Entries) {
		return nil, fmt.Errorf("%s: %d of %d times are dates and the others are not; write all in one way",
			p.file, p.dated, len(t.Entries))
	}
	first := slices.Min(p.times)
	if p.dated > 0 {
		t.Start = first
	}
	for i := range t.Entries {
		t.Entries[i].At = time.Duration(p.times[i] - first)
	}
	slices.SortStableFunc(t.Entries, func(a, b TraceEntry) int { return cmp.Compare(a.At, b.At) })
	if last := t.Entries[len(t.Entries)-1].At; last > MaxDuration {
		return nil, fmt.Errorf("%s: %v from first to last, at most %v", p.file, last, MaxDuration)
	}
	return t, nil
}
