package limits

import (
	"encoding/json"
	"strings"

	"github.com/georld/rld/rules"
)

// object is a JSON object. It is written in the order of its keys.
type object map[string]any

// Schema returns the JSON Schema (draft 2020-12) of a file of limits, for
// editors and other tools. A file that Parse accepts without a warning is valid
// under it; merge keys of YAML have to be resolved before. The reverse is not
// so: the schema knows fields, types and ranges, and not what depends on
// several fields or on the cluster.
func Schema() []byte {
	b, err := json.MarshalIndent(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Limits of rld",
		"$ref":    "#/$defs/file",
		"$defs": object{
			"file":       fieldsSchema(inFile, "domain"),
			"defaults":   fieldsSchema(inDefaults),
			"descriptor": fieldsSchema(inDescriptor, "key"),
			"rate_limit": fieldsSchema(inLimit),
			"replaced":   fieldsSchema(inReplaces, "name"),
		},
	}, "", "  ")
	if err != nil {
		panic(err) // the schema holds nothing that JSON cannot
	}
	return append(b, '\n')
}

// fieldsSchema returns the schema of the maps at a place.
func fieldsSchema(at place, required ...string) object {
	properties := object{}
	for f := range fieldCount {
		if vocabulary[f].at&at != 0 {
			properties[f.String()] = object{"anyOf": []object{f.schema(), {"type": "null"}}} // not given
		}
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// schema returns the schema of the value of a field.
func (f fieldID) schema() object {
	// YAML reads some texts as numbers or booleans. rld reads them as texts.
	text := object{"type": []string{"string", "integer", "boolean"}}
	percent := object{"type": "string", "pattern": `^[0-9]+(\.[0-9]{1,4})?%$`}
	whole := func(low int) object {
		return object{"type": "integer", "minimum": low, "maximum": uint64(1<<32 - 1)}
	}
	list := func(name string) object {
		return object{"type": "array", "items": object{"$ref": "#/$defs/" + name}}
	}
	switch f {
	case fDescriptors:
		return list("descriptor")
	case fReplaces:
		return list("replaced")
	case fRateLimit:
		return object{"$ref": "#/$defs/rate_limit"}
	case fDefaults:
		return object{"$ref": "#/$defs/defaults"}
	case fShadowMode, fQuotaMode, fDetailedMetric, fValueToMetric, fShareThreshold, fUnlimited, fCarryDebt, fChargeDenied:
		return object{"type": "boolean"}
	case fMetadata:
		return object{"type": "object"}
	case fRequests:
		return whole(0)
	case fBurst, fMultiplier:
		return whole(1)
	case fUnit:
		// The words are for editors, the pattern is what counts.
		return object{"anyOf": []object{{"enum": append(rules.Units(), "")}, {"type": "string", "pattern": anyCase(rules.Units())}}}
	case fAlgorithm:
		return object{"enum": rules.Algorithms()}
	case fScope:
		return object{"enum": scopeNames}
	case fConsistency:
		return object{"enum": consistencyNames}
	case fPlacement:
		return object{"enum": rules.Placements()}
	case fBudget:
		return percent
	case fWeights:
		return object{"type": "object", "additionalProperties": percent, "minProperties": 1, "maxProperties": maxWeights}
	case fOnFailure:
		share := object{"type": "object", "properties": object{"share": percent}, "required": []string{"share"}, "additionalProperties": false}
		return object{"anyOf": []object{{"enum": []string{"deny", "allow"}}, {"type": "string", "pattern": "^share:"}, share}}
	}
	return text
}

// anyCase returns a pattern of words in any letter case, as units are read.
func anyCase(words []string) string {
	var b strings.Builder
	for _, r := range strings.Join(words, "|") {
		if c := string(r); c == "|" {
			b.WriteString(c)
		} else {
			b.WriteString("[" + c + strings.ToUpper(c) + "]")
		}
	}
	return "^(" + b.String() + ")$"
}
