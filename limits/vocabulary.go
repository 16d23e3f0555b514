package limits

import (
	"cmp"
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
)

// place is the maps of a file that may have a field, as a set of bits.
type place uint8

const (
	inFile place = 1 << iota
	inDefaults
	inDescriptor
	inLimit
	inReplaces
)

// String returns the place for messages: "inside rate_limit".
func (p place) String() string { return cmp.Or(placeNames[p], "inside rate_limit or defaults") }

// placeNames holds the names of single places.
var placeNames = map[place]string{
	inFile:       "at the top of the file",
	inDescriptor: "beside key and value",
	inLimit:      "inside rate_limit",
	inDefaults:   "inside defaults",
	inReplaces:   "in the list of replaces",
}

// fieldID is one field of the language.
type fieldID uint8

// The fields: the 16 of envoyproxy/ratelimit, then rld's own.
const (
	fDomain fieldID = iota
	fDescriptors
	fKey
	fValue
	fRateLimit
	fShadowMode
	fQuotaMode
	fDetailedMetric
	fValueToMetric
	fShareThreshold
	fMetadata
	fUnit
	fRequests
	fUnlimited
	fName
	fReplaces
	fDefaults
	fAlgorithm
	fBurst
	fMultiplier
	fScope
	fConsistency
	fPlacement
	fHome
	fBudget
	fWeights
	fOnFailure
	fCarryDebt
	fChargeDenied
	fieldCount
)

// firstOwn is the first field that envoyproxy/ratelimit does not have.
const firstOwn = fDefaults

// own reports whether envoyproxy/ratelimit does not have the field.
func (f fieldID) own() bool { return f >= firstOwn }

// String returns the name of the field in files.
func (f fieldID) String() string { return vocabulary[f].name }

// vocabulary is the name of every field and the places that may have it.
var vocabulary = [fieldCount]struct {
	name string
	at   place
}{
	fDomain:         {"domain", inFile},
	fDescriptors:    {"descriptors", inFile | inDescriptor},
	fKey:            {"key", inDescriptor},
	fValue:          {"value", inDescriptor},
	fRateLimit:      {"rate_limit", inDescriptor},
	fShadowMode:     {"shadow_mode", inDescriptor},
	fQuotaMode:      {"quota_mode", inDescriptor},
	fDetailedMetric: {"detailed_metric", inDescriptor},
	fValueToMetric:  {"value_to_metric", inDescriptor},
	fShareThreshold: {"share_threshold", inDescriptor},
	fMetadata:       {"metadata", inDescriptor},
	fUnit:           {"unit", inLimit},
	fRequests:       {"requests_per_unit", inLimit},
	fUnlimited:      {"unlimited", inLimit},
	fName:           {"name", inLimit | inReplaces},
	fReplaces:       {"replaces", inLimit},
	fDefaults:       {"defaults", inFile},
	fAlgorithm:      {"algorithm", inLimit | inDefaults},
	fBurst:          {"burst", inLimit | inDefaults},
	fMultiplier:     {"unit_multiplier", inLimit | inDefaults},
	fScope:          {"scope", inLimit | inDefaults},
	fConsistency:    {"consistency", inLimit | inDefaults},
	fPlacement:      {"placement", inLimit | inDefaults},
	fHome:           {"home", inLimit},
	fBudget:         {"overage_budget", inLimit | inDefaults},
	fWeights:        {"weights", inLimit | inDefaults},
	fOnFailure:      {"on_failure", inLimit | inDefaults},
	fCarryDebt:      {"carry_debt", inLimit | inDefaults},
	fChargeDenied:   {"charge_denied", inLimit | inDefaults},
}

// lookup returns the field of a name, and whether there is one.
func lookup(name string) (fieldID, bool) {
	for f := range fieldCount {
		if vocabulary[f].name == name {
			return f, true
		}
	}
	return 0, false
}

// namesAt lists the fields that a place may have.
func namesAt(at place) []string {
	var names []string
	for f := range fieldCount {
		if vocabulary[f].at&at != 0 {
			names = append(names, vocabulary[f].name)
		}
	}
	return names
}

// OwnFields lists the fields of a rate_limit that envoyproxy/ratelimit does not
// have.
func OwnFields() []string {
	var names []string
	for f := firstOwn; f < fieldCount; f++ {
		if vocabulary[f].at&inLimit != 0 {
			names = append(names, vocabulary[f].name)
		}
	}
	return names
}

// fieldName reads the key of a field. For an unknown one it adds a fault and
// returns false and the field that was likely meant, or fieldCount.
func (l *loader) fieldName(key *yamlpos.Node, at place) (fieldID, bool) {
	if key.Kind != yamlpos.Scalar {
		l.Errorf(key.Pos, "a field name is a word", "a field name that is %s", key.Kind)
		return fieldCount, false
	}
	v, ok := key.Resolve()
	name, text := v.(string)
	if !ok || !text {
		shown := "null"
		if key.Text != "" {
			shown = yamlpos.Quote(key.Text)
		}
		l.Errorf(key.Pos, fieldsOf(at), "the field name %s is not text", shown)
		return fieldCount, false
	}
	if f, ok := lookup(name); ok {
		return f, true
	}
	if l.Full() {
		l.Errorf(key.Pos, "", "unknown field")
		return fieldCount, false
	}
	meant, hint := guess(name, at)
	l.Errorf(key.Pos, hint, "unknown field %s", yamlpos.Quote(name))
	return meant, false
}

// guess returns the field that an unknown name was likely meant to be, or
// fieldCount, and a hint.
func guess(name string, at place) (fieldID, string) {
	best := suggest.Closest(name, namesAt(at))
	f, known := lookup(best)
	switch {
	case known && strings.EqualFold(name, best):
		return f, "write " + best + ": names are in lower case"
	case known:
		return f, "did you mean " + best + "?"
	}
	best = suggest.Closest(name, namesAt(^place(0)))
	if f, known = lookup(best); known {
		return f, "did you mean " + best + ", which goes " + vocabulary[f].at.String() + "?"
	}
	return fieldCount, fieldsOf(at)
}

// fieldsOf lists the fields of a place for a hint.
func fieldsOf(at place) string {
	return "the fields " + at.String() + " are " + suggest.List(namesAt(at))
}
