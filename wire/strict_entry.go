package wire

import (
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// EncodeEntry appends the record of an acceptor's journal for an entry to dst
// and returns the extended slice. Exactly one field of the entry is set, and
// its names are UTF-8. It only reads the entry and keeps no part of it. The
// journal adds a checksum.
func EncodeEntry(dst []byte, entry *quorum.Entry) []byte {
	var e rldv1.StrictEntry
	if entry.Record != nil {
		e.Record = strictRecord(entry.Record)
	}
	if entry.Layout != nil {
		e.Layout = strictLayout(entry.Layout)
	}
	if entry.Next != nil {
		e.Next = strictLayout(entry.Next)
	}
	if m := entry.Meta; m != nil {
		e.Meta = &rldv1.StrictMeta{
			Generation: m.Generation, Writes: m.Writes, Voting: m.Voting, EndedMs: m.Ended,
			Generations: listOf(m.Generations, strictGeneration),
		}
	}
	out, err := deterministic.MarshalAppend(append(dst, StrictVersion), &e)
	if err != nil {
		panic("wire: an acceptor's entry has a name that is not UTF-8: " + err.Error())
	}
	return out
}

// DecodeEntry returns the entry of a record, which shares no memory with it.
// The lists of the entry may be in any order and of any length: an acceptor
// must be able to read its own records. The error is a *VersionError for a
// record of another release or a *FormatError.
func DecodeEntry(record []byte) (quorum.Entry, error) {
	switch {
	case len(record) == 0:
		return quorum.Entry{}, malformed("record of 0 bytes, want at least 1")
	case record[0] != StrictVersion:
		return quorum.Entry{}, &VersionError{Got: record[0], Want: StrictVersion}
	}
	var e rldv1.StrictEntry
	if err := decode(record[1:], &e); err != nil {
		return quorum.Entry{}, err
	}
	var entry quorum.Entry
	set := 0
	if e.Record != nil {
		r := strictRecordOf(e.Record)
		entry.Record = &r
		set++
	}
	for _, l := range []struct {
		from *rldv1.StrictLayout
		to   **route.Layout
	}{{e.Layout, &entry.Layout}, {e.Next, &entry.Next}} {
		if l.from != nil {
			layout := layoutOf(l.from)
			*l.to = &layout
			set++
		}
	}
	if m := e.Meta; m != nil {
		entry.Meta = &quorum.Meta{
			Generation: m.Generation, Writes: m.Writes, Voting: m.Voting, Ended: m.EndedMs,
			Generations: fromList(m.Generations, generationOf),
		}
		set++
	}
	if set != 1 {
		return quorum.Entry{}, malformed("entry with %d of its fields, want exactly one", set)
	}
	return entry, nil
}
