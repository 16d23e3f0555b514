package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
)

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genEntry(t)
		record := bytes.TrimPrefix(EncodeEntry([]byte("before"), &want), []byte("before"))
		got, err := DecodeEntry(record)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		if again := EncodeEntry(nil, &got); !bytes.Equal(again, record) {
			t.Fatalf("encoded again\n is %x\nwas %x", again, record)
		}
	})
}

func TestEntryRefused(t *testing.T) {
	empty := quorum.Entry{Meta: &quorum.Meta{}}
	if got, err := DecodeEntry(EncodeEntry(nil, &empty)); err != nil || !reflect.DeepEqual(got, empty) {
		t.Errorf("empty: %+v, %v", got, err)
	}
	two := quorum.Entry{Meta: &quorum.Meta{}, Record: &sticky.Record{}}
	for _, tt := range []struct {
		name   string
		record []byte
		want   string
	}{
		{"nothing", nil, "wire: record of 0 bytes, want at least 1"},
		{"another release", []byte{9}, "wire: frame of version 9, want 98, the only one known here"},
		{"no field", []byte{StrictVersion}, "wire: entry with 0 of its fields, want exactly one"},
		{"two fields", EncodeEntry(nil, &two), "wire: entry with 2 of its fields, want exactly one"},
		{"cut", []byte{StrictVersion, 4<<3 | length, 9}, "wire: frame: "},
	} {
		_, err := DecodeEntry(tt.record)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// FuzzDecodeEntry decodes any bytes: an accepted entry can be encoded and
// decoded again.
func FuzzDecodeEntry(f *testing.F) {
	gen := rapid.Custom(genEntry)
	for seed := range 8 {
		e := gen.Example(seed)
		f.Add(EncodeEntry(nil, &e))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		e, err := DecodeEntry(record)
		if err != nil {
			return
		}
		if again, err := DecodeEntry(EncodeEntry(nil, &e)); err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("decoded again: %v\n is %+v\nwas %+v", err, again, e)
		}
	})
}
