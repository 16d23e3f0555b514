package config

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/georld/rld/gateway"
)

// object is a JSON object. It is written in the order of its keys.
type object map[string]any

// Schema returns the JSON Schema (draft 2020-12) of a settings file, for
// editors and other tools: names, types, words and what each setting does. What
// rld config print prints is valid under it. Load knows more: ranges, maps and
// what depends on several settings. It also accepts other spellings, such as
// words in capitals and dotted names.
func Schema() []byte {
	c := Default()
	root := section()
	for _, f := range fields(&c) {
		at, path := root, strings.Split(f.Name, ".")
		for _, name := range path[:len(path)-1] {
			in := at["properties"].(object)
			if in[name] == nil {
				in[name] = section()
			}
			at = in[name].(object)
		}
		at["properties"].(object)[path[len(path)-1]] = f.schema()
	}
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", "Settings of rld"
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // the schema holds nothing that JSON cannot
	}
	return append(b, '\n')
}

// section returns the schema of a map of settings without any.
func section() object {
	return object{"type": []string{"object", "null"}, "properties": object{}, "additionalProperties": false}
}

// schema returns the schema of the value of a setting.
func (f *field) schema() object {
	out := object{"description": f.Usage}
	if text := f.get(); text != "" && f.read == nil {
		out["description"] = f.Usage + "; default " + text
	}
	switch {
	case len(f.words) > 0:
		out["enum"] = f.words
	case f.Kind == "map":
		out["type"] = []string{"object", "null"}
		if f.Name == "gateways" {
			out["additionalProperties"] = schemaOf(reflect.TypeFor[gateway.Settings]())
		}
	case f.read != nil:
		out["type"] = []string{"array", "string"}
	case f.Kind == "bool":
		out["type"] = "boolean"
	case f.Kind == "int": // with or without underscores
		out["type"], out["pattern"] = []string{"integer", "string"}, "^[0-9_]+$"
	case f.Kind == "ratio":
		out["type"] = []string{"number", "string"}
	default:
		out["type"] = []string{"string", "number", "boolean"}
	}
	return out
}

// gatewayWords are the words of types of package gateway that have no others.
var gatewayWords = map[reflect.Type][]string{
	reflect.TypeFor[gateway.Target]():  {string(gateway.TargetHeaders), string(gateway.TargetPath)},
	reflect.TypeFor[gateway.NoMatch](): {string(gateway.NoMatchAllow), string(gateway.NoMatchDeny)},
	reflect.TypeFor[gateway.Action]():  {string(gateway.ActionDeny), string(gateway.ActionChallenge), string(gateway.ActionLog)},
}

// schemaOf returns the schema of the values of a type of package gateway. It
// does not look into the sources of a source.
func schemaOf(t reflect.Type) object {
	text := object{"type": []string{"string", "number", "boolean"}}
	switch {
	case gatewayWords[t] != nil:
		return object{"enum": gatewayWords[t]}
	case t == reflect.TypeFor[gateway.WhenMissing]():
		constant := object{"type": "object", "properties": object{"constant": text}, "additionalProperties": false}
		return object{"anyOf": []any{object{"enum": []string{"skip", "deny"}}, constant}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[gateway.Source]() {
			return object{"type": "array", "items": object{"type": "object"}}
		}
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Struct:
		properties := object{}
		addFields(properties, t)
		return object{"type": "object", "properties": properties, "additionalProperties": false}
	}
	return text
}

// addFields adds the schemas of the fields of a struct, and of those that it
// embeds.
func addFields(properties object, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			addFields(properties, f.Type)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = schemaOf(f.Type)
		if name == "template" { // one, or a list
			properties[name] = object{"anyOf": []any{schemaOf(f.Type.Elem()), schemaOf(f.Type)}}
		}
	}
}
