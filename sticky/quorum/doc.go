// Package quorum stores the watermarks of strict keys at a majority of a
// region's strict voters.
//
// A key's watermark is the consumption up to which its owner may have granted
// rights. Before the owner consumes more, a majority must have the new
// watermark on disk, so that the next owner can count it:
//
//	owner: Proposer                      strict voters: Acceptor
//	  Want(watermarks)                      a       b       c
//	  Accepts --- Accept(ballot, w) ------->|------>|------>|
//	                                       Ready: store, then Stored
//	  Accepted <--- Accepted(ok) -----------|-------|
//	  Held() = w                          majority
//
// A new owner takes a higher ballot. A voter refuses it until the owner knows
// all watermarks that the voter holds under other ballots, so one exchange
// serves as both phases of Paxos. The former owner then fails to get a majority
// and can only finish hits below watermarks it already holds, which the new
// owner has counted as consumed.
//
// An Acceptor is a pure state machine: Receive and Tick change it, Ready
// returns entries to store and messages to send. Messages that depend on a
// store are returned only after Stored.
//
// Invariants:
//
//   - An acceptor never accepts a ballot below the one it promised.
//   - An accepted watermark stays stored until its window has ended everywhere.
//   - An acceptor that lost its disk does not vote until it has copied the
//     state of all other voters (snapshot requests and chunks), and its earlier
//     votes no longer count: its store number distinguishes them.
//   - A change of layout seals the old one first: a voter of the new layout
//     votes only after it has copied from a majority of the old voters of
//     every region.
//
// References: Lamport, "Paxos made simple" (2001); Lamport, Malkhi and Zhou,
// "Vertical Paxos and primary-backup replication" (2009).
package quorum
