package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

// root is the root of the repository.
var root = filepath.Join("..", "..", "..", "..")

// example returns a file of examples/gateways.
func example(t *testing.T, folder, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "examples", "gateways", folder, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// documents returns the documents of a YAML file.
func documents(t *testing.T, folder, file string) [][]byte {
	t.Helper()
	var out [][]byte
	for part := range strings.SplitSeq(string(example(t, folder, file)), "\n---\n") {
		out = append(out, []byte(part))
	}
	return out
}

// readYAML reads YAML with the fields of a type and no others.
func readYAML(t *testing.T, what string, data []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// readProto reads YAML with the fields of a message and no others, and
// validates it and all messages in it.
func readProto(t *testing.T, what string, data []byte, into proto.Message) {
	t.Helper()
	// Keys that come twice are faults.
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	readJSON(t, what, text, into)
}

func readJSON(t *testing.T, what string, text []byte, into proto.Message) {
	t.Helper()
	if err := protojson.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := validate(into); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// validate applies the rules of the protos to a message and to those packed in
// it.
func validate(m proto.Message) error {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			return err
		}
	}
	var fault error
	each(m, func(a *anypb.Any) {
		inner, err := a.UnmarshalNew()
		if err == nil {
			err = validate(inner)
		}
		if err != nil && fault == nil {
			fault = err
		}
	})
	return fault
}

// each calls f with the messages that are packed in m, but not in each other.
func each(m proto.Message, f func(*anypb.Any)) {
	if a, ok := m.(*anypb.Any); ok {
		f(a)
		return
	}
	visit := func(v protoreflect.Value) { each(v.Message().Interface(), f) }
	m.ProtoReflect().Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case d.IsMap():
			if d.MapValue().Kind() == protoreflect.MessageKind {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					visit(v)
					return true
				})
			}
		case d.Kind() != protoreflect.MessageKind:
		case d.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i))
			}
		default:
			visit(v)
		}
		return true
	})
}
