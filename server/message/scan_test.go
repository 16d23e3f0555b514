package message_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/georld/rld/server/message"
)

// dump lists the fields of a message, and the fault that ended it.
func dump(text string) string {
	var b strings.Builder
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag & 7 {
		case message.Varint:
			fmt.Fprintf(&b, "%d=%d ", s.Tag>>3, s.Uint)
		case message.Len:
			fmt.Fprintf(&b, "%d=%q ", s.Tag>>3, s.Text)
		default:
			fmt.Fprintf(&b, "%d/%d ", s.Tag>>3, s.Tag&7)
		}
	}
	if err := s.Err(); err != nil {
		b.WriteString(err.Error())
	}
	return strings.TrimSpace(b.String())
}

func TestScan(t *testing.T) {
	big := string(protowire.AppendVarint([]byte{1 << 3}, math.MaxUint64))
	deep := strings.Repeat("\x0b", 40)
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"number", "\x08\x01", "1=1"},
		{"long number", "\x10\xac\x02", "2=300"},
		{"largest number", big, "1=18446744073709551615"},
		{"text", "\x0a\x03abc", `1="abc"`},
		{"empty text", "\x0a\x00", `1=""`},
		{"several", "\x08\x01\x0a\x01x\x08\x02", `1=1 1="x" 1=2`},
		{"fixed", "\x09--------\x15----", "1/1 2/5"},
		{"high field", "\xfa\xff\xff\xff\x0f\x00", `536870911=""`},
		{"group", "\x0b\x08\x01\x0a\x01x\x0c\x08\x05", "1/3 1=5"},
		{"group in a group", "\x0b\x13\x14\x0c\x08\x05", "1/3 1=5"},
		{"number cut", "\x08\xac", "message ends in the middle of a field"},
		{"number missing", "\x08", "message ends in the middle of a field"},
		{"tag cut", "\x08\x01\xff", "1=1 message ends in the middle of a field"},
		{"text cut", "\x0a\x04abc", "message ends in the middle of a field"},
		{
			"text of 2^63 bytes", "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01x",
			"message ends in the middle of a field",
		},
		{"fixed cut", "\x09-------", "message ends in the middle of a field"},
		{"number of 65 bits", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "number of more than 64 bits"},
		{"endless number", "\x08" + strings.Repeat("\xff", 20), "number of more than 64 bits"},
		{"field 0", "\x00\x01", "field number 0, from 1 to 536870911 are valid"},
		{"field 2^29", "\x80\x80\x80\x80\x10\x01", "field number 536870912, from 1 to 536870911 are valid"},
		{"wire type 6", "\x0e", "field 1 has the invalid wire type 6"},
		{"group never opened", "\x0c", "field 1 has the invalid wire type 4"},
		{"group never closed", "\x0b\x08\x01", "message ends in the middle of a field"},
		{"group closed as another", "\x0b\x14", "group 1 is closed as 2"},
		{"field 0 in a group", "\x0b\x00\x01\x0c", "field number 0, from 1 to 536870911 are valid"},
		{"groups too deep", deep, "groups nested more than 32 deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := dump(tt.text); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// FuzzScan holds the scanner to protowire: both see the same fields, and both
// or neither find a fault. Two bounds are the scanner's own: the nesting of
// groups, and the largest field number, which generated code checks too.
func FuzzScan(f *testing.F) {
	f.Add([]byte("\x08\x01\x0a\x03abc\x15----\x0b\x08\x01\x0c"))
	f.Add([]byte("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"))
	ownBound := regexp.MustCompile("^groups nested more|^field number [1-9]")
	f.Fuzz(func(t *testing.T, b []byte) {
		s := message.Scan(string(b))
		for len(b) > 0 {
			number, typ, n := protowire.ConsumeTag(b)
			size := n
			if n > 0 {
				size = protowire.ConsumeFieldValue(number, typ, b[n:])
			}
			ok := s.Next()
			if err := s.Err(); err != nil && ownBound.MatchString(err.Error()) {
				return
			}
			if ok != (n > 0 && size >= 0) {
				t.Fatalf("field %d: found %t (%v), protowire %d %d", number, ok, s.Err(), n, size)
			}
			if !ok {
				return
			}
			if s.Tag != protowire.EncodeTag(number, typ) {
				t.Fatalf("tag %d, want field %d of type %d", s.Tag, number, typ)
			}
			switch typ {
			case protowire.VarintType:
				if v, _ := protowire.ConsumeVarint(b[n:]); v != s.Uint {
					t.Fatalf("number %d, want %d", s.Uint, v)
				}
			case protowire.BytesType:
				if v, _ := protowire.ConsumeBytes(b[n:]); string(v) != s.Text {
					t.Fatalf("text %q, want %q", s.Text, v)
				}
			}
			b = b[n+size:]
		}
		if s.Next() || s.Err() != nil {
			t.Fatalf("goes on after the end, or fails there: %v", s.Err())
		}
	})
}
