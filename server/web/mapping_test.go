package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

func TestMappingValidate(t *testing.T) {
	one := func(e MappedEntry) Mapping { return Mapping{"d", [][]MappedEntry{{e}}} }
	tests := []struct {
		name string
		m    Mapping
		want string // substrings, split by |; "" means valid
	}{
		{"default", DefaultMapping(), ""},
		{"zero", Mapping{}, "domain must not be empty|0 descriptors, want 1 to 256"},
		{"empty descriptor", Mapping{"d", [][]MappedEntry{{}}}, "descriptor 0: 0 entries, want 1 to 32"},
		{
			"too many",
			Mapping{"d", make([][]MappedEntry, node.MaxDescriptors+1)},
			"257 descriptors, want 1 to 256",
		},
		{
			"too long",
			Mapping{"d", [][]MappedEntry{make([]MappedEntry, node.MaxEntries+1)}},
			"33 entries, want 1 to 32|entry 32: param must not be empty",
		},
		{"reserved", one(MappedEntry{Param: "hits"}), `descriptor 0, entry 0: parameter "hits" is reserved`},
		{"reserved fallback", one(MappedEntry{Param: "a", Fallback: "d"}), `parameter "d" is reserved`},
		{"own fallback", one(MappedEntry{Param: "a", Fallback: "a"}), `param "a" is its own fallback`},
		{
			"key without fallback", one(MappedEntry{Param: "a", FallbackKey: "b"}),
			`fallback_key "b" without a fallback`,
		},
		{"all", one(MappedEntry{Param: "a", Key: "k", Fallback: "b", FallbackKey: "l"}), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.m.Validate()
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, want := range strings.Split(tt.want, "|") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestMappingOfItsOwn(t *testing.T) {
	m := Mapping{
		Domain: "api",
		Descriptors: [][]MappedEntry{
			{{Param: "key", Key: "api_key", Fallback: "ip", FallbackKey: "remote_address"}, {Param: "path"}},
			{{Param: "ip"}},
			{{Param: "org"}},
		},
	}
	tests := []struct {
		raw  string
		want [][]rules.Entry
	}{
		{"ip=1.2.3.4&path=/", [][]rules.Entry{
			{{Key: "remote_address", Value: "1.2.3.4"}, {Key: "path", Value: "/"}},
			{{Key: "ip", Value: "1.2.3.4"}},
		}},
		{"path=%2Fa&key=k", [][]rules.Entry{{{Key: "api_key", Value: "k"}, {Key: "path", Value: "/a"}}}},
		{"org=o+1", [][]rules.Entry{{{Key: "org", Value: "o 1"}}}},
	}
	for _, tt := range tests {
		x := testExchange()
		if err := m.read(tt.raw, x); err != nil {
			t.Errorf("%s: %v", tt.raw, err)
			continue
		}
		var got [][]rules.Entry
		for _, d := range x.call.Descriptors {
			got = append(got, d.Entries)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || x.call.Domain != "api" {
			t.Errorf("%s in %s (-want +got):\n%s", tt.raw, x.call.Domain, diff)
		}
	}
}
