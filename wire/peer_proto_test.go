package wire

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of peer.proto for tests, encoded by reflection and protowire,
// independent of the codec. The tag of a field is its line in peer.proto.
type (
	peerFrame struct {
		LastShard    uint32          `pb:"uint32 last_shard = 1"`
		Unready      bool            `pb:"bool unready = 2"`
		Nonce        uint64          `pb:"uint64 nonce = 3"`
		Echo         uint64          `pb:"uint64 echo = 4"`
		Held         uint64          `pb:"uint64 held = 5"`
		Parts        []*peerPart     `pb:"repeated PeerPart parts = 6"`
		Incarnations []uint64        `pb:"repeated fixed64 incarnations = 7"`
		Metas        []*peerCellMeta `pb:"repeated PeerCellMeta metas = 8"`
		Rules        uint64          `pb:"fixed64 rules = 9"`
		Stamp        uint64          `pb:"fixed64 stamp = 10"`
	}
	peerPart struct {
		Skipped        uint32               `pb:"uint32 skipped = 1"`
		Hi             uint64               `pb:"uint64 hi = 2"`
		Changed        uint64               `pb:"uint64 changed = 3"`
		Ack            uint64               `pb:"uint64 ack = 4"`
		Incomplete     bool                 `pb:"bool incomplete = 5"`
		UnsentMs       uint64               `pb:"uint64 unsent_ms = 6"`
		Views          *peerViews           `pb:"PeerViews views = 7"`
		Cells          []*peerCells         `pb:"repeated PeerCells cells = 8"`
		Refused        []*peerRefusals      `pb:"repeated PeerRefusals refused = 9"`
		Buckets        []uint32             `pb:"repeated uint32 buckets = 10"`
		Digests        []uint64             `pb:"repeated fixed64 digests = 11"`
		Repair         []uint32             `pb:"repeated uint32 repair = 12"`
		RightsMessages []*peerRightsMessage `pb:"repeated PeerRightsMessage rights_messages = 13"`
		NoViews        bool                 `pb:"bool no_views = 14"`
		Loads          *peerLoads           `pb:"PeerLoads loads = 15"`
	}
	peerLoads struct {
		Keys    []byte   `pb:"bytes keys = 1"`
		Windows []int64  `pb:"repeated sint64 windows = 2"`
		Offered []uint64 `pb:"repeated uint64 offered = 3"`
		Doubted []uint64 `pb:"repeated uint64 doubted = 4"`
		Others  []uint32 `pb:"repeated uint32 others = 5"`
	}
	peerRightsMessage struct {
		Kind           uint32 `pb:"uint32 kind = 1"`
		Key            []byte `pb:"bytes key = 2"`
		Window         int64  `pb:"sint64 window = 3"`
		Rule           uint64 `pb:"fixed64 rule = 4"`
		Rights         uint64 `pb:"uint64 rights = 5"`
		Second         uint64 `pb:"uint64 second = 6"`
		Need           uint64 `pb:"uint64 need = 7"`
		ForIncarnation uint32 `pb:"uint32 for_incarnation = 8"`
	}
	peerViews struct {
		OwnMs   uint64   `pb:"uint64 own_ms = 1"`
		Regions []uint32 `pb:"repeated uint32 regions = 2"`
		AgesMs  []uint64 `pb:"repeated uint64 ages_ms = 3"`
	}
	peerCells struct {
		Kind        uint32   `pb:"uint32 kind = 1"`
		Incarnation uint32   `pb:"uint32 incarnation = 2"`
		Keys        []byte   `pb:"bytes keys = 3"`
		More        []uint32 `pb:"repeated uint32 more = 4"`
		Metas       []uint32 `pb:"repeated uint32 metas = 5"`
		Windows     []int64  `pb:"repeated sint64 windows = 6"`
		Admitted    []uint64 `pb:"repeated uint64 admitted = 7"`
		Refunded    []uint64 `pb:"repeated uint64 refunded = 8"`
		Rates       []uint32 `pb:"repeated uint32 rates = 9"`
		Levels      []uint64 `pb:"repeated uint64 levels = 10"`
		Seen        []uint64 `pb:"repeated uint64 seen = 11"`
	}
	peerRefusals struct {
		Kind        uint32   `pb:"uint32 kind = 1"`
		Incarnation uint32   `pb:"uint32 incarnation = 2"`
		Keys        []byte   `pb:"bytes keys = 3"`
		Windows     []int64  `pb:"repeated sint64 windows = 4"`
		Reasons     []uint32 `pb:"repeated uint32 reasons = 5"`
	}
	peerCellMeta struct {
		Known        uint64 `pb:"uint64 known = 1"`
		Rule         uint64 `pb:"fixed64 rule = 2"`
		Minutes      uint64 `pb:"uint64 minutes = 3"`
		Seconds      uint64 `pb:"uint64 seconds = 4"`
		Millis       uint64 `pb:"uint64 millis = 5"`
		CarryWindows uint64 `pb:"uint64 carry_windows = 6"`
		CarryMillis  uint64 `pb:"uint64 carry_millis = 7"`
		Regional     bool   `pb:"bool regional = 8"`
		Window       int64  `pb:"sint64 window = 9"`
		WindowMillis int64  `pb:"sint64 window_millis = 10"`
		Number       uint64 `pb:"uint64 number = 11"`
	}
)

// TestPeerProto compares the messages above with peer.proto.
func TestPeerProto(t *testing.T) {
	text, err := os.ReadFile("peer.proto")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^(message \w+|  .+ = \d+;)`).FindAllString(string(text), -1)
	var got []string
	for _, v := range []any{peerFrame{}, peerPart{}, peerLoads{}, peerRightsMessage{}, peerViews{}, peerCells{}, peerRefusals{}, peerCellMeta{}} {
		got = append(got, "message P"+reflect.TypeOf(v).Name()[1:])
		for i := range reflect.TypeOf(v).NumField() {
			got = append(got, "  "+reflect.TypeOf(v).Field(i).Tag.Get("pb")+";")
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the messages of the tests are\n%s\nand peer.proto has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// pbField returns type and number of a field from its tag.
func pbField(f reflect.StructField) (kind string, number protowire.Number) {
	words := strings.Fields(strings.TrimPrefix(f.Tag.Get("pb"), "repeated "))
	if _, err := fmt.Sscan(words[3], &number); err != nil {
		panic(err)
	}
	return words[0], number
}

// appendPB appends a message; zero fields are left out.
func appendPB(b []byte, message any) []byte {
	v := reflect.ValueOf(message).Elem()
	for i := range v.NumField() {
		kind, number := pbField(v.Type().Field(i))
		switch f := v.Field(i); {
		case f.IsZero():
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Pointer:
			for j := range f.Len() {
				b = protowire.AppendTag(b, number, protowire.BytesType)
				b = protowire.AppendBytes(b, appendPB(nil, f.Index(j).Interface()))
			}
		case f.Kind() == reflect.Pointer:
			b = protowire.AppendTag(b, number, protowire.BytesType)
			b = protowire.AppendBytes(b, appendPB(nil, f.Interface()))
		case kind == "bytes":
			b = protowire.AppendTag(b, number, protowire.BytesType)
			b = protowire.AppendBytes(b, f.Bytes())
		case f.Kind() == reflect.Slice:
			var packed []byte
			for j := range f.Len() {
				packed = appendNumber(packed, kind, f.Index(j))
			}
			b = protowire.AppendTag(b, number, protowire.BytesType)
			b = protowire.AppendBytes(b, packed)
		default:
			wireType := protowire.VarintType
			if kind == "fixed64" {
				wireType = protowire.Fixed64Type
			}
			b = appendNumber(protowire.AppendTag(b, number, wireType), kind, f)
		}
	}
	return b
}

func appendNumber(b []byte, kind string, v reflect.Value) []byte {
	switch kind {
	case "bool":
		return protowire.AppendVarint(b, protowire.EncodeBool(v.Bool()))
	case "sint64":
		return protowire.AppendVarint(b, protowire.EncodeZigZag(v.Int()))
	case "fixed64":
		return protowire.AppendFixed64(b, v.Uint())
	}
	return protowire.AppendVarint(b, v.Uint())
}

// readPB decodes a message.
func readPB(b []byte, message any) error {
	v := reflect.ValueOf(message).Elem()
	for len(b) > 0 {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, wireType, b[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		value := b[n : n+size]
		b = b[n+size:]
		i := 0
		for i < v.NumField() {
			if _, at := pbField(v.Type().Field(i)); at == number {
				break
			}
			i++
		}
		if i == v.NumField() {
			return fmt.Errorf("unknown field %d", number)
		}
		if err := readField(value, wireType, v.Type().Field(i), v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func readField(value []byte, wireType protowire.Type, field reflect.StructField, f reflect.Value) error {
	kind, _ := pbField(field)
	if wireType != protowire.BytesType {
		readNumber(value, kind, f)
		return nil
	}
	content, _ := protowire.ConsumeBytes(value)
	switch {
	case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Pointer:
		item := reflect.New(f.Type().Elem().Elem())
		f.Set(reflect.Append(f, item))
		return readPB(content, item.Interface())
	case f.Kind() == reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
		return readPB(content, f.Interface())
	case kind == "bytes":
		f.SetBytes(bytes.Clone(content))
		return nil
	}
	for len(content) > 0 {
		item := reflect.New(f.Type().Elem()).Elem()
		n := readNumber(content, kind, item)
		if n < 0 {
			return protowire.ParseError(n)
		}
		f.Set(reflect.Append(f, item))
		content = content[n:]
	}
	return nil
}

// readNumber decodes one number and returns its size, below 0 for none.
func readNumber(b []byte, kind string, into reflect.Value) int {
	if kind == "fixed64" {
		v, n := protowire.ConsumeFixed64(b)
		into.SetUint(v)
		return n
	}
	v, n := protowire.ConsumeVarint(b)
	switch kind {
	case "bool":
		into.SetBool(protowire.DecodeBool(v))
	case "sint64":
		into.SetInt(protowire.DecodeZigZag(v))
	default:
		into.SetUint(v)
	}
	return n
}
