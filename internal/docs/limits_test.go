package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// cluster is how the examples of the guide to limits are read: by a daemon of
// three regions of three daemons.
var cluster = limits.Options{
	Replicated: true, Regions: []string{"us-east", "eu-west", "ap-south"}, Daemons: 9, DaemonsOfRegion: 3,
}

// fieldPlaces names the places of the limits language, each with a file that
// has an unknown field there.
var fieldPlaces = []struct{ name, file string }{
	{"file", "descriptors: []\nnonesuch: 1\n"},
	{"`defaults`", "domain: d\ndefaults: {nonesuch: 1}\n"},
	{"descriptor", "domain: d\ndescriptors: [{nonesuch: 1}]\n"},
	{"`rate_limit`", "domain: d\ndescriptors: [{key: k, rate_limit: {nonesuch: 1}}]\n"},
	{"`replaces`", "domain: d\ndescriptors: [{key: k, rate_limit: {replaces: [{nonesuch: 1}]}}]\n"},
}

// languageFields returns the fields of the limits language, each with the
// places where it may stand, as the errors of unknown fields list them.
func languageFields(t *testing.T) (names []string, places map[string][]string) {
	t.Helper()
	places = make(map[string][]string)
	for _, at := range fieldPlaces {
		_, found := limits.Parse([]limits.File{{Name: "x.yaml", Data: []byte(at.file)}}, cluster)
		i := slices.IndexFunc(found, func(d yamlpos.Diagnostic) bool { return strings.Contains(d.Message, "nonesuch") })
		if i < 0 {
			t.Fatalf("%s: an unknown field is accepted", at.name)
		}
		hint := regexp.MustCompile(`the fields .* are (.*)$`).FindStringSubmatch(found[i].Hint)
		if hint == nil {
			t.Fatalf("%s: the fields are not in %q", at.name, found[i].Hint)
		}
		for _, name := range regexp.MustCompile(`, | and `).Split(hint[1], -1) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			places[name] = append(places[name], at.name)
		}
	}
	return names, places
}

// TestLimits holds docs/limits.md to the language: every field, where it may
// stand, its type and range, its default and its example.
func TestLimits(t *testing.T) {
	names, places := languageFields(t)
	p := readPage(t, "docs/limits.md")
	p.text = settleBounds(t, p)
	examples := make(map[string]example)
	for _, s := range p.sections() {
		examples[s.name] = exampleOf(t, s)
	}
	settleFacts(t, p, names, func(name string) string {
		x := examples[name]
		return "- In: " + strings.Join(places[name], ", ") + "\n- Type: " + x.kind(t) + "\n- Default: " + x.def(t)
	})
}

// settleBounds generates the table of bounds and returns the text of the page
// with it.
func settleBounds(t *testing.T, p page) string {
	t.Helper()
	text := generate(t, p, map[string]func() string{"bounds": func() string {
		return fmt.Sprintf(`| of | at most |
|---|---|
| one file | %d bytes |
| descriptors of all files together | %d |
| depth of the tree, entries of a descriptor | %d |
| descriptors of one call | %d |
| a domain, key, value or name | %d bytes |
| requests_per_unit of a sliding_log | %d; %d where its hits go to other daemons |
`, limits.MaxFileBytes, limits.MaxRules, limits.MaxDepth, node.MaxDescriptors, limits.MaxTextBytes,
			limits.MaxLogHits, limits.MaxSharedLogHits)
	}})
	settle(t, p, text)
	return text
}

// example is the first YAML block of a field's section.
type example struct {
	field, text string
	value       string // of the field, as written
	facts       string
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func exampleOf(t *testing.T, s section) example {
	t.Helper()
	block := yamlBlock.FindStringSubmatch(s.body)
	if block == nil {
		t.Errorf("docs/limits.md: %s has no example", s.name)
		return example{field: s.name}
	}
	x := example{field: s.name, text: block[1], facts: s.facts}
	if found := x.pattern().FindStringSubmatch(x.text); found != nil {
		x.value = found[1]
	} else {
		t.Errorf("docs/limits.md: the example of %s does not use it", s.name)
	}
	if _, faults := x.parse(x.text); faults != "" {
		t.Errorf("docs/limits.md: the example of %s is refused:\n%s", s.name, faults)
	}
	return x
}

// pattern matches the field and its value, a flow map or list or a plain word.
func (x example) pattern() *regexp.Regexp {
	return regexp.MustCompile(`\b` + x.field + `: *(\{[^}]*\}|\[[^]]*\]|[^,}\n]+|)`)
}

// with returns the example with another value of the field.
func (x example) with(value string) string {
	at := x.pattern().FindStringIndex(x.text)
	return x.text[:at[0]] + x.field + ": " + value + x.text[at[1]:]
}

// without returns the example without the field.
func (x example) without() string {
	at := x.pattern().FindStringIndex(x.text)
	head, tail := x.text[:at[0]], x.text[at[1]:]
	if rest, found := strings.CutPrefix(tail, ", "); found {
		return head + rest
	}
	if rest, found := strings.CutPrefix(tail, "\n"); found && strings.TrimSpace(head[strings.LastIndexByte(head, '\n')+1:]) == "" {
		return head[:strings.LastIndexByte(head, '\n')+1] + rest
	}
	return strings.TrimSuffix(head, ", ") + tail
}

// parse returns the rules of a file, and its errors, "" for none.
func (x example) parse(text string) ([]*rules.Rule, string) {
	set, found := limits.Parse([]limits.File{{Name: "x.yaml", Data: []byte(text)}}, cluster)
	var faults []string
	for i := range found {
		if d := &found[i]; d.Severity == yamlpos.Error {
			faults = append(faults, d.Message+": "+d.Hint)
		}
	}
	if len(faults) > 0 {
		return nil, strings.Join(faults, "\n")
	}
	return set.Rules(), ""
}

// kind returns the type and range of the field, found by trying values.
func (x example) kind(t *testing.T) string {
	t.Helper()
	if x.text == "" || x.value == "" {
		return containers[x.field]
	}
	if text, ok := containers[x.field]; ok {
		return text
	}
	_, faults := x.parse(x.with("nonesuch"))
	switch found := regexp.MustCompile(`it is one of ([a-z_, ]+)`).FindStringSubmatch(faults); {
	case found != nil:
		words := regexp.MustCompile(`, | and `).Split(found[1], -1)
		return "one of " + listed(words)
	case strings.Contains(faults, "write true or false"):
		return "boolean"
	case strings.Contains(faults, "write a percentage"):
		return "percentage, " + x.percentages(t)
	case strings.Contains(faults, "write a whole number"):
		return "whole number, " + x.numbers(t)
	case faults == "" || strings.Contains(faults, "which is no region"):
		return fmt.Sprintf("text, at most %d bytes", x.longest(t))
	}
	t.Errorf("docs/limits.md: cannot find the type of %s: %s", x.field, faults)
	return ""
}

// containers are the types of the fields that hold others.
var containers = map[string]string{
	"descriptors": "list of descriptors, at most 32 deep",
	"rate_limit":  "map",
	"defaults":    "map",
	"metadata":    "map",
	"replaces":    "list of maps with a `name`",
	"weights":     "map of regions to percentages that sum to exactly 100%, at most 64 regions",
	"on_failure":  "`deny`, `allow` or `{share: PERCENTAGE}`",
	"home":        "name of a region of the cluster",
}

func (x example) ok(value string) bool {
	_, faults := x.parse(x.with(value))
	return faults == ""
}

func (x example) numbers(t *testing.T) string {
	t.Helper()
	around, err := strconv.ParseInt(x.value, 10, 64)
	if err != nil {
		t.Fatalf("docs/limits.md: the example of %s: %v", x.field, err)
	}
	least, greatest := bounds(around, 1<<40, func(n int64) bool { return x.ok(strconv.FormatInt(n, 10)) })
	return fmt.Sprintf("%d to %d", least, greatest)
}

// percentages finds the range in parts per million.
func (x example) percentages(t *testing.T) string {
	t.Helper()
	ok := func(ppm int64) bool { return x.ok(fmt.Sprintf("%d.%04d%%", ppm/10_000, ppm%10_000)) }
	least, greatest := bounds(10_000, 1<<32, ok)
	return fmt.Sprintf("%s%% to %s%% in steps of 0.0001%%", trimmed(least), trimmed(greatest))
}

func trimmed(ppm int64) string { return strconv.FormatFloat(float64(ppm)/10_000, 'f', -1, 64) }

func (x example) longest(t *testing.T) int64 {
	t.Helper()
	if x.field == "home" {
		return 63
	}
	_, greatest := bounds(10, 1<<20, func(n int64) bool { return x.ok(strings.Repeat("x", int(n))) })
	return greatest
}

// def returns the default that the page gives, and checks one that is a value:
// without the field the example means the same.
func (x example) def(t *testing.T) string {
	t.Helper()
	_, def, found := strings.Cut(x.facts, "- Default: ")
	if !found {
		return "none"
	}
	value := regexp.MustCompile("^`([^`]+)`$").FindStringSubmatch(def)
	if value == nil {
		return def
	}
	with, faults := x.parse(x.with(value[1]))
	if faults != "" {
		t.Errorf("docs/limits.md: the default of %s is refused: %s", x.field, faults)
		return def
	}
	without, faults := x.parse(x.without())
	if faults != "" {
		t.Errorf("docs/limits.md: the example of %s cannot do without it: %s\n%s", x.field, faults, x.without())
		return def
	}
	if diff := cmp.Diff(meaning(with), meaning(without)); diff != "" {
		t.Errorf("docs/limits.md: %s is no default of %s (-with +without):\n%s", value[1], x.field, diff)
	}
	return def
}

// meaning returns what rules mean, without their places in a file.
func meaning(all []*rules.Rule) []string {
	var out []string
	for _, r := range all {
		line := r.Domain + ": " + r.Path + fmt.Sprint(" ", r.Patterns, r.Entity, r.Metadata)
		if r.Limit != nil {
			line += fmt.Sprintf(" %+v", *r.Limit)
		}
		out = append(out, line)
	}
	return out
}

// TestPrecedence holds the section on how a descriptor finds its rule to its
// example.
func TestPrecedence(t *testing.T) {
	for _, block := range yamlBlock.FindAllStringSubmatch(readPage(t, "docs/limits.md").text, -1) {
		if !strings.HasPrefix(block[1], "domain: precedence\n") {
			continue
		}
		set, found := limits.Parse([]limits.File{{Name: "x.yaml", Data: []byte(block[1])}}, cluster)
		if set == nil {
			t.Fatal(found)
		}
		for value, want := range map[string]uint32{"/a": 1, "/ab": 2, "/a/b": 2, "/b": 3, "": 3} {
			r := set.Domain("precedence").Match([]rules.Entry{{Key: "path", Value: value}})
			if r == nil || r.Limit.Requests != want {
				t.Errorf("path=%s meets %+v, want the limit of %d", value, r, want)
			}
		}
		if r := set.Domain("precedence").Match([]rules.Entry{{Key: "path", Value: "/a"}, {Key: "ip"}}); r != nil {
			t.Errorf("a descriptor of two entries meets %s", r.Path)
		}
		return
	}
	t.Error("docs/limits.md: the example is gone")
}
