package swim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

func TestMetaRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(least, most int) string {
			return rapid.StringOfN(rapid.RuneFrom([]rune("abz09-_.é世")), least, -1, most).Draw(t, "text")
		}
		m := meta{
			id:     crdt.Incarnation(rapid.Uint64Min(1).Draw(t, "slot")),
			ready:  rapid.Bool().Draw(t, "ready"),
			asking: rapid.Bool().Draw(t, "asking"),
			region: text(1, maxRegion), addr: text(1, maxAddr-6) + ":65535", build: text(0, maxBuild),
		}
		b := m.append(nil)
		if len(b) > memberlist.MetaMaxSize {
			t.Fatalf("%d bytes", len(b))
		}
		more := append(bytes.Clone(b), rapid.SliceOf(rapid.Byte()).Draw(t, "later fields")...)
		for _, in := range [][]byte{b, more} {
			if got, err := decodeMeta(in); err != nil || got != m {
				t.Fatalf("%+v, %v, want %+v", got, err, m)
			}
		}
		if _, err := decodeMeta(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]); err == nil {
			t.Fatal("took it cut short")
		}
	})
}

func TestMetaCheck(t *testing.T) {
	good := meta{id: 1, region: "us-east", addr: "[::1]:7947", build: "v1"}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]meta{
		"slot 0":            {region: "r", addr: "h:1"},
		"region of 0":       {id: 1, addr: "h:1"},
		"region of 65":      {id: 1, region: strings.Repeat("r", 65), addr: "h:1"},
		"build of 65":       {id: 1, region: "r", addr: "h:1", build: strings.Repeat("v", 65)},
		"build \"a\\nb\"":   {id: 1, region: "r", addr: "h:1", build: "a\nb"},
		"address of 257":    {id: 1, region: "r", addr: strings.Repeat("h", 255) + ":1"},
		"is not host:port":  {id: 1, region: "r", addr: ":1"},
		"1 to 65535":        {id: 1, region: "r", addr: "h:0"},
		"a number from 1":   {id: 1, region: "r", addr: "h:http"},
		"is not UTF-8":      {id: 1, region: "\xff", addr: "h:1"},
		"cannot be printed": {id: 1, region: "\x1b[2J", addr: "h:1"},
	} {
		if err := m.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
}

// FuzzDecodeMeta: any bytes; what is taken is valid, and encodes to what its
// decoding looked at but for unknown flags and later fields.
func FuzzDecodeMeta(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(meta{id: 1, ready: true, region: "us-east", addr: "10.0.0.1:7947", build: "v1"}.append(nil))
	f.Add(meta{id: 1 << 63, asking: true, region: "r", addr: "h:1"}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			if m != (meta{}) {
				t.Fatalf("both %+v and %v", m, err)
			}
			return
		}
		if err := m.check(); err != nil {
			t.Fatal(err)
		}
		again := m.append(nil)
		seen := bytes.Clone(b[:len(again)])
		seen[1] &= flagReady | flagAsking
		if !bytes.Equal(again, seen) {
			t.Fatalf("%x, want %x", again, seen)
		}
	})
}
