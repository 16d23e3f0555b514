package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// testExchange returns an exchange outside of any handler.
func testExchange() *exchange { return newExchange(server.NewCall(), &server.Settings{}) }

// question is the content of a query, to be compared.
type question struct {
	Domain      string
	Descriptors []rules.Descriptor
}

func read(raw string) (question, *exchange, error) {
	x := testExchange()
	err := x.readQuery(raw)
	return question{x.call.Domain, x.call.Descriptors}, x, err
}

// render is the inverse of readQuery for a question with a descriptor.
func render(q question) string {
	var b strings.Builder
	b.WriteString("domain=" + url.QueryEscape(q.Domain))
	for _, d := range q.Descriptors {
		for i, e := range d.Entries {
			sep := ","
			if i == 0 {
				sep = "&d="
			}
			b.WriteString(sep + url.QueryEscape(e.Key) + ":" + url.QueryEscape(e.Value))
		}
	}
	fmt.Fprintf(&b, "&hits=%d", q.Descriptors[0].Hits) // the same for all
	return b.String()
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"domain=edge&d=user_id:a%2Cb%3Ac:d,path:%2Flogin&d=k+1:v+1&hits=5",
		"domain=edge&tier=free&user_id=abc&endpoint=/login",
		"&&domain=%64&flag&a=%ff%00&peek=true&deny_status=403&headers=legacy",
		"domain=d&d=a:,b::&d=%3A:%3A,%2C:%2C",
		"domain=e&d=a", "%", "=", "d=:,", "domain=e&hits=0&a=1", "domain=x&d=a:b%2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, x, err := read(raw)
		checkBounds(t, raw, x)
		if err != nil {
			if p := asProblem(err); p.Status < 400 || p.Status > 499 || len(p.Message) > 16*maxQuote {
				t.Fatalf("%q: status %d, message of %d bytes", raw, p.Status, len(p.Message))
			}
			return
		}
		if q.Domain == "" || len(q.Descriptors) == 0 {
			t.Fatalf("%q: accepted as %+v", raw, q)
		}
		rendered := render(q)
		if len(rendered) > MaxQueryBytes {
			return // escaping may make a long query too long
		}
		again, _, err := read(rendered)
		if err != nil {
			t.Fatalf("%q rendered as %q: %v", raw, rendered, err)
		}
		if diff := cmp.Diff(q, again); diff != "" {
			t.Fatalf("%q rendered as %q (-first +again):\n%s", raw, rendered, diff)
		}
	})
}

// checkBounds checks that a query makes no more than it is long.
func checkBounds(t *testing.T, raw string, x *exchange) {
	text, entries := len(x.call.Domain), 0
	for _, d := range x.call.Descriptors {
		if len(d.Entries) > node.MaxEntries {
			t.Fatalf("%q: %d entries", raw, len(d.Entries))
		}
		entries += len(d.Entries)
		for _, e := range d.Entries {
			text += len(e.Key) + len(e.Value)
		}
	}
	if text > len(raw) || entries > len(raw) || len(x.call.Descriptors) > node.MaxDescriptors {
		t.Fatalf("%q of %d bytes: %d bytes of text in %d entries", raw, len(raw), text, entries)
	}
}

func TestQueryBounds(t *testing.T) {
	entries := func(n int) string { return "d=" + strings.TrimSuffix(strings.Repeat("k:v,", n), ",") }
	tests := []struct {
		name, raw, want string
	}{
		{"entries", "domain=e&" + entries(node.MaxEntries), ""},
		{
			"one entry too many", "domain=e&" + entries(node.MaxEntries+1),
			"parameter d, descriptor 0: more than 32 entries",
		},
		{"descriptors", "domain=e" + strings.Repeat("&d=k:v", node.MaxDescriptors), ""},
		{
			"one descriptor too many", "domain=e" + strings.Repeat("&d=k:v", node.MaxDescriptors+1),
			"more than 256 descriptors; ask in several calls",
		},
		{"parameters", "domain=e" + strings.Repeat("&k=v", node.MaxEntries), ""},
		{
			"one parameter too many", "domain=e" + strings.Repeat("&k=v", node.MaxEntries) + "&last=v",
			`parameter "last": more than 32 entries in the descriptor`,
		},
		{"bytes", "domain=e&k=" + strings.Repeat("v", MaxQueryBytes-len("domain=e&k=")), ""},
		{
			"one byte too many", "domain=e&k=" + strings.Repeat("v", MaxQueryBytes-len("domain=e&k=")+1),
			"the query is 65537 bytes long, at most 65536; larger calls go into the body of a POST",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := read(tt.raw)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}
