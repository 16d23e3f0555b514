package rlqs

import (
	"encoding/json"
	"os"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rate_limit_quota/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3" // messages of the example
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestExample reads the filter of the example by the messages of Envoy and
// their rules.
func TestExample(t *testing.T) {
	data, err := os.ReadFile("../../examples/gateways/envoy-rlqs/filter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var filter struct {
		Name  string         `yaml:"name"`
		Typed map[string]any `yaml:"typed_config"`
	}
	if err := yaml.Unmarshal(data, &filter); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(filter.Typed)
	if err != nil {
		t.Fatal(err)
	}
	var typed anypb.Any
	if err := protojson.Unmarshal(text, &typed); err != nil {
		t.Fatal(err)
	}
	var config filterv3.RateLimitQuotaFilterConfig
	if err := typed.UnmarshalTo(&config); err != nil {
		t.Fatal(err)
	}
	if err := config.ValidateAll(); err != nil {
		t.Error(err)
	}
	action := config.GetBucketMatchers().GetMatcherList().GetMatchers()[0].GetOnMatch().GetAction()
	var bucket filterv3.RateLimitQuotaBucketSettings
	if err := action.GetTypedConfig().UnmarshalTo(&bucket); err != nil {
		t.Fatal(err)
	}
	if err := bucket.ValidateAll(); err != nil {
		t.Error(err)
	}
}
