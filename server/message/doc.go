// Package message reads and writes the protobuf messages of the gRPC edges
// without reflection and almost without garbage. A malformed question reaches
// the edge, which reports its fault, where generated code can only fail.
//
// Scanner and the Append functions implement the wire format and know no
// message; Draft collects a call within the bounds of package node; Codec
// connects both with gRPC and leaves all other messages to the protobuf codec.
package message
