// Package sticky holds the messages that daemons exchange about strict keys,
// and the plain values in them.
//
// The hits of a strict key are counted in one place: its owner, one daemon of
// the key's home region. Other daemons lease rights from the owner until the
// window ends and admit hits from these without another round trip. The owner
// may die at any time, so it consumes a key's limit only up to a watermark that
// a majority of the region's strict voters has on disk:
//
//	lessee            owner                         strict voters
//	  | LeaseRequest    |                               |
//	  |---------------->|  Accept(ballot, watermark)    |
//	  |                 |------------------------------>|  store, sync
//	  |                 |         Accepted              |
//	  |                 |<------------------------------|
//	  |   LeaseGrant    |  (majority: consume below it) |
//	  |<----------------|                               |
//	  | LeaseRequest(Returned)                          |
//	  |---------------->|  unused rights come back      |
//
// The parts:
//
//   - sticky/route: the layout, and the owner of each key by it.
//   - sticky/quorum: proposer and acceptor of the watermarks (Paxos).
//   - sticky/lease: requests, grants and returns, at lessees and owners.
//
// Invariants, over all crashes, lost messages and changes of layout:
//
//   - The hits consumed of a window never exceed the limit: an owner consumes
//     only below its watermark, and a new owner counts the whole watermark of
//     its predecessors as consumed.
//   - No invariant rests on the clock of one daemon. Clocks decide only when a
//     window ends, and the median clock of a region's daemons when ended
//     watermarks are forgotten.
//
// The watermark is the high-water mark of a sequence, as in TiDB's timestamp
// oracle. Ballots are those of Paxos (Lamport, "Paxos made simple", 2001), and
// a change of voters seals the old layout as in Vertical Paxos (Lamport, Malkhi
// and Zhou, 2009).
package sticky
