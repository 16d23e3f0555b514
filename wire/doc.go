// Package wire encodes and decodes the messages between daemons. There are four
// kinds of frames, recognized by their first byte: counts, messages about
// epochs of rights, messages about strict keys, and messages of the control
// log.
//
// Messages go through generated protobuf code (rights.proto, strict.proto and
// control.proto of proto/rld/v1) unless a measurement says otherwise. In those
// of the control log most fields are one JSON text, in the form in which
// package control stores them. The measurement does for counts: a
// frame holds thousands of cells, the generated code would copy every column
// and allocate every list, and it accepts several encodings of one frame.
// Counts are therefore encoded by hand, straight from and into the messages of
// package gossip. The decision and its numbers are in
// docs/adr/0020-one-codec-per-message.md.
//
// A frame of counts is an envelope of 5 bytes and one protobuf message,
// PeerFrame of peer.proto in this folder, which describes both. It holds the
// messages of all shards of one daemon at one instant, with their common fields
// once. Cells are written in columns, incarnations and metas once a frame; a
// cell costs its key and about three bytes. Most frames hold few cells, so what
// seldom changes is left out where the receiver knows it: the ends of the
// stream, and mostly the hash of the rules, the stamp and the ages of views.
//
// This encoding is canonical: a list of messages has exactly one frame, and
// Decode rejects all others. So equal states are equal bytes, and encoding a
// decoded list returns the same frame. For the same reason unknown fields are
// rejected; an extension needs another version number.
package wire
