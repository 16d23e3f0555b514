// Package wire turns messages between daemons into bytes and back.
//
// A frame is an envelope of fixed size and one protobuf message, PeerFrame of
// proto/rld/v1/peer.proto, which describes both. It holds what all shards of
// one daemon have to say to another at one instant, what they have in common
// once.
//
// The encoding is canonical: a list of messages has one frame, and Decode
// refuses every other. So equal states are equal bytes, and whoever encodes
// what was decoded gets the frame back. For the same reason an unknown field
// is refused; what a later version adds has another version number.
//
// Cells are written in columns, incarnations and metas once a frame; a cell in company
// costs its key and some three bytes. Fields are written and read by hand,
// straight from and into the messages: the generated code takes many forms of
// one frame, and needs a copy of it. The tests hold both to each other.
//
// What is said about rights and about strict keys travels in frames of its own,
// told apart by their first byte: see rights.proto and strict.proto there.
package wire
