package xds

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// metadata adds the metadata of a descriptor, in one line.
func (f *file) metadata(m *structpb.Struct, field string) {
	text, err := appendStruct(nil, m)
	if err != nil && f.fault == nil {
		f.fault = fmt.Errorf("%s: %w", field, err)
	}
	f.entry("metadata", string(text), field)
}

// appendStruct appends a map in the flow style of YAML, in the order of its
// keys. Messages nest at most maxNesting deep, and so do maps.
func appendStruct(b []byte, m *structpb.Struct) ([]byte, error) {
	var err error
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(m.GetFields())) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, quote(key)...), ": "...)
		if b, err = appendValue(b, m.GetFields()[key]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// appendValue appends a value in the flow style of YAML. One that is not set is
// null.
func appendValue(b []byte, v *structpb.Value) ([]byte, error) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return strconv.AppendBool(b, k.BoolValue), nil
	case *structpb.Value_NumberValue:
		return appendNumber(b, k.NumberValue)
	case *structpb.Value_StringValue:
		return append(b, quote(k.StringValue)...), nil
	case *structpb.Value_StructValue:
		return appendStruct(b, k.StructValue)
	case *structpb.Value_ListValue:
		var err error
		b = append(b, '[')
		for i, item := range k.ListValue.GetValues() {
			if i > 0 {
				b = append(b, ", "...)
			}
			if b, err = appendValue(b, item); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	return append(b, "null"...), nil
}

// appendNumber appends a number without an exponent, a whole one without a
// point.
func appendNumber(b []byte, n float64) ([]byte, error) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return b, fmt.Errorf("%v is no number that an answer can have", n)
	}
	return strconv.AppendFloat(b, n, 'f', -1, 64), nil
}
