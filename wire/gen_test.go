package wire

import (
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/prior"
	"github.com/georld/rld/hlc"
)

// The generators draw from small domains, so that incarnations, keys and metas
// meet, and now and then from all there is.

func genWord() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64Range(0, 4), rapid.Uint64Range(0, 1<<20), rapid.Uint64())
}

func genIncarnation() *rapid.Generator[crdt.Incarnation] {
	return rapid.Map(rapid.OneOf(rapid.Uint64Range(0, 6), rapid.Uint64()),
		func(n uint64) crdt.Incarnation { return crdt.Incarnation(n) })
}

func genWindow() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, 3), rapid.Int64Range(now.Millis()-100_000, now.Millis()+100_000), rapid.Int64())
}

func genCellID() *rapid.Generator[gossip.CellID] {
	return rapid.Custom(func(t *rapid.T) gossip.CellID {
		return gossip.CellID{
			Key:         crdt.Key(genWord().Draw(t, "key")),
			Window:      genWindow().Draw(t, "label"),
			Kind:        gossip.Kind(rapid.Uint8Range(0, uint8(gossip.MaxKind)).Draw(t, "kind")),
			Incarnation: genIncarnation().Draw(t, "incarnation"),
		}
	})
}

// genMeta draws from more metas than a table walks through.
func genMeta() *rapid.Generator[gossip.CellMeta] {
	return rapid.Custom(func(t *rapid.T) gossip.CellMeta {
		return gossip.CellMeta{
			Rule:         rapid.Uint64Range(0, 20).Draw(t, "rule"),
			WindowLength: rapid.SampledFrom([]int64{1, 1000, 60_000, math.MaxInt64}).Draw(t, "width"),
			Carry:        rapid.SampledFrom([]int64{0, 0, 1000, math.MaxInt64}).Draw(t, "carry"),
			Regional:     rapid.Bool().Draw(t, "regional"),
		}
	})
}

func genCell() *rapid.Generator[gossip.Cell] {
	return rapid.Custom(func(t *rapid.T) gossip.Cell {
		c := gossip.Cell{CellID: genCellID().Draw(t, "id"), CellMeta: genMeta().Draw(t, "meta")}
		c.Value.P = genWord().Draw(t, "p")
		c.Value.N = rapid.SampledFrom([]uint64{0, 0, 1, math.MaxUint64}).Draw(t, "n")
		switch c.Kind {
		case gossip.Daemon, gossip.Transferred:
			c.Value.N = min(c.Value.N, c.Value.P)
		case gossip.Given:
			c.Value.N = 0
		default:
			c.Rate = rapid.SampledFrom([]uint32{0, 7, math.MaxUint32}).Draw(t, "rate")
		}
		if c.Kind == gossip.Others && rapid.Bool().Draw(t, "of a bucket") {
			c.Level, c.Seen = max(genWord().Draw(t, "level"), 1), genWord().Draw(t, "seen")
		}
		c.Number = rapid.SampledFrom([]uint32{0, 0, 1, 2, math.MaxUint32}).Draw(t, "number")
		if c.Known = c.Number > 0 && rapid.Bool().Draw(t, "known"); c.Known {
			c.CellMeta, c.Window = gossip.CellMeta{}, rapid.Int64Range(0, gossip.BlockWindows-1).Draw(t, "place")
		}
		if c.Short = rapid.Bool().Draw(t, "short"); c.Short {
			c.Key = keyInFrame(&c) | crdt.Key(rapid.Uint64Range(0, 3).Draw(t, "first bits")<<48)
		}
		return c
	})
}

func genRightsMessage() *rapid.Generator[gossip.RightsMessage] {
	return rapid.Custom(func(t *rapid.T) gossip.RightsMessage {
		id := genCellID().Draw(t, "id")
		return gossip.RightsMessage{
			Kind: gossip.RightsMessageKind(rapid.Uint8Range(1, uint8(gossip.MaxRightsMessage)).Draw(t, "kind")),
			Key:  id.Key, Window: id.Window, Rule: genWord().Draw(t, "rule"),
			Rights: genWord().Draw(t, "rights"), Second: genWord().Draw(t, "second"),
			Need: genWord().Draw(t, "need"), For: genIncarnation().Draw(t, "for"),
		}
	})
}

func genLoad() *rapid.Generator[gossip.LoadReport] {
	return rapid.Custom(func(t *rapid.T) gossip.LoadReport {
		id := genCellID().Draw(t, "id")
		r := gossip.LoadReport{Key: id.Key, Window: id.Window, Others: rapid.Bool().Draw(t, "others")}
		r.Offered = rapid.Uint64Range(0, prior.MaxOffered).Draw(t, "offered")
		r.Doubted = rapid.Uint64Range(0, r.Offered).Draw(t, "doubted")
		return r
	})
}

// genSorted draws a list without two of a key, in the order of compare; nil
// when it is empty.
func genSorted[T any, K comparable](
	each *rapid.Generator[T], most int, key func(T) K, compare func(a, b T) int,
) *rapid.Generator[[]T] {
	return rapid.Map(rapid.SliceOfNDistinct(each, 0, most, key), func(list []T) []T {
		if len(list) == 0 {
			return nil
		}
		slices.SortFunc(list, compare)
		return list
	})
}

// genDuration draws whole milliseconds.
func genDuration() *rapid.Generator[time.Duration] {
	return rapid.Map(
		rapid.OneOf(rapid.Int64Range(0, 2), rapid.Int64Range(0, 100_000), rapid.Int64Range(0, maxMillis)),
		func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond })
}

func genBucket() *rapid.Generator[uint16] {
	return rapid.OneOf(rapid.Uint16Range(0, 5), rapid.Uint16())
}

func genPart() *rapid.Generator[gossip.Part] {
	refusal := rapid.Custom(func(t *rapid.T) gossip.Refusal {
		reason := rapid.SampledFrom([]gossip.Reason{gossip.TooFarAhead, gossip.NoRoom})
		return gossip.Refusal{CellID: genCellID().Draw(t, "id"), Reason: reason.Draw(t, "reason")}
	})
	behind := rapid.Custom(func(t *rapid.T) gossip.Staleness {
		return gossip.Staleness{Region: genIncarnation().Draw(t, "region"), Age: genDuration().Draw(t, "age")}
	})
	digest := rapid.Custom(func(t *rapid.T) gossip.BucketDigest {
		return gossip.BucketDigest{
			Bucket: genBucket().Draw(t, "bucket"), Digest: crdt.Digest(genWord().Draw(t, "digest")),
		}
	})
	return rapid.Custom(func(t *rapid.T) gossip.Part {
		p := gossip.Part{
			Hi:       genWord().Draw(t, "hi"),
			Complete: rapid.Bool().Draw(t, "complete"),
			Unsent:   genDuration().Draw(t, "unsent"),
			Answers:  rapid.Bool().Draw(t, "answers"),
			HasViews: rapid.Bool().Draw(t, "views"),
		}
		if p.Answers {
			p.Ack = min(genWord().Draw(t, "ack"), math.MaxUint64-1)
		}
		p.RightsMessages = rapid.SliceOfN(genRightsMessage(), 0, 4).Draw(t, "rightsMessages")
		if len(p.RightsMessages) == 0 {
			p.RightsMessages = nil
		}
		if p.Loads = rapid.SliceOfN(genLoad(), 0, 4).Draw(t, "loads"); len(p.Loads) == 0 {
			p.Loads = nil
		}
		p.Lo = p.Hi - min(p.Hi, genWord().Draw(t, "changed"))
		type name struct {
			gossip.CellID
			known uint32
			short bool
		}
		p.Cells = genSorted(genCell(), 40, func(c gossip.Cell) name { return name{c.CellID, knownNumber(&c), c.Short} },
			func(a, b gossip.Cell) int { return compareCells(&a, &b) }).Draw(t, "cells")
		p.Refused = genSorted(refusal, 5, func(r gossip.Refusal) gossip.CellID { return r.CellID },
			func(a, b gossip.Refusal) int { return a.CellID.Compare(b.CellID) }).Draw(t, "refused")
		if p.HasViews {
			p.Own = genDuration().Draw(t, "own")
			p.Staleness = genSorted(behind, 3, func(b gossip.Staleness) crdt.Incarnation { return b.Region },
				func(a, b gossip.Staleness) int { return compareInts(a.Region, b.Region) }).Draw(t, "behind")
		}
		p.Digests = genSorted(digest, 5, func(d gossip.BucketDigest) uint16 { return d.Bucket },
			func(a, b gossip.BucketDigest) int { return compareInts(a.Bucket, b.Bucket) }).Draw(t, "digests")
		p.Repair = genSorted(genBucket(), 5, func(b uint16) uint16 { return b },
			compareInts[uint16]).Draw(t, "repair")
		return p
	})
}

func compareInts[T uint16 | crdt.Incarnation](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// genMessages draws the messages of a frame as Decode returns them.
func genMessages() *rapid.Generator[[]gossip.Message] {
	return rapid.Custom(func(t *rapid.T) []gossip.Message {
		head := gossip.Message{
			From: genIncarnation().Draw(t, "from"),
			Header: gossip.Header{
				Stamp: hlc.Timestamp(rapid.OneOf(
					rapid.SampledFrom([]uint64{0, uint64(now)}), rapid.Uint64()).Draw(t, "stamp")),
				Rules: genWord().Draw(t, "rules"),
				Ready: rapid.Bool().Draw(t, "ready"),
				Nonce: genWord().Draw(t, "nonce"),
				Echo:  genWord().Draw(t, "echo"),
				Held:  genWord().Draw(t, "held"),
			},
		}
		head.To = genIncarnation().Filter(func(s crdt.Incarnation) bool { return s != head.From }).Draw(t, "to")
		head.Shards = rapid.SampledFrom([]int{1, 2, 5, MaxShards}).Draw(t, "shards")
		shards := rapid.SliceOfNDistinct(
			rapid.IntRange(0, head.Shards-1), 1, min(head.Shards, 4), rapid.ID[int]).Draw(t, "speaking")
		slices.Sort(shards)
		var msgs []gossip.Message
		for i, shard := range shards {
			m := head
			m.Shard = shard
			m.Part = genPart().Draw(t, "part")
			if i > 0 && rapid.Bool().Draw(t, "same views") {
				m.HasViews, m.Own, m.Staleness = msgs[i-1].HasViews, msgs[i-1].Own, slices.Clone(msgs[i-1].Staleness)
			}
			msgs = append(msgs, m)
		}
		return msgs
	})
}

// now is the clock of most messages, and the middle of most windows.
var now = hlc.New(1_800_000_000_000, 3)
