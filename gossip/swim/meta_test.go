package swim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// metaOf returns the metadata of a daemon that is not ready.
func metaOf(id uint64, region, addr, build string) meta {
	return meta{Member: gossip.Member{Peer: gossip.Peer{ID: crdt.Incarnation(id), Region: region}, Addr: addr, Build: build}}
}

func TestMetaRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(least, most int) string {
			return rapid.StringOfN(rapid.RuneFrom([]rune("abz09-_.é世")), least, -1, most).Draw(t, "text")
		}
		id := rapid.Uint64Min(1).Draw(t, "incarnation")
		ready, asking := rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "asking")
		m := metaOf(id, text(1, maxRegion), text(1, maxAddr-6)+":65535", text(0, maxBuild))
		m.Ready, m.asking = ready, asking
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
	good := metaOf(1, "us-east", "[::1]:7947", "v1")
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]meta{
		"incarnation 0":     metaOf(0, "r", "h:1", ""),
		"region of 0":       metaOf(1, "", "h:1", ""),
		"region of 65":      metaOf(1, strings.Repeat("r", 65), "h:1", ""),
		"build of 65":       metaOf(1, "r", "h:1", strings.Repeat("v", 65)),
		"build \"a\\nb\"":   metaOf(1, "r", "h:1", "a\nb"),
		"address of 257":    metaOf(1, "r", strings.Repeat("h", 255)+":1", ""),
		"is not host:port":  metaOf(1, "r", ":1", ""),
		"1 to 65535":        metaOf(1, "r", "h:0", ""),
		"a number from 1":   metaOf(1, "r", "h:http", ""),
		"is not UTF-8":      metaOf(1, "\xff", "h:1", ""),
		"cannot be printed": metaOf(1, "\x1b[2J", "h:1", ""),
	} {
		if err := m.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
}

// FuzzDecodeMeta decodes arbitrary bytes. An accepted text is valid, and
// encodes to the decoded bytes but for unknown flags and later fields.
func FuzzDecodeMeta(f *testing.F) {
	f.Add([]byte(nil))
	member, asker := metaOf(1, "us-east", "10.0.0.1:7947", "v1"), metaOf(1<<63, "r", "h:1", "")
	member.Ready, asker.asking = true, true
	f.Add(member.append(nil))
	f.Add(asker.append(nil))
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
