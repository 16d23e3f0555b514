package limits

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// TestSchema holds the schema to the language: both take the same files, where
// the schema can know.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("limits.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("limits.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) bool {
		t.Helper()
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v) == nil
	}
	limit := func(fields string) string {
		return "domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 10, " + fields + "}}]\n"
	}
	good := []string{
		limit("burst:, algorithm:, overage_budget:, on_failure:, weights:"), "domain: d\ndescriptors: [{key: k, rate_limit: {unit: mInUtE, requests_per_unit: 1}}]",
		"domain: d", "domain: 7\ndescriptors:", limit("algorithm: token_bucket, burst: 20"), limit("unit_multiplier: 5, name: n"),
		limit("consistency: strict, on_failure: allow, home: us"), limit("consistency: strict, on_failure: {share: 10%}"),
		limit("consistency: strict, on_failure: 'share: 10%'"), limit("overage_budget: 2.5%"), limit("consistency: partition, weights: {us: 60%, eu: 40%}"),
		limit("placement: owner, scope: region"), limit("carry_debt: true"), limit("charge_denied: true"), limit("replaces: [{name: other}]"),
		"domain: d\ndefaults: {algorithm: sliding_window}\ndescriptors: [{key: k, value: yes, rate_limit: {unlimited: true}}]",
		"domain: d\ndescriptors: [{key: k, shadow_mode: true, detailed_metric: true, metadata: {a: [1]}, rate_limit: {unit: MINUTE, requests_per_unit: 0}}]",
	}
	paths, err := filepath.Glob("../examples/limits/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		good = append(good, string(text))
	}
	for _, text := range good {
		if set, found := parseOne(text); set == nil || len(found.Warnings()) > 0 {
			t.Errorf("refused: %v\n%s", found, text)
		}
		if !valid(text) {
			t.Errorf("not valid under the schema:\n%s", text)
		}
	}
	for _, text := range []string{
		"descriptors: []", "domain: d\nx: 1", "domain: d\ndescriptors: {}", "domain: d\ndescriptors: [{value: v}]", "domain: d\ndescriptors: [7]",
		limit("unlimited: maybe"), limit("algorithm: fixed"), limit("burst: 0"), limit("unit_multiplier: 1.5"), limit("overage_budget: 2"),
		limit("weights: {us: 60}"), limit("on_failure: share"), limit("scope: world"), limit("consistency: strong"), limit("replaces: [other]"),
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: minutes, requests_per_unit: 1}}]",
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 4294967296}}]",
		"domain: d\ndefaults: {unit: minute}",
	} {
		if set, _ := parseOne(text); set != nil {
			t.Errorf("accepted:\n%s", text)
		}
		if valid(text) {
			t.Errorf("valid under the schema:\n%s", text)
		}
	}
}
