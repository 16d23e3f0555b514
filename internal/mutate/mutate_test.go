package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNamed holds the named mutations to the code: each text is in its file
// exactly once, and each mutation compiles.
func TestNamed(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	list, verdicts, err := readNamed(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkNamed(root, list); err != nil {
		t.Error(err)
	}
	for _, v := range verdicts {
		sources, err := load(root, []string{v.file})
		if err != nil {
			t.Fatal(err)
		}
		sites := sources[0].sites([]string{v.file})
		i := slices.IndexFunc(sites, func(s site) bool { return s.name == v.name })
		if i < 0 || verdicts[v.name+"\n"+sources[0].mutate(&sites[i]).Change] != v {
			t.Errorf("no operator draws %s with that change any more: run it again", v.name)
		}
	}
}

// TestOperators draws every mutation of one file that has all kinds of sites.
func TestOperators(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"journal", "hlc/clock.go"}
	first, err := draw(root, files, 200, 1, nil)
	if err != nil || len(first) != 200 {
		t.Fatal(len(first), err)
	}
	seen := map[string]bool{}
	for _, m := range first {
		seen[strings.Split(m.Name, ":")[2]] = true
		if folder := filepath.ToSlash(filepath.Dir(m.File)); folder != "journal" && m.File != "hlc/clock.go" {
			t.Errorf("drawn in %s", m.File)
		}
	}
	for _, want := range []string{"negate", "ignore", "bound", "junction", "sign", "constant", "drop", "swap"} {
		if !seen[want] {
			t.Errorf("no operator %s in 200 mutations: %v", want, seen)
		}
	}
	second, err := draw(root, files, 30, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range second {
		if m.key() != first[i].key() {
			t.Errorf("%d: seed 1 draws %s, and then %s", i, first[i].Name, m.Name)
		}
	}
}

func TestParseEntry(t *testing.T) {
	for text, want := range map[string]string{
		"mutation: a\nfile: b.go\nwhy: c\n-x\n+y":       "",
		"mutation: a\nfile: b.go\nwhy: c\n x\n+y":       "",
		"drawn: a\nfile: b.go\nequivalent: c\n-x\n+y":   "",
		"mutation: a\nfile: b.go\n-x\n+y":               "needs why",
		"mutation: a\nfile: b.go\nwhy: c\n-x\n+x":       "a change",
		"drawn: a\nfile: b.go\n-x\n+y":                  "needs equivalent",
		"drawn: a\nmutation: a\nfile: b.go\n-x\n+y":     "needs one of",
		"mutation: a\nfyle: b.go\nwhy: c\n-x\n+y":       "no field",
		"mutation: a\nfile: b.go\nwhy: c\nequivalent\n": "no field",
	} {
		_, err := parseEntry(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestResults checks that results are found again, of the same tree and number
// of seeds alone.
func TestResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	m := &mutation{Name: "m", File: "a/b.go", Change: "-x\n+y\n"}
	open := func(o options) *results {
		o.results = file
		k, err := openResults(root, &o)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open(options{runs: 10})
	k.tree = "former"
	if err := k.add(m, packageSuite, &outcome{Caught: true, By: "TestX"}); err != nil {
		t.Fatal(err)
	}
	k = open(options{runs: 10})
	if err := k.add(m, swarmSuite, &outcome{Seconds: 3}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		o              options
		tests, inSwarm bool
	}{
		{options{runs: 10}, false, true},
		{options{runs: 10, any: true}, true, true},
		{options{runs: 20, any: true}, true, false},
	} {
		k := open(tc.o)
		_, tests := k.of(m, packageSuite)
		_, inSwarm := k.of(m, swarmSuite)
		if tests != tc.tests || inSwarm != tc.inSwarm {
			t.Errorf("%+v: kept %v and %v", tc.o, tests, inSwarm)
		}
	}
	rows := newTable([]*mutation{m}, open(options{runs: 10, any: true}))
	if got := rows.text(); !strings.Contains(got, "package (TestX)") || rows.Caught != (count{1, 1}) || rows.Simulated != (count{0, 1}) {
		t.Errorf("%+v:\n%s", rows, got)
	}
}
