package main

import (
	"testing"
)

// profile is of two binaries: what one of them reached was reached.
const profile = `mode: set
github.com/georld/rld/hlc/b.go:20.2,21.5 1 0
github.com/georld/rld/hlc/a.go:3.2,4.5 2 1
github.com/georld/rld/hlc/a.go:5.2,6.5 3 0
github.com/georld/rld/hlc/a.go:7.2,9.5 1 0
github.com/georld/rld/hlc/a.go:12.2,13.5 1 0
github.com/georld/rld/wire/w.go:1.2,2.5 4 0
mode: set
github.com/georld/rld/hlc/a.go:12.2,13.5 1 1
`

const want = `package                  all reached          
hlc                        8       3    37.5 %
the core together          8       3    37.5 %

wire                       4       0     0.0 %
others together            4       0     0.0 %

Functions that no seed reached

hlc/b.go:19-22	B	1

Other statements that no seed reached

hlc/a.go:5-9	A	4
`

func TestReport(t *testing.T) {
	blocks, err := parse(profile)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string][]function{"hlc/a.go": {{"A", 2, 14}}, "hlc/b.go": {{"B", 19, 22}}}
	got, percent := reportOf(blocks, func(file string) []function { return functions[file] })
	if got != want || percent != 37.5 {
		t.Errorf("%.1f %%:\n%s\nwant:\n%s", percent, got, want)
	}
}

func TestProfileOfAnotherTool(t *testing.T) {
	if _, err := parse("mode: set\nhlc/a.go has 3 statements\n"); err == nil {
		t.Error("a line without numbers is read")
	}
}

func TestFunctionsOf(t *testing.T) {
	all := functionsOf("report.go")
	if len(all) == 0 || all[0].name != "count.add" || all[0].first >= all[0].last {
		t.Errorf("functions of report.go: %v", all)
	}
	if got := functionsOf("nothing.go"); got != nil {
		t.Errorf("functions of no file: %v", got)
	}
}
