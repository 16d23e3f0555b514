package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/georld/rld/internal/load"
)

// loadReport is the load as JSON.
type loadReport struct {
	Protocol    string  `json:"protocol"`
	Rate        float64 `json:"rate"`
	Arrivals    string  `json:"arrivals"`
	Seconds     float64 `json:"seconds"`
	WarmSeconds float64 `json:"warm_seconds"`
	Keys        int     `json:"keys"`
	Zipf        float64 `json:"zipf"`
	InFlight    int     `json:"in_flight"`
	Timeout     float64 `json:"timeout_seconds"`
	Seed        uint64  `json:"seed"`
}

func (o *options) load() loadReport {
	return loadReport{
		o.protocol, o.rate, o.arrivals, o.length.Seconds(), o.warm.Seconds(), o.keys, o.zipf, o.inFlight,
		o.timeout.Seconds(), o.seed,
	}
}

// report is a measurement without --compare as JSON.
type report struct {
	Load     loadReport `json:"load"`
	Warnings []string   `json:"warnings,omitempty"`
	run
}

// run is what one target did in one measurement.
type run struct {
	Target      string    `json:"target"`
	Interrupted bool      `json:"interrupted,omitempty"`
	Seconds     float64   `json:"seconds"` // from the first call that counts to the last answer
	Calls       calls     `json:"calls"`
	Answered    float64   `json:"answered_per_second"`
	Latency     latencies `json:"latency_seconds"`
	Errors      []failed  `json:"errors"`
}

// calls counts the calls, as load.Counts.
type calls struct {
	Due      int64 `json:"due"`
	Allowed  int64 `json:"allowed"`
	Denied   int64 `json:"denied"`
	Failed   int64 `json:"failed"`
	Unsent   int64 `json:"unsent"`
	SentLate int64 `json:"sent_late"`
}

// latencies are those of all calls that were due, in seconds.
type latencies struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// failed counts the errors of one code.
type failed struct {
	Code  string `json:"code"`
	Calls int64  `json:"calls"`
	First string `json:"first"` // the text of the first one
}

func newRun(target string, c *load.Counts, elapsed time.Duration) run {
	at := func(q float64) float64 { return time.Duration(c.Took.ValueAtQuantile(q)).Seconds() }
	r := run{
		Target: target, Seconds: elapsed.Seconds(), Errors: []failed{},
		Calls:   calls{c.Due, c.Allowed, c.Denied, c.Failed, c.Unsent, c.Late},
		Latency: latencies{at(50), at(90), at(99), at(99.9), at(100), c.Took.Mean() / 1e9},
	}
	if elapsed > 0 {
		r.Answered = float64(c.Answered()) / elapsed.Seconds()
	}
	for _, code := range slices.Sorted(maps.Keys(c.Errors)) {
		r.Errors = append(r.Errors, failed{code, c.Errors[code].Calls, c.Errors[code].First})
	}
	return r
}

// warnings returns what to know about the answered calls of a target.
func (o *options) warnings(addr string, c *calls) []string {
	if c.Allowed > 0 || c.Denied == 0 {
		return nil
	}
	text := addr + ": no call was allowed: the latencies are those of denials"
	if o.gateway != "" {
		text += fmt.Sprintf("; is it a mapping with target: path? Use --target http://HOST%s%s without --gateway",
			gatewayPath, o.gateway)
	}
	return []string{text}
}

// warn prints warnings.
func warn(w io.Writer, warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(w, "warning: %s\n", printable(text))
	}
}

// write prints a result in the form that is asked for.
func (o *options) write(w io.Writer, v any, text string) error {
	if o.form == formJSON {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		text = string(data) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// describe returns the load in one line.
func (o *options) describe() string {
	keys := "1 key"
	if o.keys > 1 {
		keys = load.Grouped(int64(o.keys)) + " keys"
		if o.zipf > 0 {
			keys += " by Zipf's law of " + strconv.FormatFloat(o.zipf, 'g', -1, 64)
		}
	}
	return fmt.Sprintf("%s, %s calls a second (%s) for %s, %s, %s in flight at most",
		o.protocol, strconv.FormatFloat(o.rate, 'g', -1, 64), o.arrivals, o.length, keys, load.Grouped(int64(o.inFlight)))
}

// text returns a run for people.
func (r *run) text(o *options) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "target\t%s\n", printable(r.Target))
	fmt.Fprintf(w, "load\t%s\n", o.describe())
	if r.Interrupted {
		fmt.Fprintf(w, "\tended after %.1f s\n", r.Seconds)
	}
	fmt.Fprintf(w, "answered\t%s/s\n", decimal(r.Answered))
	fmt.Fprintf(w, "calls\t%s\n", r.Calls.text())
	if r.Calls.Due > 0 {
		l := &r.Latency
		fmt.Fprintf(w, "latency\tp50 %s  p90 %s  p99 %s  p99.9 %s  max %s  mean %s\n",
			shown(l.P50), shown(l.P90), shown(l.P99), shown(l.P999), shown(l.Max), shown(l.Mean))
	}
	for _, e := range r.Errors {
		fmt.Fprintf(w, "error\t%s %s: %s\n", load.Grouped(e.Calls), e.Code, printable(e.First))
	}
	_ = w.Flush() // the writer below is a strings.Builder: nothing can fail
	return b.String()
}

func (c *calls) text() string {
	return fmt.Sprintf("%s due: %s allowed, %s denied, %s failed, %s unsent; %s sent late",
		load.Grouped(c.Due), load.Grouped(c.Allowed), load.Grouped(c.Denied), load.Grouped(c.Failed), load.Grouped(c.Unsent), load.Grouped(c.SentLate))
}

// shown returns seconds with three digits: "412 µs", "1.25 ms", "2.00 s".
func shown(seconds float64) string { return load.Scaled(seconds*1e6, 1e3, "µs", "ms", "s") }

// decimal returns a rate with a digit after the point.
func decimal(v float64) string {
	whole, rest, _ := strings.Cut(strconv.FormatFloat(v, 'f', 1, 64), ".")
	n, _ := strconv.ParseInt(whole, 10, 64)
	return load.Grouped(n) + "." + rest
}

// printable returns a text of the other side without control characters.
func printable(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
