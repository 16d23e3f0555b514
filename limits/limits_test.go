package limits

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// parseOne parses one file named f.yaml.
func parseOne(text string) (*rules.Set, yamlpos.Diagnostics) {
	return Parse([]File{{Name: "f.yaml", Data: []byte(text)}}, Options{})
}

// TestRule compares rules with all fields set, field by field.
func TestRule(t *testing.T) {
	set, faults := parseOne(`
domain: d
defaults: {carry_debt: true}
descriptors:
  - key: tier
    value: p*
    share_threshold: true
    descriptors:
      - key: user
        shadow_mode: true
        quota_mode: true
        metadata: {owner: {team: edge}, pages: [1]}
        rate_limit:
          unit: MINUTE
          unit_multiplier: 5
          requests_per_unit: 100
          name: premium
          replaces: [{name: basic}, {name: free}]
          algorithm: token_bucket
          burst: 200
          consistency: strict
          placement: owner
          home: us-east
          overage_budget: 0%
          on_failure: {share: 12.5%}
  - key: org
    rate_limit:
      unit: day
      requests_per_unit: 7
      scope: region
      consistency: partition
      placement: region
      charge_denied: true
`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := []rules.Rule{{
		Index:    1,
		Domain:   "d",
		Entries:  []rules.Entry{{Key: "tier", Value: "p*"}, {Key: "user"}},
		Path:     "tier=p* > user",
		Patterns: []string{"p*", ""},
		Entity:   true,
		Metadata: map[string]any{"owner": map[string]any{"team": "edge"}, "pages": []any{int64(1)}},
		Pos:      rules.Position{File: "f.yaml", Line: 9, Column: 9},
		Limit: &rules.Limit{
			Algorithm: rules.TokenBucket, Unit: rules.Minute, Multiplier: 5, Requests: 100, Burst: 200,
			Name: "premium", Replaces: []string{"basic", "free"}, Shadow: true, Quota: true,
			Consistency: rules.Strict, Placement: rules.Owner, Home: "us-east",
			HasBudget: true, OnFailure: rules.Share, ReserveShare: 125_000,
		},
	}, {
		Index:   2,
		Domain:  "d",
		Entries: []rules.Entry{{Key: "org"}},
		Path:    "org",
		Entity:  true,
		Pos:     rules.Position{File: "f.yaml", Line: 26, Column: 5},
		Limit: &rules.Limit{
			Unit: rules.Day, Multiplier: 1, Requests: 7, CarryDebt: true, ChargeDenied: true,
			Scope: rules.Region, Consistency: rules.Partition, Placement: rules.PerRegion,
		},
	}}
	for i := range want {
		got := *set.Rules()[i+1]
		got.ID = 0
		if diff := cmp.Diff(want[i], got, cmpopts.IgnoreUnexported(rules.Rule{})); diff != "" {
			t.Error(diff)
		}
	}
}

// TestUnlimited checks that a limit that counts nothing takes no default.
func TestUnlimited(t *testing.T) {
	set, faults := parseOne("domain: d\ndefaults: {algorithm: token_bucket, burst: 5, charge_denied: true}\n" +
		"descriptors: [{key: k, rate_limit: {unlimited: true, name: n, requests_per_unit: 7}}]")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := &rules.Limit{Unlimited: true, Multiplier: 1, Name: "n"}
	if diff := cmp.Diff(want, set.Rules()[0].Limit); diff != "" {
		t.Error(diff)
	}
}

// TestOrder checks that neither the rules nor the faults depend on the order
// in which files are handed in, which a directory listing decides.
func TestOrder(t *testing.T) {
	good := []File{
		{Name: "a.yaml", Data: []byte("domain: d\ndescriptors: [{key: k, value: a*}]")},
		{Name: "b.yaml", Data: []byte("domain: d\ndescriptors: [{key: k, value: '*z'}]")},
		{Name: "c.yaml", Data: []byte("domain: c")},
	}
	bad := append(slices.Clone(good), File{Name: "d.yaml", Data: []byte("domain: d\ndescriptors: [{key: k, value: a*}]")})
	for name, files := range map[string][]File{"good": good, "bad": bad} {
		t.Run(name, func(t *testing.T) {
			o := Options{MergeDomains: true}
			set, faults := Parse(files, o)
			back := slices.Clone(files)
			slices.Reverse(back)
			set2, faults2 := Parse(back, o)
			if diff := cmp.Diff(faults, faults2); diff != "" {
				t.Error(diff)
			}
			if set == nil || set2 == nil {
				return
			}
			az := []rules.Entry{{Key: "k", Value: "a-z"}}
			for _, s := range []*rules.Set{set, set2} {
				if r := s.Domain("d").Match(az); r == nil || r.Path != "k=a*" {
					t.Errorf("a-z ends at %+v, want the wildcard of the first file", r)
				}
			}
		})
	}
}

// TestNoFiles checks that no files are no rules, and no fault.
func TestNoFiles(t *testing.T) {
	set, faults := Parse(nil, Options{})
	if set == nil || len(faults) > 0 || len(set.Rules()) > 0 {
		t.Errorf("set %v, faults %v", set, faults)
	}
}

// TestBounds checks each bound on both of its sides.
func TestBounds(t *testing.T) {
	nested := func(depth int) string {
		var b strings.Builder
		b.WriteString("domain: d\ndescriptors:\n")
		for i := range depth {
			indent := strings.Repeat("  ", i)
			b.WriteString(indent + "- key: k\n")
			if i+1 < depth {
				b.WriteString(indent + "  descriptors:\n")
			}
		}
		return b.String()
	}
	brackets := func(depth int) string {
		return "domain: d\ndescriptors: [{key: k, metadata: {a: " +
			strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}}]"
	}
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("domain: d\ndescriptors:\n")
		for i := range n {
			fmt.Fprintf(&b, "- key: k%d\n", i)
		}
		return b.String()
	}
	const head = "domain: d\ndescriptors: [{key: "
	long := strings.Repeat("x", MaxTextBytes)
	for _, tc := range []struct {
		name, text, want string // want is part of the message, "" for none
		slow             bool
	}{
		{name: "depth", text: nested(MaxDepth)},
		{name: "too deep", text: nested(MaxDepth + 1), want: "nested more than 32 deep"},
		{name: "nesting", text: brackets(128 - 4)},
		{name: "too nested", text: brackets(128 - 3), want: "nested more than 128 levels"},
		{name: "key", text: head + long + "}]"},
		{name: "long key", text: head + long + "x}]", want: "key is 4097 bytes long"},
		{name: "long value", text: head + "k, value: " + long + "x}]", want: "value is 4097 bytes long"},
		{name: "long domain", text: "domain: " + long + "x", want: "domain is 4097 bytes long"},
		{name: "file", text: "domain: d\n" + strings.Repeat("#", MaxFileBytes-10)},
		{name: "long file", text: "domain: d\n" + strings.Repeat("#", MaxFileBytes-9), want: "longer than 4 MiB"},
		{name: "rules", text: many(MaxRules), slow: true},
		{name: "too many rules", text: many(MaxRules + 1), want: "more than 100000 descriptors", slow: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.slow && testing.Short() {
				t.Skip("a file of 100,000 lines")
			}
			set, faults := parseOne(tc.text)
			switch {
			case tc.want == "" && set == nil:
				t.Errorf("refused: %v", faults)
			case tc.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Message, tc.want)):
				t.Errorf("got %v, want one fault: %q", faults, tc.want)
			}
		})
	}
}

// TestPathBytes checks that small files cannot make long paths of many rules.
func TestPathBytes(t *testing.T) {
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	for i := range MaxDepth - 1 {
		indent, key := strings.Repeat("  ", i), strings.Repeat("x", 4_000)
		fmt.Fprintf(&b, "%[1]s- key: %[2]s\n%[1]s  descriptors:\n", indent, key)
	}
	for i := range 600 {
		fmt.Fprintf(&b, "%s- key: k%d\n", strings.Repeat("  ", MaxDepth-1), i)
	}
	if _, faults := parseOne(b.String()); len(faults) != 1 || !strings.Contains(faults[0].Message, "64 MiB") {
		t.Errorf("got %v", faults)
	}
}

// TestHostile gives the reader what has hurt YAML readers before, and checks
// that it costs memory in proportion and ends in a diagnostic.
func TestHostile(t *testing.T) {
	const size = 1 << 16
	times := func(s string) string { return strings.Repeat(s, size/len(s)) }
	bomb := "domain: d\ndescriptors: [{key: k, metadata: {a0: &a0 [x, x, x, x, x, x, x, x]"
	for i := range 20 {
		bomb += fmt.Sprintf(",\n  a%d: &a%d [%s]", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 8))
	}
	for name, text := range map[string]string{
		"brackets": times("["), "braces": times("{a: "), "dashes": times("- "), "question marks": times("? "),
		"colons": times(": "), "tags": times("!a "), "anchors": times("&a "), "quotes": times(`"`),
		"aliases": "- &a x\n" + times("- *a\n"), "nulls": times("- k:\n"), "fields": times("k: v\n"),
		"documents": times("---\na\n"), "directives": times("%a\n"), "blocks": times("- >\n"),
		"escapes": `a: "` + times(`\`), "tabs": times("\t"), "commas": "[" + times("a,"), "bomb": bomb + "}}]",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			set, faults := parseOne(text)
			runtime.ReadMemStats(&after)
			if set != nil || faults.Err() == nil {
				t.Errorf("%s: accepted", name)
			}
			if spent := after.TotalAlloc - before.TotalAlloc; spent > 64<<20 {
				t.Errorf("%s: %d MiB for %d bytes", name, spent>>20, len(text))
			}
		})
	}
}

// TestEncodings checks what may stand before, between and behind the lines.
func TestEncodings(t *testing.T) {
	good := "domain: d\ndescriptors:\n- key: k\n"
	for name, text := range map[string]string{
		"plain":            good,
		"byte order mark":  "\ufeff" + good,
		"carriage returns": strings.ReplaceAll(good, "\n", "\r\n"),
		"old Mac":          strings.ReplaceAll(good, "\n", "\r"),
		"no last line end": strings.TrimSpace(good),
	} {
		t.Run(name, func(t *testing.T) {
			set, faults := parseOne(text)
			if set == nil {
				t.Fatal(faults)
			}
			if got := set.Rules()[0].Pos; got.Line != 3 || got.Column != 3 {
				t.Errorf("rule at %v, want line 3, column 3", got)
			}
		})
	}
	for name, tc := range map[string]struct{ text, want string }{
		"UTF-16":    {"\xff\xfed\x00", "f.yaml:1:1: the file is UTF-16; save it as UTF-8\n"},
		"not UTF-8": {"domain: é\xe9\n", "f.yaml:1:10: this is not UTF-8; save the file as UTF-8\n"},
		"tab":       {"domain: d\ndescriptors: \n \t - a: b", "f.yaml:3:2: " + "a tab in the indentation" + "; " + "indent with spaces" + "\n"},
		"control character": {
			"domain: d\n# é\x00\n",
			"f.yaml:2:4: a control character, U+0000, may not stand in YAML; " +
				`in double quotes it can be written as an escape, such as "\x1b"` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := parseOne(tc.text)
			first, _, _ := strings.Cut(faults.String(), "  |")
			if first != tc.want {
				t.Errorf("got %q, want %q", first, tc.want)
			}
		})
	}
}

// TestNotText checks that a text that an escape or a tag would make is UTF-8
// like all others.
func TestNotText(t *testing.T) {
	for _, text := range []string{
		"domain: !!binary /w==",
		"domain: d\ndescriptors: [{key: k, metadata: {a: !!binary /w==}}]",
		`domain: "\ud800"`,
	} {
		if set, _ := parseOne(text); set != nil {
			t.Errorf("accepted %s", text)
		}
	}
}

func TestErr(t *testing.T) {
	_, faults := parseOne("domain: d\ndomain: e\nfoo: bar\ndescriptors: []\n")
	want := `f.yaml:3:1: unknown field "foo"; the fields at the top of the file are ` +
		"domain, descriptors and defaults\n  | foo: bar\n  | ^"
	if err := faults.Err(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if w := faults.Warnings(); len(w) != 1 || w[0].Line != 2 || w.Err() != nil {
		t.Errorf("warnings: %v", w)
	}
	if err := yamlpos.Diagnostics(nil).Err(); !errors.Is(err, nil) {
		t.Errorf("no diagnostics give the error %v", err)
	}
}
