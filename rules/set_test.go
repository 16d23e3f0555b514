package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

func TestNewSetRefuses(t *testing.T) {
	pos := rules.Position{File: "f.yaml", Line: 3, Column: 5}
	for _, tc := range []struct {
		name    string
		domains []rules.DomainNode
		want    string
	}{
		{"empty domain", []rules.DomainNode{{}}, "a domain without a name"},
		{"domain twice", []rules.DomainNode{{Name: "d"}, {Name: "d"}}, `domain "d" twice`},
		{
			"empty key",
			[]rules.DomainNode{{Name: "d", Children: []rules.Node{{Value: "v", Pos: pos}}}},
			"f.yaml:3:5: a descriptor without a key",
		},
		{
			"key twice",
			[]rules.DomainNode{{Name: "d", Children: []rules.Node{{Key: "k"}, {Key: "k", Pos: pos}}}},
			`f.yaml:3:5: descriptor "k" twice`,
		},
		{
			"value twice below another",
			[]rules.DomainNode{{Name: "d", Children: []rules.Node{{
				Key: "p", Children: []rules.Node{{Key: "k", Value: "v"}, {Key: "k", Value: "v", Pos: pos}},
			}}}},
			`f.yaml:3:5: descriptor "p > k=v" twice`,
		},
		{
			"wildcard twice",
			[]rules.DomainNode{{Name: "d", Children: []rules.Node{
				{Key: "k", Value: "v*"}, {Key: "k", Value: "v*", Pos: pos},
			}}},
			`f.yaml:3:5: descriptor "k=v*" twice`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := rules.NewSet(tc.domains)
			if set != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want an error with %q", set, err, tc.want)
			}
		})
	}
}

// TestRules checks the list of the rules of a set.
func TestRules(t *testing.T) {
	limit := &rules.Limit{Unit: rules.Second, Multiplier: 1, Requests: 5, Name: "five"}
	set, err := rules.NewSet([]rules.DomainNode{
		{Name: "z", Children: []rules.Node{
			{Key: "tier", Value: "p*", ShareThreshold: true, Children: []rules.Node{
				{Key: "user", Limit: limit},
				{Key: "op", Value: "read"},
			}},
			{Key: "op", Value: "r*", Metadata: map[string]any{"a": true}},
		}},
		{Name: "a", Children: []rules.Node{{Key: "op", Value: "read"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "z"}, set.Domains()); diff != "" {
		t.Error(diff)
	}
	if set.Domain("nobody's") != nil {
		t.Error("a domain that no rule names")
	}
	type row struct {
		Domain, Path, Display string
		Entity                bool
		Patterns              []string
	}
	want := []row{
		{"z", "tier=p*", "tier=p*", false, []string{"p*"}},
		{"z", "tier=p* > user", "five", true, []string{"p*", ""}},
		{"z", "tier=p* > op=read", "tier=p* > op=read", false, []string{"p*", ""}},
		{"z", "op=r*", "op=r*", true, nil},
		{"a", "op=read", "op=read", false, nil},
	}
	var got []row
	for i, r := range set.Rules() {
		got = append(got, row{r.Domain, r.Path, r.Display(), r.Entity, r.Patterns})
		if r.Index != i {
			t.Errorf("rule %d has the index %d", i, r.Index)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if set.Rules()[1].Limit != limit || set.Rules()[3].Metadata["a"] != true {
		t.Error("a limit or metadata went astray")
	}
}

// TestLimitWithoutWindow checks that no fold is ever asked to divide by zero.
func TestLimitWithoutWindow(t *testing.T) {
	for _, l := range []*rules.Limit{{}, {Unit: rules.Day}, {Multiplier: 1}, {Unit: 99, Multiplier: 1}} {
		tree := []rules.DomainNode{{Name: "d", Children: []rules.Node{{Key: "k", Limit: l}}}}
		if _, err := rules.NewSet(tree); err == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
}

// TestID checks that a rule keeps its identity when anything but its path
// changes, and that no two paths share one.
func TestID(t *testing.T) {
	id := func(domain string, nodes ...rules.Node) rules.ID {
		set, err := rules.NewSet([]rules.DomainNode{{Name: domain, Children: nodes}})
		if err != nil {
			t.Fatal(err)
		}
		all := set.Rules()
		return all[len(all)-1].ID
	}
	one := id("d", rules.Node{Key: "k", Value: "v"})
	other := id("d", rules.Node{Key: "j"}, rules.Node{
		Key: "k", Value: "v", Limit: &rules.Limit{Unit: rules.Day, Multiplier: 1},
		Pos: rules.Position{Line: 9}, Metadata: map[string]any{"a": 1},
	})
	if one != other {
		t.Error("a limit, a position or a neighbor changed the identity")
	}
	seen := map[rules.ID]string{}
	for name, i := range map[string]rules.ID{
		"d: k=v":     one,
		"e: k=v":     id("e", rules.Node{Key: "k", Value: "v"}),
		"d: kv":      id("d", rules.Node{Key: "kv"}),
		"d: k > v":   id("d", rules.Node{Key: "k", Children: []rules.Node{{Key: "v"}}}),
		"d: k":       id("d", rules.Node{Key: "k"}),
		"dk: v":      id("dk", rules.Node{Key: "v"}),
		"d: k=1:v":   id("d", rules.Node{Key: "k", Value: "1:v"}),
		"d: k=v > ?": id("d", rules.Node{Key: "k", Value: "v", Children: []rules.Node{{Key: "?"}}}),
	} {
		if twin, taken := seen[i]; taken {
			t.Errorf("%s and %s have one identity", name, twin)
		}
		seen[i] = name
	}
}

// TestManyNames checks that a level finds each of its names, few or many.
func TestManyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "names")
		var nodes []rules.Node
		for i := range n {
			nodes = append(nodes,
				rules.Node{Key: fmt.Sprint("k", i), Pos: rules.Position{Line: 2*i + 1}},
				rules.Node{Key: "k", Value: fmt.Sprint("v", i), Pos: rules.Position{Line: 2*i + 2}})
		}
		set, err := rules.NewSet([]rules.DomainNode{{Name: "d", Children: nodes}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n + 1 {
			for j, e := range []rules.Entry{
				{Key: fmt.Sprint("k", i), Value: "x"},
				{Key: "k", Value: fmt.Sprint("v", i)},
			} {
				r := set.Domain("d").Match([]rules.Entry{e})
				if found := r != nil; found != (i < n) || found && r.Pos.Line != 2*i+j+1 {
					t.Fatalf("%v of %d names ends at %v", e, n, r)
				}
			}
		}
	})
}

// TestUnion checks that a union has the domains of both sets, and the rules of
// the first one where both have a domain.
func TestUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		over, under := drawSet(t, 2), drawSet(t, 2)
		is, err := rules.Union(over, under)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"d", "e"} {
			from := over
			if over.Domain(name) == nil {
				from = under
			}
			if !rules.SameDomain(is, from, name) || (is.Domain(name) == nil) != (from.Domain(name) == nil) {
				t.Fatalf("domain %s is not that of the set that supplies it", name)
			}
		}
		if extra := len(is.Domains()) - len(over.Domains()); extra < 0 || extra > len(under.Domains()) {
			t.Fatalf("%d domains", len(is.Domains()))
		}
	})
}
