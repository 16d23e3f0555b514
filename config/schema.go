package config

import (
	"encoding/json"
	"strings"
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
