package rls_test

import (
	"math"
	"strings"
	"testing"
	"time"

	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// rule returns the status of a rule that has metadata and is not over.
func rule(metadata map[string]any) node.Status {
	r := &rules.Rule{Limit: limit(10), Metadata: metadata}
	return node.Status{Rule: r, Limit: r.Limit, Remaining: 4}
}

func dynamic() server.Settings {
	s := server.DefaultSettings()
	s.DynamicMetadata = true
	return s
}

func TestMetadataIsOffByDefault(t *testing.T) {
	e := answers(rule(map[string]any{"a": "b"}))
	out := ask(t, e, server.DefaultSettings(), request(descriptor("k", "v")))
	if out.DynamicMetadata != nil {
		t.Errorf("got %v", out.DynamicMetadata)
	}
}

func TestMetadataEchoesTheRequest(t *testing.T) {
	in := request(withHits(descriptor("plain", "1"), 4), descriptor("q", "2", "r", "3"), descriptor(),
		override(7, typev3.RateLimitUnit_HOUR), override(0, typev3.RateLimitUnit_DAY))
	in.HitsAddend = 2
	got := ask(t, answers(), dynamic(), in).DynamicMetadata.AsMap()
	want := map[string]any{
		"domain": "edge", "hitsAddend": 2.0,
		"descriptors": []any{
			map[string]any{"entries": []any{"plain=1"}, "hitsAddend": 4.0},
			map[string]any{"entries": []any{"q=2", "r=3"}},
			map[string]any{"entries": []any{}},
			map[string]any{"entries": []any{"k=v"}, "limit": "requests_per_unit:7 unit:HOUR"},
			map[string]any{"entries": []any{"k=v"}, "limit": "unit:DAY"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetadataOfPassedRulesIsMerged(t *testing.T) {
	first := rule(map[string]any{"svc": map[string]any{"name": "one", "tier": int64(1)}, "flag": true})
	second := rule(map[string]any{
		"svc": map[string]any{"name": "two", "zone": "b"}, "flag": map[string]any{}, "list": []any{"x"},
	})
	refused := rule(map[string]any{"svc": map[string]any{"refused": true}})
	refused.Over = true
	replaced := rule(map[string]any{"replaced": true})
	replaced.Limit = nil
	shadowed := rule(map[string]any{"shadowed": true})
	shadowed.Over, shadowed.Limit = true, &rules.Limit{Shadow: true}
	overridden := rule(map[string]any{"overridden": true})

	e := answers(first, refused, second, replaced, shadowed, overridden, node.Status{})
	in := request(descriptor(), descriptor(), descriptor(), descriptor(), descriptor(),
		override(1, typev3.RateLimitUnit_DAY), descriptor())
	got := ask(t, e, dynamic(), in).DynamicMetadata.AsMap()["metadata"]
	want := map[string]any{
		"svc":  map[string]any{"name": "one", "tier": 1.0, "zone": "b"},
		"flag": true, "list": []any{"x"}, "shadowed": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMetadataHoldsAnyYAML converts every kind of YAML value, also those
// without a counterpart.
func TestMetadataHoldsAnyYAML(t *testing.T) {
	in := map[string]any{
		"list": []any{int64(1), 2.5, "x", nil, []any{}, false}, "5": "five", "int": 3,
		"nested": map[string]any{"deep": map[string]any{"deeper": nil}},
		"uint":   uint64(1 << 40), "nan": math.NaN(), "inf": math.Inf(-1),
		"time": time.Unix(0, 0).UTC(), "bytes\xff": "a\xff",
	}
	got := ask(t, answers(rule(in)), dynamic(), request(descriptor())).DynamicMetadata.AsMap()["metadata"]
	want := map[string]any{
		"list": []any{1.0, 2.5, "x", nil, []any{}, false}, "5": "five", "int": 3.0,
		"nested": map[string]any{"deep": map[string]any{"deeper": nil}},
		"uint":   float64(1 << 40), "nan": "NaN", "inf": "-Inf",
		"time": "1970-01-01 00:00:00 +0000 UTC", "bytes\ufffd": "a\ufffd",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMetadataIsShallowEnough nests metadata deeper than readers of protobuf
// accept; deeper levels arrive as text.
func TestMetadataIsShallowEnough(t *testing.T) {
	var bottom any = "bottom"
	for range 200 {
		bottom = map[string]any{"m": []any{bottom}}
	}
	out := ask(t, answers(rule(map[string]any{"m": bottom})), dynamic(), request(descriptor()))
	depth, at := 0, out.DynamicMetadata.AsMap()["metadata"]
	for {
		switch v := at.(type) {
		case map[string]any:
			at = v["m"]
		case []any:
			at = v[0]
		case string:
			if depth > 30 || !strings.Contains(v, "bottom") {
				t.Errorf("at depth %d: %q", depth, v)
			}
			return
		}
		depth++
	}
}
