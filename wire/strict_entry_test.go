package wire

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/georld/rld/sticky/quorum"

	"pgregory.net/rapid"

	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky"
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
		if fault := generatedFault(record[1:], new(rldv1.StrictEntry)); fault != "" {
			t.Fatal(fault)
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
		{"another release", []byte{9}, "wire: frame of version 9, want 97, the only one known here"},
		{"no field", []byte{StrictVersion}, "wire: entry with 0 of its fields, want exactly one"},
		{"two fields", EncodeEntry(nil, &two), "wire: entry with 2 of its fields, want exactly one"},
		{"unknown field", []byte{StrictVersion, 5<<3 | length, 0}, "wire: frame: field 5 of type 2 is unknown or out of place"},
		{"cut", []byte{StrictVersion, byte(entryMeta), 9}, "wire: frame: field 4 is cut, or its length not as short as can be"},
		{"twice", []byte{StrictVersion, byte(entryMeta), 0, byte(entryMeta), 0},
			"wire: frame of 2 fields 4, want at most 1"},
	} {
		_, err := DecodeEntry(tt.record)
		wantError(t, tt.name, err, tt.want)
	}
}

// FuzzDecodeEntry: what is taken is encoded to the same bytes.
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
		if again := EncodeEntry(nil, &e); !bytes.Equal(again, record) {
			t.Fatalf("encoded again\n is %x\nwas %x", again, record)
		}
	})
}
