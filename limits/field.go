package limits

import "strings"

// place is where in a file a field may stand, as a set of bits.
type place uint8

const (
	inFile place = 1 << iota
	inDefaults
	inDescriptor
	inLimit
	inReplaces
)

// String says where, for messages: "inside rate_limit".
func (p place) String() string {
	switch p {
	case inFile:
		return "at the top of the file"
	case inDescriptor:
		return "beside key and value"
	case inLimit:
		return "inside rate_limit"
	case inDefaults:
		return "inside defaults"
	case inReplaces:
		return "in the list of replaces"
	}
	return "inside rate_limit or defaults"
}

// fieldID is one word of the vocabulary.
type fieldID uint8

// The vocabulary: upstream's 16 names, then ours.
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

// firstOwn is the first name that upstream does not know.
const firstOwn = fDefaults

// own reports whether the field is one of ours.
func (f fieldID) own() bool { return f >= firstOwn }

// String returns the name as files have it.
func (f fieldID) String() string { return vocabulary[f].name }

// vocabulary is every field name and where it may stand.
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

// namesAt lists the names that may stand at a place.
func namesAt(at place) []string {
	var names []string
	for f := range fieldCount {
		if vocabulary[f].at&at != 0 {
			names = append(names, vocabulary[f].name)
		}
	}
	return names
}

// fieldName reads the key of a field of the language. It returns false, with
// the fault noted, for what is no name of it, and the field that was likely
// meant, fieldCount for none.
func (l *loader) fieldName(key *node, at place) (fieldID, bool) {
	if key.kind != scalar {
		l.errorf(key.pos, "a field name is a word", "a field name that is %s", key.kind)
		return fieldCount, false
	}
	v, ok := key.resolve()
	if !ok || v.kind != textValue {
		l.errorf(key.pos, "the fields "+at.String()+" are "+join(namesAt(at)), "the field name %s is not text",
			orNull(key.text))
		return fieldCount, false
	}
	if f, ok := lookup(v.s); ok {
		return f, true
	}
	if l.crowded() {
		l.errorf(key.pos, "", "unknown field")
		return fieldCount, false
	}
	meant, hint := guess(v.s, at)
	l.errorf(key.pos, hint, "unknown field %s", quote(v.s))
	return meant, false
}

// guess returns the field that an unknown name was likely meant to be,
// fieldCount for none, and a hint.
func guess(name string, at place) (fieldID, string) {
	if best := Closest(name, namesAt(at)); best != "" {
		f, _ := lookup(best)
		if strings.EqualFold(name, best) {
			return f, "write " + best + ": names are in lower case"
		}
		return f, "did you mean " + best + "?"
	}
	if best := Closest(name, namesAt(^place(0))); best != "" {
		f, _ := lookup(best)
		return f, "did you mean " + best + ", which goes " + vocabulary[f].at.String() + "?"
	}
	return fieldCount, "the fields " + at.String() + " are " + join(namesAt(at))
}

// orNull returns a scalar's text for a message.
func orNull(text string) string {
	if text == "" {
		return "null"
	}
	return quote(text)
}

// join lists words: "a, b and c".
func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
