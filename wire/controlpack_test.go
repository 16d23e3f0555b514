package wire

import (
	"bytes"
	"compress/flate"
	"errors"
	"strings"
	"testing"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// TestControlPacked compresses a payload if that is shorter, and rejects one
// that is compressed twice, becomes too large, or is not compressed.
func TestControlPacked(t *testing.T) {
	m := exampleControl()
	m.Base = []byte(strings.Repeat(`{"name":"us","weight":333333},{"request":"c590ca2cf5b6bdf9"}`, 5))
	frame := mustControl(t, m)
	var f rldv1.ControlFrame
	if err := decode(frame[sealSize:], &f); err != nil || len(f.Packed) == 0 || len(f.Base) > 0 || len(frame) > 200 {
		t.Fatalf("frame of %d bytes, %d of them compressed, %v", len(frame), len(f.Packed), err)
	}
	if got, err := decodeExample(frame); err != nil || !bytes.Equal(got.Base, m.Base) {
		t.Errorf("%+v, %v", got, err)
	}
	pack := func(payload []byte) []byte {
		var b bytes.Buffer
		w, err := flate.NewWriterDict(&b, flate.BestCompression, []byte(dictionary))
		if err == nil {
			_, err = w.Write(payload)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return bytes.TrimSuffix(b.Bytes(), lastBlock)
	}
	for name, packed := range map[string][]byte{
		"twice": pack(frame[sealSize:]), "large": pack(make([]byte, 10_000)), "garbage": {0xff, 1, 2}, "cut": f.Packed[:20],
		"no frame": pack([]byte{0xff}),
	} {
		if got, err := decodeExample(sealedControl(marshal(t, &rldv1.ControlFrame{Packed: packed}))); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	m.Base = bytes.Repeat([]byte("x"), 1_000) // more than mostInflated
	if frame = mustControl(t, m); len(frame) < 1_000 {
		t.Errorf("frame of %d bytes, want one that is not compressed", len(frame))
	}
}

// TestControlParts rejects a part of a statement that the frame declares the
// same, and an item that is neither an entry nor about a voter.
func TestControlParts(t *testing.T) {
	for i, f := range []*rldv1.ControlFrame{
		{State: 7, Since: 1, Store: 1},
		{State: 7, Since: 1, Changed: 1, Index: 1},
		{State: 7, Since: 9},
		{Flags: 1 << 6},
		{Flags: 1 << 8},
		{Header: []byte(`{"log":{"number":1,"random":"0000000000000002"}}`), Recovery: 1, Random: 2},
		{Flags: 1 << 7, Leader: make([]byte, 16)},
		{Leader: []byte{1}},
		{Entries: []*rldv1.ControlItem{{Region: "us"}}},
		{Entries: []*rldv1.ControlItem{{Daemon: []byte{1}}}},
		{Entries: []*rldv1.ControlItem{{Flags: 16}}},
	} {
		var format *FormatError
		if m, err := decodeExample(sealedControl(marshal(t, f))); !errors.As(err, &format) {
			t.Errorf("frame %d: %+v, %v", i, m, err)
		}
	}
}
