package rules_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// TestMatch states the matching rules one by one.
func TestMatch(t *testing.T) {
	set := newSet(t, []rules.Node{
		{Key: "tenant", Value: "acme"},
		{Key: "tenant", Value: "test", Children: []rules.Node{{Key: "op"}}},
		{Key: "tenant", Value: "te*", Children: []rules.Node{{Key: "op", Value: "read"}}},
		{Key: "tenant", Value: "t*t"},
		{Key: "tenant", Children: []rules.Node{{Key: "op", Value: "write"}, {Key: "path", Value: "*/b/*"}}},
		{Key: "host", Value: "*.example.com"},
		{Key: "star", Value: "a*"},
		{Key: "star", Value: "*"},
		{Key: "a_b"},
		{Key: "a", Value: "b"},
		{Key: "any", Value: "*"},
		{Key: "any"},
	})
	for _, tc := range []struct{ name, request, want string }{
		{"exact value", "tenant=acme", "tenant=acme"},
		{"exact beats wildcard", "tenant=test", "tenant=test"},
		{"wildcards in file order", "tenant=teapot", "tenant=te*"},
		{"a later wildcard", "tenant=tart", "tenant=t*t"},
		{"wildcard beats key-only", "tenant=te", "tenant=te*"},
		{"key-only", "tenant=other", "tenant"},
		{"key-only with an empty value", "tenant=", "tenant"},
		{"letter case counts", "tenant=Acme", "tenant"},
		{"unknown key", "user=acme", ""},
		{"no entries", "", ""},
		{"nested", "tenant=x > op=write", "tenant > op=write"},
		{"nested below a wildcard", "tenant=tea > op=read", "tenant=te* > op=read"},
		{"no way back from an exact value", "tenant=acme > op=write", ""},
		{"no way back from a wildcard", "tenant=tea > op=write", ""},
		{"no way back at the last level", "tenant=test > path=/b/", ""},
		{"longer than any rule", "tenant=x > op=write > more=1", ""},
		{"order of entries counts", "op=write > tenant=x", ""},
		{"stars match slashes", "tenant=x > path=/a/b/c/d", "tenant > path=*/b/*"},
		{"a star matches nothing", "tenant=x > path=/b/", "tenant > path=*/b/*"},
		{"a leading star", "host=api.example.com", "host=*.example.com"},
		{"the dot is a dot", "host=apiXexample.com", ""},
		{"the suffix counts", "host=api.example.com.evil", ""},
		{"a star in the request is the entry of that text", "star=*", "star=*"},
		{"and no other wildcard", "star=a*", "star=a*"},
		{"a star matches the empty value", "any=", "any=*"},
		{"key and value are not one text", "a=b", "a=b"},
		{"nor the other way round", "a_b=", "a_b"},
		{"a key with _ takes any value", "a_b=c", "a_b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if r := set.Domain("d").Match(entries(tc.request)); r != nil {
				got = r.Path
			}
			if got != tc.want {
				t.Errorf("%q ends at %q, want %q", tc.request, got, tc.want)
			}
		})
	}
}

// TestMatchAgainstModel compares Match with the reference's algorithm as it is
// written down, over the tree as it is written down.
func TestMatchAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := 0
		tree := drawTree(t, 3, &line)
		set, err := rules.NewSet([]rules.DomainNode{{Name: "d", Children: tree}})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			request := rapid.SliceOfN(rapid.Custom(drawEntry), 0, 4).Draw(t, "request")
			want := 0
			if n := model(tree, request); n != nil {
				want = n.Pos.Line
			}
			got := 0
			if r := set.Domain("d").Match(request); r != nil {
				got = r.Pos.Line
			}
			if got != want {
				t.Fatalf("%v ends at node %d, want %d", request, got, want)
			}
		}
	})
}

// model finds the node that a request ends at: at each level the exact value,
// else the first wildcard, else the key alone, and no way back.
func model(nodes []rules.Node, request []rules.Entry) *rules.Node {
	var at *rules.Node
	for _, e := range request {
		at = nil
		for _, fits := range []func(n *rules.Node) bool{
			func(n *rules.Node) bool { return n.Value != "" && n.Value == e.Value },
			func(n *rules.Node) bool { return strings.Contains(n.Value, "*") && modelMatches(n.Value, e.Value) },
			func(n *rules.Node) bool { return n.Value == "" },
		} {
			for i := range nodes {
				if at == nil && nodes[i].Key == e.Key && fits(&nodes[i]) {
					at = &nodes[i]
				}
			}
		}
		if at == nil {
			return nil
		}
		nodes = at.Children
	}
	return at
}

// modelMatches is Matches by trying everything.
func modelMatches(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] == '*' {
		return modelMatches(pattern[1:], s) || s != "" && modelMatches(pattern, s[1:])
	}
	return s != "" && s[0] == pattern[0] && modelMatches(pattern[1:], s[1:])
}

func drawEntry(t *rapid.T) rules.Entry {
	return rules.Entry{
		Key:   rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"),
		Value: rapid.StringOfN(rapid.SampledFrom([]rune("ab*")), 0, 4, -1).Draw(t, "value"),
	}
}

// drawTree draws a level and those below it; each node has a line of its own.
func drawTree(t *rapid.T, depth int, line *int) []rules.Node {
	if depth == 0 {
		return nil
	}
	drawn := rapid.SliceOfNDistinct(rapid.Custom(drawEntry), 0, 6, rapid.ID[rules.Entry]).Draw(t, "level")
	nodes := make([]rules.Node, len(drawn))
	for i, e := range drawn {
		*line++
		nodes[i] = rules.Node{Key: e.Key, Value: e.Value, Pos: rules.Position{Line: *line}}
		nodes[i].Children = drawTree(t, depth-1, line)
	}
	return nodes
}

// TestMatches compares the wildcard with two models of it.
func TestMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.SampledFrom([]rune("abé*")), 0, 8, -1).Draw(t, "pattern")
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abé*")), 0, 10, -1).Draw(t, "text")
		got := rules.Matches(pattern, s)
		if want := modelMatches(pattern, s); got != want {
			t.Fatalf("Matches(%q, %q) = %v, trying everything %v", pattern, s, got, want)
		}
		re := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
		if want := regexp.MustCompile(re).MatchString(s); got != want {
			t.Fatalf("Matches(%q, %q) = %v, as a regular expression %v", pattern, s, got, want)
		}
	})
}

// TestMatchesOverlap checks that the parts around a star share no character.
func TestMatchesOverlap(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"ab*bc", "abc", false},
		{"ab*bc", "abbc", true},
		{"*ab*ab", "ab", false},
		{"*ab*ab", "abab", true},
		{"*", "", true},
		{"**", "", true},
		{"", "", true},
		{"", "a", false},
		{"a", "a*", false},
	} {
		if got := rules.Matches(tc.pattern, tc.text); got != tc.want {
			t.Errorf("Matches(%q, %q) = %v", tc.pattern, tc.text, got)
		}
	}
}

// TestMatchDoesNotAllocate covers a hit of each kind and misses.
func TestMatchDoesNotAllocate(t *testing.T) {
	set := bigSet(t, 1_000)
	for name, request := range map[string][]rules.Entry{
		"exact":     entries("tenant=t7 > op=read"),
		"wildcard":  entries("tenant=w-anything > op=read"),
		"key-only":  entries("tenant=unknown > op=read"),
		"wrong key": entries("user=u"),
		"too long":  entries("tenant=t7 > op=read > more=x"),
	} {
		got := testing.AllocsPerRun(100, func() {
			set.Domain("d").Match(request)
		})
		if got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// BenchmarkMatch shows that a request costs the depth of the tree and not the
// number of rules.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 100, 10_000} {
		set := bigSet(b, n)
		for _, request := range []string{
			"tenant=t7 > op=read", "tenant=w-x > op=read", "tenant=unknown > op=read", "user=u",
		} {
			at := entries(request)
			b.Run(fmt.Sprintf("rules=%d/%s", n, strings.ReplaceAll(request, " > ", ",")), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					set.Domain("d").Match(at)
				}
			})
		}
	}
}

// bigSet has n tenants, a wildcard and the key alone, with an operation below
// each.
func bigSet(tb testing.TB, n int) *rules.Set {
	op := []rules.Node{{Key: "op", Value: "read"}, {Key: "op"}}
	nodes := []rules.Node{{Key: "tenant", Value: "w-*", Children: op}, {Key: "tenant", Children: op}}
	for i := range n {
		nodes = append(nodes, rules.Node{Key: "tenant", Value: fmt.Sprintf("t%d", i), Children: op})
	}
	return newSet(tb, nodes)
}

func newSet(tb testing.TB, nodes []rules.Node) *rules.Set {
	tb.Helper()
	set, err := rules.NewSet([]rules.DomainNode{{Name: "d", Children: nodes}})
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// entries reads "a=b > c=d".
func entries(request string) []rules.Entry {
	if request == "" {
		return nil
	}
	var out []rules.Entry
	for part := range strings.SplitSeq(request, " > ") {
		key, value, _ := strings.Cut(part, "=")
		out = append(out, rules.Entry{Key: key, Value: value})
	}
	return out
}

// TestArrange orders entries whose order has no meaning as the rules nest.
func TestArrange(t *testing.T) {
	leaf := func(key, value string, children ...rules.Node) rules.Node {
		return rules.Node{Key: key, Value: value, Children: children}
	}
	set, err := rules.NewSet([]rules.DomainNode{{Name: "d", Children: []rules.Node{
		leaf("tier", "free", leaf("org", "", leaf("key", ""))),
		leaf("org", "", leaf("a", "*x")),
		leaf("a", "1", leaf("b", "", leaf("d", ""))),
		leaf("b", "", leaf("a", "", leaf("c", ""))),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"key=k,org=o,tier=free": "tier=free,org=o,key=k",
		"org=o,tier=free":       "tier=free,org=o",
		"a=yx,org=o":            "org=o,a=yx",
		"a=1,b=2,c=3":           "b=2,a=1,c=3", // a > b leads nowhere
		"a=1,b=2":               "a=1,b=2",     // the first of two orders
		"a=1,b=2,e=3":           "",
		"key=k,org=o":           "",
		"tier=paid":             "",
	} {
		var entries []rules.Entry
		for e := range strings.SplitSeq(in, ",") {
			k, v, _ := strings.Cut(e, "=")
			entries = append(entries, rules.Entry{Key: k, Value: v})
		}
		found := set.Domain("d").Arrange(entries)
		var got []string
		for _, e := range entries {
			got = append(got, e.Key+"="+e.Value)
		}
		order := strings.Join(got, ",")
		switch {
		case found != (want != ""), found && order != want, !found && order != in:
			t.Errorf("%s: %v, %s; want %q", in, found, order, want)
		case found && set.Domain("d").Match(entries) == nil:
			t.Errorf("%s: no rule matches %s", in, order)
		}
	}
	if set.Domain("d").Arrange(nil) {
		t.Error("no entries have an order")
	}
}
