package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is a mutation with its results.
type row struct {
	Name       string
	Place      string // file:line
	Why        string `json:",omitempty"`
	Change     string
	Equivalent string `json:",omitempty"`
	Survives   string `json:",omitempty"`
	Suites     map[suiteName]*outcome
}

// caught reports whether one of the suites caught the mutation, and whether any
// of them was tried.
func (r *row) caught(suites ...suiteName) (caught, tried bool) {
	for _, s := range suites {
		if o := r.Suites[s]; o != nil {
			tried = true
			caught = caught || o.Caught
		}
	}
	return caught, tried
}

// count is mutations that were caught, of those that were tried.
type count struct{ Caught, Of int }

func (c *count) add(caught, tried bool) {
	if tried {
		c.Of++
	}
	if caught {
		c.Caught++
	}
}

func (c count) String() string {
	return fmt.Sprintf("%d of %d, %.1f %%", c.Caught, c.Of, 100*float64(c.Caught)/float64(max(1, c.Of)))
}

// table is the result.
type table struct {
	Rows       []row
	Caught     count // by any suite
	Simulated  count // by explorers, scenarios or the swarm, of those in the core that were tried there
	Equivalent int
	Untried    int
}

// newTable sums up the results of mutations.
func newTable(list []*mutation, kept *results) *table {
	t := &table{}
	for _, m := range list {
		r := row{
			Name: m.Name, Place: fmt.Sprintf("%s:%d", m.File, m.Line), Why: m.Why, Change: m.Change,
			Equivalent: m.Equivalent, Survives: m.Survives, Suites: kept.known[m.key()],
		}
		t.Rows = append(t.Rows, r)
		if m.Equivalent != "" {
			t.Equivalent++
			continue
		}
		caught, tried := r.caught(suiteNames...)
		if !tried {
			t.Untried++
		}
		t.Caught.add(caught, tried)
		if !strings.HasPrefix(m.File, "daemon/") {
			t.Simulated.add(r.caught(explorerSuite, scenarioSuite, swarmSuite))
		}
	}
	return t
}

// writeJSON writes the table to a file, - for out.
func (t *table) writeJSON(file string, out io.Writer) error {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	if data = append(data, '\n'); file != "-" {
		return os.WriteFile(file, data, 0o666)
	}
	_, err = out.Write(data)
	return err
}

// text returns the table for a terminal, with the summary last.
func (t *table) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTATION\tPLACE\tCAUGHT BY\tSECONDS")
	var survivors []string
	for i := range t.Rows {
		r := &t.Rows[i]
		by, seconds := r.summary()
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, r.Place, by, seconds)
		if caught, tried := r.caught(suiteNames...); tried && !caught && r.Equivalent == "" {
			survivors = append(survivors, fmt.Sprintf("  %s (%s): %s", r.Name, r.Place, cmp.Or(r.Survives, "no reason is written down")))
		}
	}
	w.Flush()
	fmt.Fprintf(&b, "\ncaught     %s; %d equivalent and %d not tried are left out\n", t.Caught, t.Equivalent, t.Untried)
	fmt.Fprintf(&b, "simulated  %s of the core by explorers, scenarios or the swarm alone\n", t.Simulated)
	if len(survivors) > 0 {
		fmt.Fprintf(&b, "survivors\n%s\n", strings.Join(survivors, "\n"))
	}
	return b.String()
}

// markdown returns the table for a page of docs.
func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| mutation | place | tests | simulated |\n|---|---|---|---|\n")
	for i := range t.Rows {
		r := &t.Rows[i]
		file, name := r.Place, r.Name
		if rest, drawn := strings.CutPrefix(r.Name, strings.Split(r.Place, ":")[0]+":"); drawn {
			name = "drawn: `" + rest + "`"
		}
		if r.Equivalent != "" {
			fmt.Fprintf(&b, "| %s | `%s` | equivalent: %s | |\n", name, file, r.Equivalent)
			continue
		}
		tests, simulated := r.cell(packageSuite, otherSuite), r.cell(explorerSuite, scenarioSuite, swarmSuite)
		if tests == "-" && simulated == "-" && r.Survives != "" {
			tests = "survives: " + r.Survives
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, file, tests, simulated)
	}
	return b.String()
}

// cell returns the first of some suites that caught the mutation.
func (r *row) cell(suites ...suiteName) string {
	tried := false
	for _, s := range suites {
		o := r.Suites[s]
		if o == nil || o.Absent {
			continue
		}
		if tried = true; o.Caught {
			return fmt.Sprintf("%s, %.0f s", o.By, o.Seconds)
		}
	}
	if tried {
		return "-"
	}
	return ""
}

// summary returns the catchers of a mutation by suite, and their seconds.
func (r *row) summary() (by, seconds string) {
	if r.Equivalent != "" {
		return "equivalent: " + r.Equivalent, ""
	}
	var names, times []string
	for _, s := range suiteNames {
		if o := r.Suites[s]; o != nil && o.Caught {
			names = append(names, fmt.Sprintf("%s (%s)", s, o.By))
			times = append(times, fmt.Sprintf("%.0f", o.Seconds))
		}
	}
	if len(names) > 0 {
		return strings.Join(names, "; "), strings.Join(times, "; ")
	}
	if len(r.Suites) == 0 {
		return "not tried", ""
	}
	tried := make([]string, 0, len(r.Suites))
	for s := range r.Suites {
		tried = append(tried, string(s))
	}
	slices.Sort(tried)
	return "not by " + strings.Join(tried, ", "), ""
}
