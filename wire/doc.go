// Package wire encodes and decodes the messages between daemons. There are four
// kinds of frames, recognized by their first byte: counts, messages about
// epochs of rights, messages about strict keys, and messages of the control
// log.
//
// Messages go through generated protobuf code (rights.proto, strict.proto and
// control.proto of proto/rld/v1) unless a measurement says otherwise. In those
// of the control log most fields are one JSON text, in the form in which
// package control stores them. The measurement does for counts. Most of their
// frames hold one or two cells, and nearly half of them would be tags and
// lengths; others hold thousands, and generated code would copy every column
// and allocate every list. Counts therefore have a layout of their own, encoded
// straight from and into the messages of package gossip: layout.go describes
// it, and docs/adr/0043-compact-frames.md has the decision and its numbers.
//
// A frame of counts holds the messages of all shards of one daemon at one
// instant, with their common fields once. Flags show which fields are there.
// Cells are written in columns, incarnations and descriptions once a frame. A
// cell costs its key and two or three bytes in a long frame; a frame of one
// cell is 26 bytes, and an answer without cells 22. Frames leave out the ends
// of their stream, and mostly the hash of the rules and the stamp, which the
// receiver has.
//
// This encoding is canonical: a list of messages has exactly one frame, and
// Decode rejects all others. So equal states are equal bytes, and encoding a
// decoded list returns the same frame. For the same reason unknown flags are
// rejected; an extension needs another version number.
package wire
