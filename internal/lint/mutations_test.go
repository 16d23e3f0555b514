package lint

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutation is a tree with one kind of violation.
type mutation struct {
	name  string
	files map[string]string // added to a clean tree
	want  []string          // "file:line: rule: part of the text", in order
}

// mutations has at least one tree for every rule.
var mutations = []mutation{
	{
		name:  "upward import",
		files: map[string]string{"quota/up.go": "package quota\n\nimport \"example.org/m/node\"\n"},
		want:  []string{"quota/up.go:3: layers: node is in layer 2 and quota sees none above 1"},
	},
	{
		name: "upward import of a test",
		files: map[string]string{
			"quota/up_test.go": "package quota_test\n\nimport _ \"example.org/m/daemon\"\n",
		},
		want: []string{"quota/up_test.go:3: layers: daemon is in layer 5"},
	},
	{
		name: "a key that can be guessed",
		files: map[string]string{
			"daemon/key.go":      "package daemon\n\nvar seed = control.InsecureSeed(nil)\n",
			"daemon/key_test.go": "package daemon\n\nvar other = control.InsecureSeed(nil)\n",
			"sim/key.go":         "package sim\n\nvar seed = control.InsecureSeed(nil)\n",
		},
		want: []string{"daemon/key.go:3: secret: InsecureSeed: a key that can be guessed"},
	},
	{
		name: "engines import each other",
		files: map[string]string{
			"quota/ok.go":  "package quota\n\nimport \"example.org/m/rules\"\n",
			"rules/bad.go": "package rules\n\nimport \"example.org/m/quota\"\n",
		},
		want: []string{
			"rules/bad.go:3: layers: quota is in layer 1 as well, and the line of rules does not say +quota",
		},
	},
	{
		name: "what only a test may import",
		files: map[string]string{
			"node/ok_test.go": "package node_test\n\nimport \"example.org/m/limits\"\n",
			"node/bad.go":     "package node\n\nimport \"example.org/m/limits\"\n",
		},
		want: []string{"node/bad.go:3: layers: limits is in layer 2 as well"},
	},
	{
		name: "a package that is confined",
		files: map[string]string{
			"internal/lint/bad.go": "package lint\n\nimport \"example.org/m/rules\"\n",
		},
		want: []string{"internal/lint/bad.go:3: layers: rules is not for internal/lint, which sees only [] of this module"},
	},
	{
		name: "a module that belongs to another package",
		files: map[string]string{
			"daemon/ok.go": "package daemon\n\nimport \"github.com/prometheus/client_golang/prometheus\"\n",
			"daemon/swim.go": "package daemon\n\nimport (\n\tml \"github.com/hashicorp/memberlist\"\n" +
				"\t\"google.golang.org/protobuf/proto\"\n)\n",
			"server/rls/metrics.go": "package rls\n\nimport \"github.com/prometheus/client_golang/prometheus\"\n",
		},
		want: []string{
			"daemon/swim.go:4: exclusive: import of github.com/hashicorp/memberlist: only gossip/swim, internal/fakenet may",
			"daemon/swim.go:5: exclusive: import of google.golang.org/protobuf/proto: only wire, server/...",
			"server/rls/metrics.go:3: exclusive: import of github.com/prometheus/client_golang/prometheus",
		},
	},
	{
		name: "a package without a line",
		files: map[string]string{
			"stray/stray.go": "// Package stray is new.\npackage stray\n",
			"daemon/bad.go":  "package daemon\n\nimport \"example.org/m/stray\"\n",
		},
		want: []string{
			"daemon/bad.go:3: table: import of stray, which is in no layer",
			"stray/stray.go:2: table: package stray is in no layer",
		},
	},
	{
		name: "concurrency",
		files: map[string]string{"node/loop.go": `package node

type loop struct {
	in chan int
}

func (l *loop) run() {
	go l.run()
	select {}
	l.in <- 1
	<-l.in
}
`},
		want: []string{
			"node/loop.go:4: pure: channel type",
			"node/loop.go:8: pure: go statement",
			"node/loop.go:9: pure: select statement",
			"node/loop.go:10: pure: send to a channel",
			"node/loop.go:11: pure: receive from a channel",
		},
	},
	{
		name: "clock, output and chance, also under another name",
		files: map[string]string{"rules/impure.go": `package rules

import (
	"fmt"
	"math/rand/v2"
	clock "time"
)

func f(rng *rand.Rand) int {
	_ = rand.New(rand.NewPCG(1, 2))
	fmt.Println(clock.Now(), clock.Second)
	println()
	return rng.IntN(2) + rand.IntN(2)
}
`},
		want: []string{
			"rules/impure.go:11: pure: fmt.Println",
			"rules/impure.go:11: pure: time.Now",
			"rules/impure.go:12: pure: println",
			"rules/impure.go:13: pure: math/rand/v2.IntN draws from the global source",
		},
	},
	{
		name: "imports of a pure package; its tests may",
		files: map[string]string{
			"hlc/ok_test.go": "package hlc\n\nimport (\n\t_ \"os\"\n\t_ \"sync\"\n)\n\nfunc f() { go f() }\n",
			"hlc/impure.go": `package hlc

import (
	"context"
	"log/slog"
	"math/rand"
	"net/netip"
	"os"
	"sync/atomic"
	. "time"

	"go.yaml.in/yaml/v4"
)
`,
			"internal/yamlpos/ok.go": "package yamlpos\n\nimport \"go.yaml.in/yaml/v4\"\n",
		},
		want: []string{
			"hlc/impure.go:4: pure: import of context",
			"hlc/impure.go:5: pure: import of log/slog",
			"hlc/impure.go:6: pure: import of math/rand",
			"hlc/impure.go:7: pure: import of net/netip",
			"hlc/impure.go:8: pure: import of os",
			"hlc/impure.go:9: pure: import of sync/atomic",
			"hlc/impure.go:10: pure: dot import of time",
			"hlc/impure.go:12: pure: import of go.yaml.in/yaml/v4",
		},
	},
	{
		name: "floats",
		files: map[string]string{
			"crdt/float.go": `package crdt

import "math"

type cell struct{ sum float64 }

const half = 0.5

var all = math.Inf(1) + math.MaxInt64

func seconds(d interface{ Seconds() int }) int { return d.Seconds() }
`,
			"limits/ok.go": "package limits\n\nvar ratio float64\n",
		},
		want: []string{
			"crdt/float.go:5: float: float64",
			"crdt/float.go:7: float: literal 0.5",
			"crdt/float.go:9: float: math.Inf",
			"crdt/float.go:11: float: Seconds() returns a float",
		},
	},
	{
		name: "package comments",
		files: map[string]string{
			"hlc/doc.go":      "package hlc\n",
			"crdt/second.go":  "// Package crdt once more.\npackage crdt\n",
			"quota/doc.go":    "// Quota is not how a package comment begins.\npackage quota\n",
			"proto/doc.pb.go": "// Code generated by hand. DO NOT EDIT.\n\npackage proto\n",
		},
		want: []string{
			"crdt/second.go:1: doc: a second package comment; the first is in crdt/doc.go",
			"hlc/doc.go:1: doc: package hlc has no package comment",
			"proto/doc.pb.go:3: table:",
			"proto/doc.pb.go:3: doc: package proto has no package comment",
			"quota/doc.go:1: doc: the package comment does not begin with \"Package quota \"",
		},
	},
	{
		name:  "a name without a meaning",
		files: map[string]string{"daemon/doc.go": "// Package util has everything.\npackage util\n"},
		want:  []string{"daemon/doc.go:2: name: package util"},
	},
	{
		name: "length; generated files may",
		files: map[string]string{
			"hlc/full.go":       "package hlc\n" + strings.Repeat("\n", maxLines-1),
			"hlc/long.go":       "package hlc\n" + strings.Repeat("\n", maxLines),
			"hlc/long.pb.go":    "// Code generated by hand. DO NOT EDIT.\npackage hlc\n" + strings.Repeat("\n", maxLines),
			"hlc/testdata/x.go": "this is left out",
		},
		want: []string{"hlc/long.go:501: length: 501 lines"},
	},
	{
		name: "init",
		files: map[string]string{"daemon/start.go": `package daemon

type d struct{}

func (d) init() {}

func init() {}
`},
		want: []string{"daemon/start.go:7: init: init function"},
	},
	{
		name: "algorithms outside quota",
		files: map[string]string{
			"daemon/fold.go": `package daemon

import "example.org/m/rules"

type limit struct{ Algorithm rules.Algorithm }

var set = limit{Algorithm: rules.TokenBucket}

func fold(l limit, names map[rules.Algorithm]string) bool {
	switch l.Algorithm {
	case rules.SlidingLog:
		return names[l.Algorithm] == ""
	}
	return l.Algorithm == rules.FixedWindow || l.Algorithm.Bucket()
}
`,
			"quota/fold.go": `package quota

import "example.org/m/rules"

func fold(a rules.Algorithm) bool { return a == rules.FixedWindow }
`,
		},
		want: []string{
			"daemon/fold.go:10: fold: depends on Algorithm",
			"daemon/fold.go:11: fold: depends on SlidingLog",
			"daemon/fold.go:12: fold: depends on Algorithm",
			"daemon/fold.go:14: fold: depends on Algorithm",
			"daemon/fold.go:14: fold: depends on Algorithm",
		},
	},
	{
		name: "silenced checks",
		files: map[string]string{"daemon/quiet.go": `package daemon

var a = 1 //nolint
var b = 1 //nolint:unused
var c = 1 //nolint:unused // kept for the example
var d = 1 //lint:ignore U1000
var e = 1 //lint:ignore U1000 kept for the example
`},
		want: []string{
			"daemon/quiet.go:3: nolint: name the check and say why",
			"daemon/quiet.go:4: nolint: name the check and say why",
			"daemon/quiet.go:6: nolint: name the check and say why",
		},
	},
	{
		name: "a word that is not used, in names and texts",
		files: map[string]string{
			"daemon/parley.go": "package daemon\n\nfunc keeperOf(officeName string) {}\n\n" +
				"// A sibling is one.\nvar text = \"the home of the key\"\n\nvar ok = \"the home region of the key\"\n",
			"daemon/ok_test.go": "package daemon\n\nvar text = \"abroad\"\n\nfunc TestNotary() {}\n",
			"telemetry/ok.go":   "package telemetry\n\nvar labels = 1\n",
		},
		want: []string{
			"daemon/ok_test.go:5: word: TestNotary: not \"notary\" but acceptor",
			"daemon/parley.go:1: word: parley: not \"parley\" but",
			"daemon/parley.go:3: word: keeperOf: not \"keeper\" but proposer",
			"daemon/parley.go:3: word: officeName: not \"office\" but rights agent",
			"daemon/parley.go:5: word: text \"A sibling is one.\": not \"sibling\" but regional peer",
			"daemon/parley.go:6: word: text \"the home of the key\": not \"home\" but owner",
		},
	},
	{
		name: "comments that are not plain technical English",
		files: map[string]string{
			"quota/odd.go":      "package quota\n\n// A tells what B said to whom.\n\n// C hears it.\n\n// D takes in E.\n\n// F is what the G is.\n",
			"quota/odd_test.go": "package quota\n\n// A test may say so.\n",
		},
		want: []string{
			"quota/odd.go:3: dialect: not \"tells\" but report",
			"quota/odd.go:5: dialect: not \"hears\" but receive",
			"quota/odd.go:7: dialect: not \"takes in\" but merge",
			"quota/odd.go:9: dialect: not \"what the\" but the noun",
		},
	},
	{
		name: "wide comments; directives, code and links may be wide",
		files: map[string]string{
			"quota/wide.go": "package quota\n\n// " + strings.Repeat("wide ", 16) + "\n\n// " + strings.Repeat("x", 90) + "\n\n" +
				"//go:generate " + strings.Repeat("wide ", 16) + "\n\nvar a = 1 // " + strings.Repeat("wide ", 16) + "\n\n// " +
				strings.Repeat("full ", 14) + "full\n\nfunc f() {\n\t// " + strings.Repeat("full ", 14) + "full\n}\n",
		},
		want: []string{
			"quota/wide.go:3: wrap: comment of 83 columns",
			"quota/wide.go:14: wrap: comment of 81 columns",
		},
	},
	{
		name: "a type, a folder and a door that are too large",
		files: merged(
			map[string]string{"sticky/names.go": "package sticky\n" + repeated("\ntype T%d int\n", maxNames["sticky"]+1)},
			map[string]string{"daemon/methods.go": "package daemon\n\ntype t int\n" + repeated("\nfunc (*t) m%d() {}\n", maxMethods+1)},
			folder("daemon/f%02d.go", maxFiles),
		),
		want: []string{
			"daemon/f29.go:1: files: daemon has more than 30 files",
			"daemon/methods.go:125: methods: daemon/t has more than 60 methods",
			"sticky/names.go:183: names: sticky and its subfolders export more than 90 names",
		},
	},
	{
		name: "too few comments",
		files: map[string]string{
			"quota/bare.go":  "package quota\n" + repeated("\nvar v%d int\n", 240),
			"quota/plain.go": "package quota\n" + repeated("\nvar v%d int\n", 240),
			"quota/stark.go": "package quota\n" + repeated("\nvar v%d int\n", 240),
		},
		want: []string{"internal/lint/policy.txt:1: share: too few comments"},
	},
}

// repeated returns the format with each number below n, one after the other.
func repeated(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// folder returns n files with one comment each.
func folder(format string, n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		name := fmt.Sprintf(format, i)
		files[name] = "package " + path.Dir(name) + "\n\n// This file has a comment.\n"
	}
	return files
}

// merged returns the files of all maps.
func merged(all ...map[string]string) map[string]string {
	files := make(map[string]string)
	for _, m := range all {
		maps.Copy(files, m)
	}
	return files
}

// cleanTree returns a tree that has every package of the policy and no fault.
func cleanTree(t *testing.T) map[string]string {
	t.Helper()
	p, err := parsePolicy(policyText)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"go.mod": "module example.org/m\n"}
	for pkg, e := range p.packages {
		if !e.planned {
			name := path.Base(pkg)
			files[pkg+"/doc.go"] = fmt.Sprintf("// Package %s is clean.\npackage %s\n", name, name)
		}
	}
	return files
}

// checkTree writes the files, a "" of which is left out, and checks them.
func checkTree(t *testing.T, files ...map[string]string) []Finding {
	t.Helper()
	root := t.TempDir()
	for _, m := range files {
		for name, content := range m {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	findings, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// wantFindings compares findings with the beginnings that are wanted.
func wantFindings(t *testing.T, got []Finding, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("not wanted: %v", got[i])
		case i >= len(got):
			t.Errorf("not found: %s", want[i])
		case !strings.HasPrefix(got[i].String(), want[i]):
			t.Errorf("found %v\n want %s", got[i], want[i])
		}
	}
}

// TestMutations shows that each violation is found at its place, and nothing
// else.
func TestMutations(t *testing.T) {
	clean := cleanTree(t)
	wantFindings(t, checkTree(t, clean), nil)
	var caught []string
	for _, p := range mutations {
		t.Run(p.name, func(t *testing.T) {
			findings := checkTree(t, clean, p.files)
			wantFindings(t, findings, p.want)
			for _, f := range findings {
				caught = append(caught, f.Rule)
			}
		})
	}
	for _, rule := range []string{
		ruleTable, ruleLayers, ruleExclusive, rulePure, ruleFloat, ruleSecret,
		ruleDoc, ruleName, ruleLength, ruleInit, ruleNolint, ruleFold,
		ruleWord, ruleDialect, ruleWrap, ruleShare, ruleMethods, ruleFiles, ruleNames,
	} {
		if !slices.Contains(caught, rule) {
			t.Errorf("no mutation is caught by the rule %s", rule)
		}
	}
}

// TestMutationsOfTheTable shows that the policy itself may not go stale.
func TestMutationsOfTheTable(t *testing.T) {
	files := cleanTree(t)
	delete(files, "daemon/doc.go")
	files["console/console.go"] = "// Package console has come.\npackage console\n"
	p, err := parsePolicy(policyText)
	if err != nil {
		t.Fatal(err)
	}
	wantFindings(t, checkTree(t, files), []string{
		fmt.Sprintf("%s:%d: table: console is there: it is planned no more", policyFile, p.packages["console"].line),
		fmt.Sprintf("%s:%d: table: daemon has no Go files", policyFile, p.packages["daemon"].line),
	})
}

// TestUnreadableTree shows that a broken tree is an error and not a pass.
func TestUnreadableTree(t *testing.T) {
	root := t.TempDir()
	if _, err := Check(root); err == nil {
		t.Error("a folder without go.mod passes")
	}
	for name, content := range map[string]string{"go.mod": "module m\n", "bad.go": "package"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Check(root); err == nil || !strings.Contains(err.Error(), "bad.go:1:8") {
		t.Errorf("a file that does not parse: error %v, want one that names bad.go:1:8", err)
	}
}
