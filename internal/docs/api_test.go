package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	adminapi "github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/web"
)

// TestAPI holds docs/api.md to the interfaces: the messages and methods of the
// native API, the parameters of the HTTP API, the headers, error codes and
// members of answers, the reasons of degraded answers, and the admin pages.
func TestAPI(t *testing.T) {
	p := readPage(t, "docs/api.md")
	comments := protoComments(t)
	text := generate(t, p, map[string]func() string{
		"methods":  func() string { return methodTable(t, comments) },
		"messages": func() string { return messageTables(t, comments) },
	})
	settle(t, p, text)
	for _, what := range []struct {
		kind  string
		names []string
	}{
		{"parameter", reservedParameters(t)},
		{"header", inSource(t, "server/web", `(?:add|\.Set)\("([A-Z][A-Za-z-]+)"`)},
		{"header", inSource(t, "server/rls", `header[A-Z][a-z]+ += "([a-z-]+)"`)},
		{"error code", inSource(t, "server/web", `code[A-Z][A-Za-z]+ += "([a-z_]+)"`)},
		{"member", inSource(t, "server/web", "`json:\"([a-z_-]+)")},
		{"path", inSource(t, "server/web", `[a-zA-Z]+Path += "([a-z0-9_/]+)"`)},
		{"admin path", inSource(t, "server/admin", `\{"(/[a-z0-9/]+)", "`)},
		{"reason", degradedReasons()},
		{"admin path", operatorPaths()},
	} {
		for _, name := range what.names {
			if !mentions(text, name) {
				t.Errorf("docs/api.md: the %s %s is missing", what.kind, name)
			}
		}
	}
}

// mentions reports whether a name stands between backquotes, alone or behind a
// method. The letter case of headers does not matter.
func mentions(text, name string) bool {
	return regexp.MustCompile("(?i)`(?:[A-Z, ]+ )?" + regexp.QuoteMeta(name) + "[:`]").MatchString(text)
}

// reservedParameters returns the parameters of /v1/check, as the error of a
// mapping that uses one lists them.
func reservedParameters(t *testing.T) []string {
	t.Helper()
	err := web.Mapping{Domain: "d", Descriptors: [][]web.MappedEntry{{{Param: "domain"}}}}.Validate()
	if err == nil {
		t.Fatal("a mapping may use domain")
	}
	found := regexp.MustCompile(`other than (.*)$`).FindStringSubmatch(err.Error())
	if found == nil {
		t.Fatalf("the parameters are not in %q", err)
	}
	return regexp.MustCompile(`, | and `).Split(found[1], -1)
}

func degradedReasons() []string {
	var out []string
	for _, d := range node.DegradedReasons() {
		out = append(out, d.String())
	}
	return out
}

func operatorPaths() []string {
	var out []string
	for _, c := range adminapi.ClusterCommands() {
		out = append(out, "/v1/cluster/"+string(c))
	}
	return out
}

// inSource returns the distinct matches of a pattern in the files of a package.
// The test fails when there is none: then the code has another form now, and
// the pattern must be adapted.
func inSource(t *testing.T, folder, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(data), -1) {
			if !slices.Contains(out, found[1]) {
				out = append(out, found[1])
			}
		}
	}
	if len(out) == 0 {
		t.Errorf("%s in %s finds nothing", pattern, folder)
	}
	return out
}

// protoComments returns the comment of each message, field, method and value of
// proto/rld/v1/rld.proto by its full name, as one line. Generated code does not
// have them.
func protoComments(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "proto", "rld", "v1", "rld.proto"))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	block := regexp.MustCompile(`^(?:message|enum|service) (\w+) \{`)
	method := regexp.MustCompile(`^rpc (\w+)\(`)
	field := regexp.MustCompile(`^(?:repeated |optional )?[\w.]*\s*(\w+) = \d+;(?: // (.*))?`)
	var pending []string
	parent := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "//"); ok {
			pending = append(pending, strings.TrimSpace(text))
			continue
		}
		comment := strings.Join(strings.Fields(strings.Join(pending, " ")), " ")
		if found := block.FindStringSubmatch(line); found != nil {
			parent = found[1]
			out[parent] = comment
		} else if found := method.FindStringSubmatch(line); found != nil {
			out[parent+"."+found[1]] = comment
		} else if found := field.FindStringSubmatch(line); found != nil {
			out[parent+"."+found[1]] = strings.TrimSpace(comment + " " + found[2])
		}
		pending = nil
	}
	return out
}

func methodTable(t *testing.T, comments map[string]string) string {
	t.Helper()
	var b strings.Builder
	services := rldv1.File_rld_v1_rld_proto.Services()
	for i := range services.Len() {
		s := services.Get(i)
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			in, out := string(m.Input().Name()), string(m.Output().Name())
			if m.IsStreamingClient() {
				in, out = "stream "+in, "stream "+out
			}
			comment := comments[string(s.Name())+"."+string(m.Name())]
			if comment == "" {
				t.Errorf("rld.proto: %s has no comment", m.FullName())
			}
			fmt.Fprintf(&b, "`%s/%s` (%s) returns %s\n: %s\n\n", s.FullName(), m.Name(), in, out, comment)
		}
	}
	return b.String()
}

// messageTables returns a table for each message of the native API and a line
// for each enumeration.
func messageTables(t *testing.T, comments map[string]string) string {
	t.Helper()
	var b strings.Builder
	messages := rldv1.File_rld_v1_rld_proto.Messages()
	for i := range messages.Len() {
		m := messages.Get(i)
		fmt.Fprintf(&b, "#### %s\n\n", m.Name())
		if text := comments[string(m.Name())]; text != "" {
			b.WriteString(text + "\n\n")
		}
		b.WriteString("| field | number | type | meaning |\n|---|---|---|---|\n")
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", f.Name(), f.Number(), typeOf(f), comments[string(m.Name())+"."+string(f.Name())])
		}
		b.WriteString("\n")
	}
	enums := rldv1.File_rld_v1_rld_proto.Enums()
	for i := range enums.Len() {
		e := enums.Get(i)
		var values []string
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			text := fmt.Sprintf("`%s` = %d", v.Name(), v.Number())
			if c := comments[string(e.Name())+"."+string(v.Name())]; c != "" {
				text += " (" + strings.TrimSuffix(c, ".") + ")"
			}
			values = append(values, text)
		}
		fmt.Fprintf(&b, "#### %s\n\n%s\n\n%s.\n\n", e.Name(), comments[string(e.Name())], strings.Join(values, ", "))
	}
	return b.String()
}

func typeOf(f protoreflect.FieldDescriptor) string {
	name := f.Kind().String()
	switch f.Kind() {
	case protoreflect.MessageKind:
		name = string(f.Message().Name())
	case protoreflect.EnumKind:
		name = string(f.Enum().Name())
	}
	if f.IsList() {
		return "repeated " + name
	}
	if f.HasOptionalKeyword() {
		return "optional " + name
	}
	return name
}
