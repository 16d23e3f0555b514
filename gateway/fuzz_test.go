package gateway

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/georld/rld/node"
)

// FuzzRead reads one text as each header of a mapping with all sources. It
// holds that a result is a call with values that may be keys, or a fault.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"", "k1&hits=0", "a, b", "/v1/%2e%2e/x;y?user=%41&user", "https://a@b:1/c", "1.2.3.4, [::1]:5", `for="[::1]:1";by=x, for=a`,
		"sid=1; sid", "Bearer " + jwt(`{"sub":"x"}`), "\xff\x00", "post", "*", "a.b.c", "7", "%", "[", "fe80::1%", "\\",
	} {
		f.Add(s)
	}
	sources := []Source{
		{Header: "X"},
		{Header: "X", Hash: true},
		{Client: &Client{}},
		{Client: &Client{Trusted: []string{"10.0.0.0/8", "::/8"}}},
		{Client: &Client{Header: "Forwarded", V4: 1, V6: 1}},
		{Client: &Client{Header: "X", Hops: 2}},
		{Client: &Client{Networks: map[string][]string{"a": {"1.0.0.0/8", "::/8"}}}},
		{Method: true},
		{Template: []string{"/v1/*", "/users/{id}", "/*"}},
		{Host: true},
		{Cookie: "sid"},
		{Claim: &Claim{Name: "sub"}},
		{Query: "user"},
		{Constant: "c"},
		{Join: []Source{{Header: "X"}, {Method: true}}},
	}
	var mappings, byPath []*Mapping
	for _, s := range sources {
		settings := Settings{
			Domain: "d", Cost: &Cost{Header: "X-Cost"}, Descriptors: [][]Entry{{{Key: "k", Source: s}}},
		}
		m, err := Compile(settings)
		if err != nil {
			f.Fatal(err)
		}
		mappings = append(mappings, m)
		settings.Target = TargetPath
		if m, err = Compile(settings); err != nil {
			f.Fatal(err)
		}
		byPath = append(byPath, m)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, cost := range [][]string{nil, {text}} {
			for _, values := range [][]string{{text}, {text, text}} {
				r := &Request{Host: text, Header: map[string][]string{"X-Cost": cost}}
				for _, name := range append([]string{"X", "Cookie", "Authorization"}, descriptive...) {
					r.Header[name] = values
				}
				for i, m := range mappings {
					checkCall(t, &sources[i], m, r)
				}
				r.Header = map[string][]string{forwardedURI: {text}, originalMethod: {text}}
				for i, m := range mappings {
					checkCall(t, &sources[i], m, r)
				}
				for _, target := range []string{text, "/" + text, "/?" + text} {
					r.Line = &Line{Method: text, Target: target}
					for i, m := range byPath {
						checkCall(t, &sources[i], m, r)
					}
				}
			}
		}
	})
}

func checkCall(t *testing.T, s *Source, m *Mapping, r *Request) {
	t.Helper()
	c, err := m.Read(r)
	if err != nil {
		if len(c.Descriptors) > 0 || err.(*Fault).Reason.String() == "unknown" {
			t.Errorf("%+v: %v and %v", s, c, err)
		}
		return
	}
	for _, d := range c.Descriptors {
		v := d.Entries[0].Value
		if d.Hits < 1 || d.Hits > defaultCost || v == "" || len(v) > node.MaxTextBytes || !utf8.ValidString(v) || strings.Contains(v, "\x00") {
			t.Errorf("%+v: %d hits of %q", s, d.Hits, v)
		}
	}
}
