package wire

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// exampleRequest and exampleGrant are the messages of one forwarded call.
func exampleRequest() *sticky.Message {
	return &sticky.Message{
		From: 0x1111111111111111, To: 0x2222222222222222, Stamp: 1_800_000_000_000 << 16, Number: 3,
		Requests: []sticky.LeaseRequest{{
			ID: 40_000, Lessee: 0x1111111111111111, Owner: 0x2222222222222222,
			Key: 0x3333333333333333, Rule: 0x5555555555555555,
			Window: 1_800_000_000_000, Want: 1, Need: 1, Extra: 4, Returned: 1, Within: 50,
		}},
	}
}

func exampleGrant() *sticky.Message {
	return &sticky.Message{
		From: 0x2222222222222222, To: 0x1111111111111111, Stamp: 1_800_000_000_000 << 16, Number: 3,
		Grants: []sticky.LeaseGrant{{
			ID: 40_000, Owner: 0x2222222222222222, Round: 2,
			Key: 0x3333333333333333, Rule: 0x5555555555555555,
			Window: 1_800_000_000_000, Until: 1_800_000_060_000, Total: 21, Remaining: 79, Reset: 31_000,
		}},
	}
}

func mustStrict(t fataler, m *sticky.Message) []byte {
	frame, err := EncodeStrict(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// sealedStrict puts the envelope around any bytes.
func sealedStrict(payload []byte) []byte {
	frame := append([]byte{StrictVersion, 0, 0, 0, 0}, payload...)
	SetChecksum(frame)
	return frame
}

// fill sets every field that v has, however deep, to something that it may
// hold. It finds fields by itself, so that none can be forgotten. Lists are nil
// or not empty, as decoding makes them.
func fill(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[sticky.Ballot]() {
		b := v.Addr().Interface().(*sticky.Ballot)
		defer func() { b.Round = min(b.Round, sticky.MaxRound) }()
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, "items"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"eu-west", "us-east", "eu-west/eu-0", "ø", "a"}).Draw(t, "name"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		top := ^uint64(0) >> (64 - v.Type().Bits())
		if v.Type() == reflect.TypeFor[sticky.Reason]() {
			top = uint64(sticky.MaxReason)
		}
		v.SetUint(rapid.OneOf(rapid.Uint64Max(min(top, 300)), rapid.Uint64Max(top), rapid.Just(top)).Draw(t, "number"))
	case reflect.Int: // 32 bits on the wire
		v.SetInt(rapid.Int64Range(0, 1<<32-1).Draw(t, "number"))
	case reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Int64Range(-70, 70), rapid.Int64()).Draw(t, "number"))
	default:
		panic("nothing known to put into a " + v.Type().String())
	}
}

// ordered returns a list sorted, with each item once.
func ordered[S ~[]T, T any](list S, by func(a, b T) int) S {
	slices.SortFunc(list, by)
	return slices.CompactFunc(list, func(a, b T) bool { return by(a, b) == 0 })
}

func orderWatermarks(lists ...*sticky.Watermarks) {
	for _, watermarks := range lists {
		*watermarks = ordered(*watermarks, func(a, b sticky.Watermark) int { return cmp.Compare(a.Window, b.Window) })
	}
}

func orderRecords(records []sticky.Record) []sticky.Record {
	for i := range records {
		orderWatermarks(&records[i].Watermarks)
	}
	return ordered(records, func(a, b sticky.Record) int {
		return a.Key.Compare(b.Key)
	})
}

func orderPlaces(regions []route.Region, pins []route.Pin) ([]route.Region, []route.Pin) {
	for i := range regions {
		g := &regions[i]
		g.Replicas = ordered(g.Replicas, strings.Compare)
	}
	return ordered(regions, func(a, b route.Region) int { return strings.Compare(a.Name, b.Name) }),
		ordered(pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
}

func orderLayout(l *route.Layout) {
	for i := range l.Formers {
		for j := range l.Formers[i].Regions {
			g := &l.Formers[i].Regions[j]
			g.Replicas = ordered(g.Replicas, strings.Compare)
			if g.Name == "" {
				g.Name = "a"
			}
		}
	}
	for i := range l.Reserves {
		l.Reserves[i].New = ordered(l.Reserves[i].New, strings.Compare)
	}
	l.Regions, l.Pins = orderPlaces(l.Regions, l.Pins)
	for i := range l.Lost {
		l.Lost[i].Regions, l.Lost[i].Pins = orderPlaces(l.Lost[i].Regions, l.Lost[i].Pins)
	}
}

// genStrict draws any message that is valid.
func genStrict(t *rapid.T) *sticky.Message {
	m := new(sticky.Message)
	fill(t, reflect.ValueOf(m).Elem())
	for i := range m.Accepts {
		orderWatermarks(&m.Accepts[i].Known, &m.Accepts[i].Watermarks)
	}
	for i := range m.Accepted {
		orderWatermarks(&m.Accepted[i].Held)
	}
	m.SnapshotChunks, m.Layouts = m.SnapshotChunks[:min(len(m.SnapshotChunks), 1)], m.Layouts[:min(len(m.Layouts), 1)]
	for i := range m.SnapshotChunks {
		m.SnapshotChunks[i].Records = orderRecords(m.SnapshotChunks[i].Records)
	}
	for i := range m.Layouts {
		orderLayout(&m.Layouts[i])
	}
	return m
}

// genEntry draws an entry with exactly one of its fields.
func genEntry(t *rapid.T) quorum.Entry {
	var e quorum.Entry
	v := reflect.ValueOf(&e).Elem()
	fill(t, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "which")))
	return e
}
