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
	for _, text := range []string{
		`{"grcp": {}}`, `{"grpc": {"adr": "x"}}`, `{"grpc": []}`, `{"http": {"headers": "modern"}}`, `{"gateways": []}`,
		`{"admin": {"pprof": "perhaps"}}`,
	} {
		if fault(text) == nil {
			t.Errorf("valid under the schema: %s", text)
		}
	}
}
