package rls

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// maxMetadataDepth bounds how deep a rule's metadata nests in an answer; what
// is deeper is sent as text. A level costs up to three messages within each
// other, and protobuf readers other than Go's give up at 100.
const maxMetadataDepth = 24

// metadata returns dynamic_metadata on the wire: the request as it was asked,
// and the metadata of the rules of all descriptors that passed.
func metadata(q *question) []byte {
	c := q.draft.Call
	fields := map[string]*structpb.Value{
		"domain":      text(c.Domain),
		"descriptors": descriptors(q),
	}
	if q.hits != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(q.hits))
	}
	merged := make(map[string]*structpb.Value)
	for i := range c.Statuses {
		if m := metadataOf(&c.Statuses[i], &c.Descriptors[i]); m != nil {
			merge(merged, structure(m, 0))
		}
	}
	if len(merged) > 0 {
		fields["metadata"] = structpb.NewStructValue(&structpb.Struct{Fields: merged})
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&structpb.Struct{Fields: fields})
	if err != nil {
		return nil // Only text that is no UTF-8 can fail, and text() lets none in.
	}
	return b
}

// metadataOf returns the metadata of the rule a descriptor passed, nil for
// one that is over, that an override stands in for, or that nothing limits.
func metadataOf(st *node.Status, d *rules.Descriptor) map[string]any {
	if st.Rule == nil || st.Limit == nil || st.Refuses() || d.Override.Unit != rules.NoUnit {
		return nil
	}
	return st.Rule.Metadata
}

// descriptors echoes the descriptors of a request.
func descriptors(q *question) *structpb.Value {
	c := q.draft.Call
	list := make([]*structpb.Value, len(c.Descriptors))
	for i := range c.Descriptors {
		d := &c.Descriptors[i]
		entries := make([]*structpb.Value, len(d.Entries))
		for j, e := range d.Entries {
			entries[j] = text(e.Key + "=" + e.Value)
		}
		fields := map[string]*structpb.Value{"entries": values(entries)}
		if d.Override.Unit != rules.NoUnit {
			fields["limit"] = text(overrideText(d.Override))
		}
		if q.draft.OwnHits(i) {
			fields["hitsAddend"] = structpb.NewNumberValue(float64(d.Hits))
		}
		list[i] = structpb.NewStructValue(&structpb.Struct{Fields: fields})
	}
	return values(list)
}

// overrideText writes an override as the text form of its message.
func overrideText(o rules.Override) string {
	unit := "unit:" + strings.ToUpper(o.Unit.String())
	if o.Requests == 0 {
		return unit
	}
	return "requests_per_unit:" + strconv.FormatUint(uint64(o.Requests), 10) + " " + unit
}

// merge adds the missing fields to into, map by map; present values stay.
func merge(into, from map[string]*structpb.Value) {
	for name, v := range from {
		have, ok := into[name]
		if !ok {
			into[name] = v
			continue
		}
		if a, b := have.GetStructValue(), v.GetStructValue(); a != nil && b != nil {
			merge(a.Fields, b.Fields)
		}
	}
}

func structure(m map[string]any, depth int) map[string]*structpb.Value {
	fields := make(map[string]*structpb.Value, len(m))
	for name, v := range m {
		fields[strings.ToValidUTF8(name, "\ufffd")] = value(v, depth+1)
	}
	return fields
}

// value converts any value that YAML can hold. What protobuf has no value for
// is sent as its text.
func value(v any, depth int) *structpb.Value {
	switch v := v.(type) {
	case nil:
		return structpb.NewNullValue()
	case bool:
		return structpb.NewBoolValue(v)
	case string:
		return text(v)
	case int:
		return structpb.NewNumberValue(float64(v))
	case int64:
		return structpb.NewNumberValue(float64(v))
	case uint64:
		return structpb.NewNumberValue(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return text(fmt.Sprint(v)) // Has no form in JSON, which gateways turn metadata into.
		}
		return structpb.NewNumberValue(v)
	case map[string]any:
		if depth < maxMetadataDepth {
			return structpb.NewStructValue(&structpb.Struct{Fields: structure(v, depth)})
		}
	case []any:
		if depth < maxMetadataDepth {
			list := make([]*structpb.Value, len(v))
			for i, e := range v {
				list[i] = value(e, depth+1)
			}
			return values(list)
		}
	}
	return text(fmt.Sprint(v))
}

func text(s string) *structpb.Value {
	return structpb.NewStringValue(strings.ToValidUTF8(s, "\ufffd"))
}

func values(list []*structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: list})
}
