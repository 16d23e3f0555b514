package config

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// TestSchema holds that printed settings are valid under the schema, and that
// names and types that no setting has are not.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("settings.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("settings.json")
	if err != nil {
		t.Fatal(err)
	}
	fault := func(text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := &Loaded{Config: drawConfig(t)}
		text, err := l.Print(PrintOptions{JSON: true, Effective: rapid.Bool().Draw(t, "effective")})
		if err != nil {
			t.Fatal(err)
		}
		if err := fault(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
	whole, err := loadText(t, wholeGateway)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := whole.Print(PrintOptions{JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		printed, `{"gateways": {"edge": {"descriptors": [[{"key": "p", "template": "/v1/*"}]], "exempt": {"networks": {"own": ["10.0.0.0/8"]}}}}}`,
	} {
		if err := fault(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for _, text := range []string{
		`{"grcp": {}}`, `{"grpc": {"adr": "x"}}`, `{"grpc": []}`, `{"http": {"headers": "modern"}}`, `{"gateways": []}`,
		`{"gateways": {"edge": {"domian": "web"}}}`, `{"gateways": {"edge": {"action": "allow"}}}`, `{"gateways": {"edge": {"deny_status": "no"}}}`,
		`{"gateways": {"edge": {"descriptors": [{"key": "ip"}]}}}`, `{"gateways": {"edge": {"descriptors": [[{"key": "ip", "ip": {}}]]}}}`,
		`{"gateways": {"edge": {"descriptors": [[{"key": "ip", "client": {"hop": 1}}]]}}}`,
		`{"gateways": {"edge": {"descriptors": [[{"key": "k", "header": "X", "when_missing": "allow"}]]}}}`,
		`{"admin": {"pprof": "perhaps"}}`,
	} {
		if fault(text) == nil {
			t.Errorf("valid under the schema: %s", text)
		}
	}
}
