// Package link holds the streams between daemons: it carries frames as bytes
// and knows nothing of what is in them.
//
// # Two streams a pair
//
// Each daemon dials each peer and sends its frames on the stream it dialed, so
// a pair of daemons has two streams, one each way. On the way back a stream
// carries the list of the live members of the acceptor's region, by which the
// daemons of other regions learn whom to dial (proto/rld/v1/link.proto).
//
// # Who is let in
//
// TLS is mutual and says that the other end belongs to the cluster (see TLS).
// Then both ends say hello, and a stream is refused when they speak different
// versions, hash keys with different secrets, split keys into different
// numbers of shards, are one daemon, or when another region answers than was
// dialed. The fingerprint of the secret guards against mistakes, not against
// thieves: it is told to whoever answers. Different rules are let in, and a
// warning says so.
//
// # What a peer can do to this daemon
//
// A peer that does not read, is frozen or is gone costs a bounded queue: Send
// never waits, and what does not fit is dropped, for the protocol sends it
// again. A stream on which nothing moves is ended and dialed anew. What a peer
// sends is bounded in size and rate before it is looked at; rubbish drops the
// stream, is counted and named, and its sender waits ever longer before it is
// let in again. Each stream has goroutines of its own, so that no peer waits
// for another.
package link
