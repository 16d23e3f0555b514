package wire

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// idle is the message of a daemon with one shard and no changes.
func idle() gossip.Message {
	return gossip.Message{
		From: 0x1111111111111111, To: 0x2222222222222222, Shards: 1,
		Header: gossip.Header{
			Stamp: now, Rules: 0x3333333333333333, Ready: true,
			Nonce: 200_000_000, Echo: 190_000_000, Held: 60_000, // units of gossip.NonceUnit
		},
		Part: gossip.Part{Lo: 12_345, Hi: 12_345, Complete: true, Answers: true, Ack: 12_000},
	}
}

// example is a message that has something of everything.
func example() gossip.Message {
	minute := gossip.CellMeta{Rule: 7, WindowLength: 60_000, Carry: 60_000}
	second := gossip.CellMeta{Rule: 8, WindowLength: 1000, Regional: true}
	window := now.Millis() - 10_000
	id := func(incarnation crdt.Incarnation, kind gossip.Kind, key uint64, window int64) gossip.CellID {
		return gossip.CellID{Key: crdt.Key(key), Window: window, Kind: kind, Incarnation: incarnation}
	}
	m := idle()
	m.Lo, m.Complete, m.Unsent = 12_300, false, 70*time.Millisecond
	m.HasViews, m.Own = true, 120*time.Millisecond
	m.Staleness = []gossip.Staleness{{Region: 0xaaaa, Age: 300 * time.Millisecond}, {Region: 0xbbbb}}
	m.Cells = []gossip.Cell{
		{CellID: id(m.From, gossip.Daemon, 1, window), CellMeta: minute, Value: crdt.PN{P: 300, N: 2}},
		{CellID: id(m.From, gossip.Daemon, 2, window+9000), CellMeta: second, Value: crdt.PN{P: 1}},
		{CellID: id(m.From, gossip.Daemon, 2, window+10_000), CellMeta: second, Value: crdt.PN{P: 3}},
		{CellID: id(0xaaaa, gossip.RegionSum, 1, window), CellMeta: minute, Value: crdt.PN{P: 900}, Rate: 15},
	}
	m.Refused = []gossip.Refusal{
		{CellID: id(m.To, gossip.Daemon, 1, window+60_000), Reason: gossip.TooFarAhead},
		{CellID: id(m.To, gossip.Daemon, 2, window), Reason: gossip.NoRoom},
	}
	m.Digests = []gossip.BucketDigest{{Bucket: 0, Digest: 1}, {Bucket: 9, Digest: 2}}
	m.Repair = []uint16{3, 4}
	return m
}

// decodeFrame decodes a frame of the incarnations of idle.
func decodeFrame(frame []byte) ([]gossip.Message, error) {
	return new(Decoder).Decode(idle().From, idle().To, frame)
}

func mustEncode(t testing.TB, msgs ...gossip.Message) []byte {
	t.Helper()
	frame, err := Encode(nil, msgs)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}
