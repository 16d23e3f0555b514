package wire

import "github.com/georld/rld/sticky/quorum"

// EncodeEntry appends the record of a replica's journal that holds the entry to
// dst and returns the extended slice. It only reads the entry, of which exactly
// one field is set, and keeps nothing. A checksum is for the journal to add.
func EncodeEntry(dst []byte, entry *quorum.Entry) []byte {
	e := encoder{b: append(dst, StrictVersion)}
	if entry.Record != nil {
		at := e.open(entryRecord)
		e.record(entry.Record)
		e.close(at)
	}
	if entry.Layout != nil {
		at := e.open(entryLayout)
		e.layout(entry.Layout)
		e.close(at)
	}
	if entry.Next != nil {
		at := e.open(entryNext)
		e.layout(entry.Next)
		e.close(at)
	}
	if entry.Meta != nil {
		at := e.open(entryMeta)
		e.meta(entry.Meta)
		e.close(at)
	}
	return e.b
}

// DecodeEntry returns the entry of a record, which shares nothing with it. It
// takes what EncodeEntry makes of an entry and nothing else, in whatever order
// and number the entry's lists hold their items: a replica must be able to read
// what it has written. The error is a *VersionError for a record of another
// release or a *FormatError.
func DecodeEntry(record []byte) (quorum.Entry, error) {
	switch {
	case len(record) == 0:
		return quorum.Entry{}, malformed("record of 0 bytes, want at least 1")
	case record[0] != StrictVersion:
		return quorum.Entry{}, &VersionError{Got: record[0], Want: StrictVersion}
	}
	d := decoder{part: -1}
	r := reader{d: &d, b: record[1:]}
	entry := quorum.Entry{
		Record: readOne(&r, entryRecord, readRecord),
		Layout: readOne(&r, entryLayout, readLayout),
		Next:   readOne(&r, entryNext, readLayout),
		Meta:   readOne(&r, entryMeta, readMeta),
	}
	set := 0
	for _, is := range [...]bool{entry.Record != nil, entry.Layout != nil, entry.Next != nil, entry.Meta != nil} {
		if is {
			set++
		}
	}
	switch r.end(); {
	case d.err != nil:
		return quorum.Entry{}, d.err
	case set != 1:
		return quorum.Entry{}, malformed("entry with %d of its fields, want exactly one", set)
	}
	return entry, nil
}

// readOne returns what a field holds, nil when it is left out.
func readOne[T any](r *reader, t tag, read func(*reader, *T)) *T {
	if list := readList(r, t, 1, read); list != nil {
		return &list[0]
	}
	return nil
}
