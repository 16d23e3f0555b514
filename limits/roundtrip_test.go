package limits

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// TestRoundTrip writes trees of descriptors as YAML, in any mix of styles, and
// checks that they come back as they were.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rules.DomainNode{Name: text().Draw(t, "domain"), Children: nodes(t, 3)}
		w := yamlWriter{t: t}
		w.b.WriteString("domain: " + w.scalar(want.Name) + "\n" + "descriptors:\n")
		w.list(want.Children, rapid.IntRange(0, 3).Draw(t, "indent"))
		set, faults := parseOne(w.b.String())
		if set == nil {
			t.Fatalf("refused: %v\n%s", faults, w.b.String())
		}
		direct, err := rules.NewSet([]rules.DomainNode{want})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Describe(set), Describe(direct); got != want {
			t.Fatalf("got\n%swant\n%sof\n%s", got, want, w.b.String())
		}
	})
}

// text draws what may stand in a file: words, blanks, and all that means
// something to YAML.
func text() *rapid.Generator[string] {
	letters := []rune("abcxyz019 _-:#*&!|>'\"%@`{}[],?\\/~.=é日")
	return rapid.StringOfN(rapid.SampledFrom(letters), 1, 12, -1)
}

func nodes(t *rapid.T, depth int) []rules.Node {
	if depth == 0 {
		return nil
	}
	var out []rules.Node
	seen := make(map[rules.Entry]bool)
	for range rapid.IntRange(0, 3).Draw(t, "nodes") {
		n := rules.Node{Key: text().Draw(t, "key")}
		if rapid.Bool().Draw(t, "valued") {
			n.Value = text().Draw(t, "value")
		}
		if e := (rules.Entry{Key: n.Key, Value: n.Value}); seen[e] {
			continue
		} else {
			seen[e] = true
		}
		if rapid.Bool().Draw(t, "limited") {
			n.Limit = &rules.Limit{
				Unit:       rules.Unit(rapid.IntRange(1, 7).Draw(t, "unit")),
				Requests:   rapid.Uint32().Draw(t, "requests"),
				Multiplier: 1,
			}
		}
		n.Children = nodes(t, depth-1)
		out = append(out, n)
	}
	return out
}

// yamlWriter writes descriptors in the styles that it draws.
type yamlWriter struct {
	t *rapid.T
	b strings.Builder
}

// scalar quotes a text in one of the ways that it can be.
func (w *yamlWriter) scalar(s string) string {
	value, _ := (&yamlpos.Node{Text: s}).Resolve()
	_, text := value.(string)
	plain := text && s[0] != '*' && strings.Trim(s, "abcxyz_/*=é日") == ""
	single := !strings.ContainsAny(s, "\n\t")
	switch style := rapid.IntRange(0, 2).Draw(w.t, "style"); {
	case style == 0 && plain:
		return s
	case style == 1 && single:
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(quoted)
}

// list writes descriptors as a block whose dashes are at an indentation.
func (w *yamlWriter) list(nodes []rules.Node, indent int) {
	for i := range nodes {
		n := &nodes[i]
		pad := strings.Repeat(" ", indent)
		if rapid.IntRange(0, 3).Draw(w.t, "flow") == 0 {
			w.b.WriteString(pad + "- ")
			w.flow(n, pad+"  ")
			w.b.WriteString("\n")
			continue
		}
		gap := strings.Repeat(" ", rapid.IntRange(1, 3).Draw(w.t, "gap"))
		fields := pad + " " + gap
		w.b.WriteString(pad + "-" + gap + "key: " + w.scalar(n.Key) + " # comment\n")
		if n.Value != "" {
			w.b.WriteString(fields + "value:\n" + fields + " " + w.scalar(n.Value) + "\n\n")
		}
		if n.Limit != nil {
			fmt.Fprintf(&w.b, "%[1]srate_limit:\n%[1]s  unit: %[2]s\n%[1]s  requests_per_unit: %[3]d\n",
				fields, n.Limit.Unit, n.Limit.Requests)
		}
		if len(n.Children) > 0 {
			w.b.WriteString(fields + "descriptors:\n")
			w.list(n.Children, len(fields)+rapid.IntRange(0, 2).Draw(w.t, "indent"))
		}
	}
}

// flow writes a descriptor in braces; lines after the first are indented.
func (w *yamlWriter) flow(n *rules.Node, indent string) {
	w.b.WriteString("{key: " + w.scalar(n.Key) + ", value: " + w.scalar(n.Value))
	if n.Limit != nil {
		fmt.Fprintf(&w.b, ",\n%srate_limit: {unit: %s, requests_per_unit: %d}",
			indent, n.Limit.Unit, n.Limit.Requests)
	}
	if len(n.Children) > 0 {
		w.b.WriteString(", descriptors: [")
		for i := range n.Children {
			w.flow(&n.Children[i], indent)
			w.b.WriteString(", ")
		}
		w.b.WriteString("]")
	}
	w.b.WriteString("}")
}
