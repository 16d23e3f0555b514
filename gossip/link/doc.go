// Package link holds the streams between daemons. It carries frames as bytes
// and does not interpret them.
//
// # Streams
//
// Each daemon dials each peer and sends its frames on the stream that it
// dialed, so a pair of daemons has two bulk streams, one in each direction. In
// the opposite direction a stream carries the live members of the acceptor's
// region. From this list the daemons of other regions learn the addresses to
// dial (proto/rld/v1/link.proto). Beside a bulk stream, daemons of one region
// have a priority stream for short frames with a call waiting for them.
//
// # Admission
//
// TLS is mutual and proves that the other end belongs to the cluster (see
// Certificates). Then both ends send a hello with the public key and the run of
// their daemon, and prove with a signature that they have the key: see package
// control for ids. A stream is refused when the ends
// speak different versions, hash keys with different secrets, split keys into
// different numbers of shards, are the same daemon, or when another region
// answers than was dialed. The fingerprint of the secret protects against
// misconfiguration, not against attackers: every peer receives it. Peers with
// different rules are admitted with a warning.
//
// # Protection from peers
//
// A peer that does not read, is frozen or is gone costs a bounded queue: Send
// never waits, and frames that do not fit are dropped, since the protocol sends
// their content again. A stream without progress is ended and dialed anew.
// Frames are bounded in size and rate before they are decoded. A protocol error
// drops the stream, is counted and logged, and its sender must wait longer each
// time before it is admitted again. Each stream has its own goroutines, so that
// no peer waits for another.
package link
