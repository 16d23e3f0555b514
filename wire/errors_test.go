package wire

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/prior"
)

// wantError compares the text of an error.
func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%s\n got %v\nwant %s", name, err, want)
	}
}

// TestEncodeErrors: what Decode would refuse is not sent.
func TestEncodeErrors(t *testing.T) {
	two := func(change func(first, second *gossip.Message)) []gossip.Message {
		msgs := shards(2, idle())
		change(&msgs[0], &msgs[1])
		return msgs
	}
	one := func(change func(m *gossip.Message)) []gossip.Message {
		m := example()
		change(&m)
		return []gossip.Message{m}
	}
	for _, test := range []struct {
		name string
		msgs []gossip.Message
		want string
	}{
		{"none", nil, "wire: no messages, want at least one"},
		{
			"itself", one(func(m *gossip.Message) { m.To = m.From }),
			"wire: message from 1111111111111111 to itself",
		},
		{
			"shards", one(func(m *gossip.Message) { m.Shards = 65 }),
			"wire: message of one of 65 shards, want 1 to 64",
		},
		{
			"header", two(func(_, b *gossip.Message) { b.Nonce++ }),
			"wire: message 1 differs from message 0 in what a frame holds once",
		},
		{
			"shard twice", two(func(_, b *gossip.Message) { b.Shard = 0 }),
			"wire: message 1 is of shard 0, want 1 to 1",
		},
		{
			"versions", one(func(m *gossip.Message) { m.Lo, m.Hi = 6, 5 }),
			"wire: shard 0: versions (6, 5] are none",
		},
		{
			"unsent", one(func(m *gossip.Message) { m.Unsent = -1 }),
			"wire: shard 0: age of -1ns or 120ms, want 0 or more",
		},
		{
			"age", one(func(m *gossip.Message) { m.Staleness[1].Age = -1 }),
			"wire: shard 0: age of -1ns, want 0 or more",
		},
		{
			"regions", one(func(m *gossip.Message) { slices.Reverse(m.Staleness) }),
			"wire: shard 0: regions are not ascending at 1",
		},
		{
			"too many regions", one(func(m *gossip.Message) { m.Staleness = make([]gossip.Staleness, 4097) }),
			"wire: frame of 4097 regions, want at most 4096",
		},
		{
			"digests", one(func(m *gossip.Message) { m.Digests[1].Bucket = 0 }),
			"wire: shard 0: digests are not ascending at 1",
		},
		{
			"kind", one(func(m *gossip.Message) { m.Cells[3].Kind = 5 }),
			"wire: shard 0: cell of kind 5, want at most 4",
		},
		{
			"cell twice", one(func(m *gossip.Message) { m.Cells[1] = m.Cells[0] }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2 " +
				"is there twice",
		},
		{
			"width", one(func(m *gossip.Message) { m.Cells[0].WindowLength = 0 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2: " +
				"width below 1 ms",
		},
		{
			"carry", one(func(m *gossip.Message) { m.Cells[0].Carry = -1 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2: " +
				"carry below 0 ms",
		},
		{
			"refund", one(func(m *gossip.Message) { m.Cells[0].Value.N = 301 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-301: " +
				"a daemon refunded more than it admitted",
		},
		{
			"reason", one(func(m *gossip.Message) { m.Refused[0].Reason = 0 }),
			"wire: shard 0: refusal for reason 0, want 1 to 3",
		},
		{
			"rights with a rate", one(func(m *gossip.Message) { m.Cells[3].Kind, m.Cells[3].Rate = gossip.Given, 1 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 given to 000000000000aaaa: 900-0: " +
				"rights with more than what was given",
		},
		{
			"level of a daemon", one(func(m *gossip.Message) { m.Cells[0].Level = 1 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2: " +
				"level of a bucket that it does not describe",
		},
		{
			"note", one(func(m *gossip.Message) { m.RightsMessages = []gossip.RightsMessage{{Kind: 9}} }),
			"wire: shard 0: rights message of kind 9, want 1 to 5",
		},
		{
			"load", one(func(m *gossip.Message) { m.Loads = []gossip.LoadReport{{Load: prior.Load{Offered: 1, Doubted: 2}}} }),
			"wire: shard 0: load 0: more hits than a load may have, or more doubted than offered",
		},
		{
			"loads", one(func(m *gossip.Message) { m.Loads = make([]gossip.LoadReport, gossip.MaxLoads+1) }),
			"wire: frame of 257 loads, want at most 256",
		},
		{
			"refused kind", one(func(m *gossip.Message) { m.Refused[1].Kind = 7 }),
			"wire: shard 0: refusal of kind 7, want at most 4",
		},
		{"too many cells", two(func(a, b *gossip.Message) {
			b.Cells = busy(MaxFrameCells, 1).Cells
			a.Cells = b.Cells[:1]
		}), "wire: frame of 65537 cells, want at most 65536"},
		{"too many refusals", one(func(m *gossip.Message) {
			m.Refused = make([]gossip.Refusal, MaxFrameCells+1)
		}), "wire: frame of 65537 refusals, want at most 65536"},
		{"too many bytes", shards(1, scattered(MaxFrameCells)), "wire: frame of 6274988 bytes, want at most 4194304"},
	} {
		dst := []byte("as it was")
		got, err := Encode(dst, test.msgs)
		wantError(t, test.name, err, test.want)
		if string(got) != "as it was" {
			t.Errorf("%s: beside the error there are bytes: %x", test.name, got)
		}
	}
}

// seal puts an envelope around a payload.
func sealFrame(from, to crdt.Incarnation, payload []byte) []byte {
	frame := make([]byte, sealSize, sealSize+len(payload))
	frame[0] = Version
	return reseal(from, to, append(frame, payload...))
}

// reseal makes version and checksum of a frame right.
func reseal(from, to crdt.Incarnation, frame []byte) []byte {
	frame[0] = Version
	SetCountsChecksum(from, to, frame)
	return frame
}

func TestEnvelopeErrors(t *testing.T) {
	frame := mustEncode(t, idle())
	change := func(i int, b byte) []byte {
		changed := bytes.Clone(frame)
		changed[i] = b
		return changed
	}
	for _, test := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"empty", nil, "wire: frame of 0 bytes, want at least 5"},
		{"short", frame[:4], "wire: frame of 4 bytes, want at least 5"},
		{"version", change(0, 1), "wire: frame of version 1, want 5, the only one known here"},
		{"short, of another version", []byte{9}, "wire: frame of version 9, want 5, the only one known here"},
		{"changed", change(8, 9), "wire: frame with checksum e8a6685a, want d096fc44: it was cut, changed or misdirected"},
		{"cut", frame[:18], "wire: frame with checksum 1153da10, want d096fc44: it was cut, changed or misdirected"},
		{"long", make([]byte, MaxFrameBytes+1), "wire: frame of 4194305 bytes, want at most 4194304"},
	} {
		msgs, err := decodeFrame(test.frame)
		wantError(t, test.name, err, test.want)
		if msgs != nil {
			t.Errorf("%s: beside the error there are messages: %v", test.name, msgs)
		}
	}
	var version *VersionError
	if _, err := decodeFrame(change(0, 1)); !errors.As(err, &version) || *version != (VersionError{Got: 1, Want: 5}) {
		t.Errorf("error of a version is %v", err)
	}
}
