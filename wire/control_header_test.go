package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/georld/rld/control"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// TestControlHeaders rejects headers that no daemon writes.
func TestControlHeaders(t *testing.T) {
	if header := headerOf(t, exampleControl()); header != "" {
		t.Fatalf("a comparison has the header %s", header)
	}
	good := headerOf(t, exampleAsking())
	if _, err := decodeExample(withHeader(t, good)); err != nil {
		t.Fatal(err)
	}
	edit := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("no %s in %s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	end := func(more string) string { return good[:len(good)-1] + "," + more + "}" }
	for _, tt := range []struct{ name, header, want string }{
		{"no object", "null", "header of 4 bytes"},
		{"a list", "[]", "cannot unmarshal array"},
		{"cut", good[:len(good)-1], "unexpected end of JSON input"},
		{"two", good + good, "after top-level value"},
		{"space", good + " ", "each field once"},
		{"no fields", "{}", "header of 2 bytes"},
		{"unknown field", end(`"later":1`), `unknown field "later"`},
		{"long unknown field", end(`"` + strings.Repeat("x", 1_000) + `":1`), `header: json: unknown field "xxx`},
		{"unknown field of a part", edit(`"random"`, `"chance"`), `unknown field "chance"`},
		{"field of the frame", end(`"From":1`), `unknown field "From"`},
		{"field that the frame has", end(`"cluster":"6666666666666666"`), "each field once"},
		{"sender that the frame has", end(`"sender":{"durable":true}`), "each field once"},
		{"field twice", end(`"ask":"3333333333333333"`), "each field once"},
		{"field in capitals", edit(`"ask"`, `"Ask"`), "each field once"},
		{"null", end(`"answer":null`), "each field once"},
		{"empty list", end(`"entries":[]`), "each field once"},
		{"number in capitals", edit("3333", "AAAA"), "each field once"},
		{"short number", edit("33", ""), "want 16 hexadecimal"},
		{"number without quotes", edit(`"3333333333333333"`, "4"), "cannot unmarshal number"},
		{"negative index", end(`"entries":[{"index":-1}]`), "cannot unmarshal number"},
		{"index beyond 64 bits", end(`"entries":[{"index":100000000000000000001}]`), "cannot unmarshal number"},
		{"an entry without padding", end(`"entries":[{"index":1,"entry":"e30"}]`), "illegal base64"},
		{"text that is not UTF-8", end(`"requests":[{"id":"0000000000000001","author":"` + "\xff" + `"}]`), "UTF-8"},
		{"deep", end(`"entries":[{"index":1,"entry":` + strings.Repeat("[", 20_000)), "exceeded max depth"},
	} {
		var format *FormatError
		m, err := decodeExample(withHeader(t, tt.header))
		if !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %+v, %v, want %q", tt.name, m, err, tt.want)
		}
	}
}

// TestControlSenders rejects what is in each message where no daemon writes it.
func TestControlSenders(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(f *rldv1.ControlFrame)
		want string
	}{
		{"long leader", func(f *rldv1.ControlFrame) { f.Leader = make([]byte, 17) }, "a leader of 17 bytes"},
		{"two leaders", func(f *rldv1.ControlFrame) { f.Flags |= leads }, "a leader of 16 bytes"},
		{"two random numbers", func(f *rldv1.ControlFrame) { f.Random = 1 }, "random number 1 of a recovery"},
		{"unknown flag", func(f *rldv1.ControlFrame) { f.Flags |= 1 << 8 }, "and flags 1"},
		{"two acceptors", func(f *rldv1.ControlFrame) {
			f.Header = []byte(`{"sender":{"acceptor":{"unknown":{"number":1,"regions":null}}}}`)
		}, "two states of an acceptor"},
	} {
		f := frameOf(nil)
		tt.edit(f)
		var format *FormatError
		if m, err := decodeExample(sealedControl(marshal(t, f))); !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v, want %q", tt.name, m, err, tt.want)
		}
	}
}

// TestControlText encodes texts with bytes that JSON writes in another way.
func TestControlText(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		ok         bool
	}{
		{"control characters", "a\x00\t\"\\/", true},
		{"markup", "<a & b>\u2028\U0001f600", true},
		{"replacement", "\ufffd", true},
		{"the text of an escape", `\ufffd`, true},
		{"not UTF-8", "a\xffb", false},
		{"a surrogate", "\xed\xa0\x80", false},
	} {
		m := exampleControl()
		m.Requests = []control.Request{{ID: 1, Author: tt.text}}
		frame, err := EncodeControl([]byte{1}, m)
		if !tt.ok {
			var format *FormatError
			if !errors.As(err, &format) || len(frame) != 1 {
				t.Errorf("%s: %v, %d bytes", tt.name, err, len(frame))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got, err := decodeExample(frame[1:]); err != nil || got.Requests[0].Author != tt.text {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}
