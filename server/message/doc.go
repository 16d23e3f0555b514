// Package message reads and writes the protobuf messages of the gRPC edges
// without reflection and almost without garbage, and keeps a malformed
// question in the hands of the edge, which can say what is wrong with it,
// where generated code can only fail.
//
// Scanner and the Append functions know the wire format and nothing of any
// message; Draft collects a call within the bounds of package node; Codec
// brings both to gRPC and leaves all other messages to the protobuf codec.
package message
