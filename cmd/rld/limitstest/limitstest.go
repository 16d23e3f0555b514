// Package limitstest plays the tests of limits that a user writes: calls, and
// the answers that the limits must give to them.
package limitstest

import (
	"fmt"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// Result is what the tests of some files found.
type Result struct {
	OK       bool                `json:"ok"`
	Files    int                 `json:"files"`
	Tests    int                 `json:"tests"`
	Calls    int                 `json:"calls"`
	Faults   yamlpos.Diagnostics `json:"faults"` // of the files; then no test was played
	Failures []failure           `json:"failures"`
}

// Run plays the tests of files, each on a daemon alone that has the rules of a
// set and has counted nothing. It returns an error for files that cannot be
// read.
func Run(set *rules.Set, paths []string) (*Result, error) {
	out := &Result{Files: len(paths), Faults: yamlpos.Diagnostics{}, Failures: []failure{}}
	var r reader
	var tests []test
	for _, path := range paths {
		read, err := r.read(path)
		if err != nil {
			return nil, err
		}
		tests = append(tests, read...)
	}
	if out.Faults = append(out.Faults, r.List()...); r.Failed() {
		return out, nil
	}
	for i := range tests {
		f, err := play(set, &tests[i])
		if err != nil {
			return nil, err
		}
		for _, c := range tests[i].calls {
			out.Calls += c.times
		}
		if out.Tests++; f != nil {
			out.Failures = append(out.Failures, *f)
		}
	}
	out.OK = len(out.Failures) == 0
	return out, nil
}

// Text returns the result for people: a summary, or what failed.
func (r *Result) Text() (out, faults string) {
	faults = r.Faults.String()
	for _, f := range r.Failures {
		faults += fmt.Sprintf("%v: test %s: %s\n", f.Pos, yamlpos.Quote(f.Test), f.Message)
	}
	switch {
	case r.OK:
		out = fmt.Sprintf("ok: %s, %s\n", suggest.Plural(r.Tests, "test"), suggest.Plural(r.Calls, "call"))
	case len(r.Failures) > 0:
		faults += fmt.Sprintf("rld: %d of %s failed\n", len(r.Failures), suggest.Plural(r.Tests, "test"))
	}
	return out, faults
}
