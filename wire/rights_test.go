package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
)

// The generators of what package epoch has. Lists are nil or not empty, as
// decoding makes them.

func genID(t *rapid.T, what string) epoch.ID {
	return epoch.ID{
		Stamp:    hlc.Timestamp(rapid.Uint64Range(1, 1<<60).Draw(t, what)),
		Proposer: rapid.Uint64().Draw(t, what),
	}
}

// genIDs returns ascending IDs below top.
func genIDs(t *rapid.T, what string, top epoch.ID) []epoch.ID {
	var ids []epoch.ID
	for i := range rapid.IntRange(0, 3).Draw(t, what) {
		id := epoch.ID{Stamp: hlc.Timestamp(i + 1), Proposer: rapid.Uint64().Draw(t, what)}
		if id.Before(top) {
			ids = append(ids, id)
		}
	}
	return ids
}

func genEpochOf(t *rapid.T, id epoch.ID) epoch.Epoch {
	e := epoch.Epoch{ID: id, Horizon: rapid.Int64Range(0, epoch.MaxHorizon).Draw(t, "horizon")}
	n := rapid.IntRange(1, 4).Draw(t, "members")
	for i := range n {
		e.Members = append(e.Members, epoch.Member{
			ID: uint64(i) + 1, Amount: rapid.Uint64Range(0, epoch.Whole/4).Draw(t, "amount"),
			Diskless: rapid.Bool().Draw(t, "diskless"),
		})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "retired") {
		e.Retired = append(e.Retired, epoch.Retirement{
			ID: uint64(10 + i), From: rapid.Int64().Draw(t, "from"),
		})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "rows") {
		row := epoch.RuleShares{Rule: uint64(i) << 40}
		for range n {
			row.Shares = append(row.Shares, rapid.Uint32Range(0, epoch.Whole/4).Draw(t, "ppm"))
		}
		e.Rules = append(e.Rules, row)
	}
	return e
}

func genHeld(t *rapid.T) []epoch.ID {
	var held []epoch.ID
	for range rapid.IntRange(0, 3).Draw(t, "held") {
		held = append(held, genID(t, "held"))
	}
	slices.SortFunc(held, epoch.ID.Compare)
	return slices.Compact(held)
}

func genAck(t *rapid.T) epoch.Ack {
	a := epoch.Ack{
		ID: genID(t, "ack"), By: rapid.Uint64().Draw(t, "by"),
		From: rapid.Int64().Draw(t, "from"), Floor: rapid.Int64().Draw(t, "floor"), Held: genHeld(t),
	}
	a.Before = genIDs(t, "before", a.ID)
	for i := range rapid.IntRange(0, 2).Draw(t, "reaches") {
		a.Horizons = append(a.Horizons, epoch.Horizon{ID: uint64(i), Until: rapid.Int64().Draw(t, "until")})
	}
	return a
}

func genSection(t *rapid.T) agent.Section {
	s := agent.Section{Base: genID(t, "base"), Settled: genID(t, "settled")}
	for i := range rapid.IntRange(0, 3).Draw(t, "has") {
		s.Has = append(s.Has, uint64(i)<<32|rapid.Uint64Range(0, 1<<30).Draw(t, "has"))
	}
	if rapid.Bool().Draw(t, "claim") {
		s.Claim = &epoch.Claim{
			Base: genEpochOf(t, genID(t, "base")), From: rapid.Int64().Draw(t, "from"), Held: genHeld(t),
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "epochs") {
		s.Epochs = append(s.Epochs, genEpochOf(t, genID(t, "epoch")))
	}
	for range rapid.IntRange(0, 2).Draw(t, "acks") {
		s.Acks = append(s.Acks, genAck(t))
	}
	return s
}

func genRights(t *rapid.T) *agent.Message {
	m := &agent.Message{
		From: crdt.Incarnation(rapid.Uint64().Draw(t, "from")), To: crdt.Incarnation(rapid.Uint64().Draw(t, "to")),
		Region: "eu-west", Name: "eu-0", Stamp: hlc.Timestamp(rapid.Uint64().Draw(t, "stamp")),
		Member:  rapid.Uint64().Draw(t, "member"),
		Genesis: [2]uint64{rapid.Uint64().Draw(t, "g0"), rapid.Uint64().Draw(t, "g1")},
		Ready:   rapid.Bool().Draw(t, "ready"), Regions: genSection(t), Heard: rapid.Uint64().Draw(t, "heard"),
	}
	if rapid.Bool().Draw(t, "local") {
		m.Daemons, m.HasVotes = genSection(t), []uint64{0, 5}
		m.Leaving = rapid.Bool().Draw(t, "leaving")
		m.Diskless = rapid.Bool().Draw(t, "diskless")
		for range rapid.IntRange(0, 2).Draw(t, "votes") {
			m.Votes = append(m.Votes, epoch.Vote{
				Daemon: rapid.Uint64().Draw(t, "daemon"), Ack: genAck(t),
				Locals: append([]epoch.ID{{}}, genIDs(t, "locals", genID(t, "top"))...),
			})
		}
		m.Extension = &epoch.Extension{By: 1, To: 2, Under: genID(t, "under"), Until: rapid.Int64().Draw(t, "until")}
	}
	if rapid.Bool().Draw(t, "demand") {
		m.Period = rapid.Uint64Min(1).Draw(t, "period")
		for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
			m.Demand = append(m.Demand, agent.Demand{Rule: uint64(i) << 50, Hits: rapid.Uint64().Draw(t, "hits")})
		}
	}
	return m
}

func TestRightsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genRights(t)
		frame, err := EncodeRights([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		frame = bytes.TrimPrefix(frame, []byte("before"))
		if !IsRights(frame) {
			t.Fatal("not recognized")
		}
		got, err := DecodeRights(frame)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("got %+v\nwant %+v", got, m)
		}
		again, err := EncodeRights(nil, got)
		if err != nil || !bytes.Equal(again, frame) {
			t.Fatalf("encoded again: %v, %d bytes, want the same %d", err, len(again), len(frame))
		}
		if bad := rapid.IntRange(0, len(frame)*8-1).Draw(t, "bit"); true {
			frame[bad/8] ^= 1 << (bad % 8)
			if _, err := DecodeRights(frame); err == nil {
				t.Fatalf("bit %d changed, and taken", bad)
			}
		}
	})
}

func TestRightsRefused(t *testing.T) {
	m := &agent.Message{Region: "a", Name: "a1"}
	frame, err := EncodeRights(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if IsRights(nil) || IsRights([]byte{Version}) {
		t.Error("a frame of counters is taken for one of rights")
	}
	var version *VersionError
	if _, err := DecodeRights([]byte{Version, 0, 0, 0, 0, 0}); !errors.As(err, &version) {
		t.Errorf("frame of counters: %v", err)
	}
	var format *FormatError
	if _, err := DecodeRights(frame[:3]); !errors.As(err, &format) {
		t.Errorf("3 bytes: %v", err)
	}
	var sum *ChecksumError
	if _, err := DecodeRights(frame[:len(frame)-1]); !errors.As(err, &sum) {
		t.Errorf("cut: %v", err)
	}
	var size *SizeError
	if _, err := DecodeRights(make([]byte, MaxFrameBytes+1)); !errors.As(err, &size) {
		t.Errorf("large: %v", err)
	}
	m.Name = ""
	if out, err := EncodeRights([]byte{1}, m); !errors.As(err, &format) || len(out) != 1 {
		t.Errorf("message without a name: %v, %d bytes", err, len(out))
	}
}

func genRecord(t *rapid.T, part bool) epoch.Record {
	r := epoch.Record{
		Owner: rapid.Uint64().Draw(t, "owner"), Regional: part,
		Base: genEpochOf(t, epoch.ID{}), BaseFrom: rapid.Int64().Draw(t, "from"), BaseHeld: genHeld(t),
		Mine: []epoch.ID{{}}, Top: genID(t, "top"), Pruned: genID(t, "pruned"),
		Bounds: epoch.Bounds{Window: rapid.Int64().Draw(t, "label"), Horizon: rapid.Int64().Draw(t, "reach")},
	}
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		r.Epochs = append(r.Epochs, genEpochOf(t, genID(t, "epoch")))
		r.Acks = append(r.Acks, genAck(t))
	}
	r.Settled, r.SettledFrom, r.SettledHeld = genID(t, "settled"), rapid.Int64().Draw(t, "settled from"), genHeld(t)
	if r.Stopped = rapid.Bool().Draw(t, "stopped"); r.Stopped {
		r.Unknown = rapid.Int64().Draw(t, "unknown")
		r.Extended = rapid.SliceOfN(rapid.Int64(), 1, 3).Draw(t, "extended")
		for range rapid.IntRange(0, 2).Draw(t, "past") {
			p := epoch.Past{
				From: rapid.Int64().Draw(t, "from"), Counts: rapid.Int64().Draw(t, "counts"), Until: rapid.Int64().Draw(t, "until"),
				Amount: rapid.Uint64().Draw(t, "amount"), Weight: rapid.Uint64().Draw(t, "weight"), Total: rapid.Uint64().Draw(t, "total"),
			}
			for range rapid.IntRange(0, 2).Draw(t, "rules") {
				p.Rules = append(p.Rules, epoch.PastRule{Rule: rapid.Uint64().Draw(t, "rule"), Amount: rapid.Uint32().Draw(t, "amount")})
			}
			r.Past = append(r.Past, p)
		}
	}
	return r
}

func TestStoredRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &agent.Stored{
			Region: genRecord(t, true), Local: genRecord(t, false), Genesis: [2]uint64{1, 2},
			Number: rapid.Uint64().Draw(t, "number"),
		}
		data := EncodeStored(9, "eu-0", s)
		got, err := DecodeStored(data, 9, "eu-0")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("got %+v\nwant %+v", got, s)
		}
		bad := rapid.IntRange(0, len(data)*8-1).Draw(t, "bit")
		data[bad/8] ^= 1 << (bad % 8)
		if _, err := DecodeStored(data, 9, "eu-0"); err == nil {
			t.Fatalf("bit %d changed, and taken", bad)
		}
	})
}

func TestStoredRefused(t *testing.T) {
	s := &agent.Stored{Region: epoch.Record{Regional: true}}
	data := EncodeStored(9, "eu-0", s)
	other := bytes.Clone(data)
	other[storedAtVersion]++
	changed := bytes.Clone(data)
	changed[len(changed)-1] ^= 1
	for _, tt := range []struct {
		what    string
		data    []byte
		cluster uint64
		name    string
		kind    StoredKind
		says    string
	}{
		{"another cluster", data, 8, "eu-0", Foreign, "from another cluster: it names 0000000000000009, want 0000000000000008"},
		{"another daemon", data, 9, "eu-1", Foreign, `of daemon "eu-0", want that of "eu-1"`},
		{"empty", nil, 9, "eu-0", Truncated, "0 bytes, want at least 32"},
		{"half the head", data[:20], 9, "eu-0", Truncated, "20 bytes, want at least 32"},
		{"half", data[:40], 9, "eu-0", Truncated, fmt.Sprintf("40 bytes, want %d", len(data))},
		{"longer", append(bytes.Clone(data), 0), 9, "eu-0", Damaged, "bytes, want"},
		{"changed", changed, 9, "eu-0", Damaged, "checksum"},
		{"another release", other, 9, "eu-0", Foreign, "version 2, want 1"},
		{"another file", []byte("limits: []"), 9, "eu-0", Foreign, "no file of rights"},
	} {
		_, err := DecodeStored(tt.data, tt.cluster, tt.name)
		var is *StoredError
		if !errors.As(err, &is) || is.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.says)
		}
	}
}

// TestUnknownFields decodes messages of a later version, which has fields that
// are unknown here, as those without the fields.
func TestUnknownFields(t *testing.T) {
	later := protowire.AppendString(protowire.AppendTag(nil, 1_000, protowire.BytesType), "later")
	rapid.Check(t, func(t *rapid.T) {
		rights, strict := genRights(t), genStrict(t)
		frame, err := EncodeRights(nil, rights)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRights(sealedRights(append(frame[sealSize:], later...)))
		if err != nil || !reflect.DeepEqual(got, rights) {
			t.Errorf("%v\n got %+v\nwant %+v", err, got, rights)
		}
		of, err := DecodeStrict(sealedStrict(append(mustStrict(t, strict)[sealSize:], later...)))
		if err != nil || !reflect.DeepEqual(of, strict) {
			t.Errorf("%v\n got %+v\nwant %+v", err, of, strict)
		}
	})
}

func FuzzRights(f *testing.F) {
	frame, _ := EncodeRights(nil, &agent.Message{Region: "a", Name: "a1", Period: 1})
	f.Add(frame[sealSize:])
	gen := rapid.Custom(genRights)
	for seed := range 5 {
		frame, err := EncodeRights(nil, gen.Example(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame[sealSize:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := DecodeRights(sealedRights(payload))
		if err != nil {
			return
		}
		frame, err := EncodeRights(nil, m)
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		again, err := DecodeRights(frame)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, again, m)
		}
	})
}

func FuzzStored(f *testing.F) {
	f.Add(EncodeStored(1, "a", &agent.Stored{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeStored(data, 1, "a")
		if err != nil {
			return
		}
		again, err := DecodeStored(EncodeStored(1, "a", s), 1, "a")
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, again, s)
		}
	})
}

// sealedRights puts the envelope around a payload.
func sealedRights(payload []byte) []byte {
	frame := append(make([]byte, sealSize), payload...)
	frame[0] = RightsVersion
	SetChecksum(frame)
	return frame
}
