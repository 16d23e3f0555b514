package message_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/georld/rld/server/message"
)

// TestOpenClose nests messages of the lengths where the length prefix grows.
func TestOpenClose(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 16_383, 16_384, 2_097_151, 2_097_152} {
		body := bytes.Repeat([]byte{7}, n)
		got, outer := message.Open([]byte("head"), 1<<3|message.Len)
		got, inner := message.Open(got, 20<<3|message.Len)
		got = append(got, body...)
		got = message.Close(got, inner)
		got = message.AppendUint(got, 3<<3|message.Varint, 9)
		got = message.Close(got, outer)

		want := protowire.AppendTag(nil, 20, protowire.BytesType)
		want = protowire.AppendBytes(want, body)
		want = protowire.AppendVarint(protowire.AppendTag(want, 3, protowire.VarintType), 9)
		want = protowire.AppendBytes(protowire.AppendTag([]byte("head"), 1, protowire.BytesType), want)
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes: the messages are not nested as protowire nests them", n)
		}
	}
}

func TestAppend(t *testing.T) {
	var b []byte
	b = message.AppendUint(b, 1<<3, 0)
	b = message.AppendUint(b, 2<<3, 1<<63)
	b = message.AppendBool(b, 3<<3, false)
	b = message.AppendBool(b, 4<<3, true)
	b = message.AppendText(b, 5<<3|message.Len, "")
	b = message.AppendText(b, 6<<3|message.Len, "grüße")
	b = message.AppendText(b, 7<<3|message.Len, "a\xffb")
	b = message.AppendBytes(b, 8<<3|message.Len, nil)
	want := `2=9223372036854775808 4=1 6="grüße" 7="a` + "\ufffd" + `b" 8=""`
	if got := dump(string(b)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAppendDuration(t *testing.T) {
	for _, d := range []time.Duration{
		0, 1, time.Second, 90*time.Minute + 5, -time.Second, -1500 * time.Millisecond,
	} {
		b := message.AppendDuration(nil, 1<<3|message.Len, d)
		inner, err := proto.Marshal(durationpb.New(d))
		if err != nil {
			t.Fatal(err)
		}
		if want := protowire.AppendBytes([]byte{0x0a}, inner); !bytes.Equal(b, want) {
			t.Errorf("%s is %x, want %x", d, b, want)
		}
	}
}

func TestAppendTextKeepsLongTexts(t *testing.T) {
	long := strings.Repeat("x", 300)
	if got := dump(string(message.AppendText(nil, 1<<3|message.Len, long))); got != `1="`+long+`"` {
		t.Errorf("a text of 300 bytes became %s", got)
	}
}
