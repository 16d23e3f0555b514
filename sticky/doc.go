// Package sticky says who is home of a strict key and how high its mark is.
//
// The hits of a strict key are counted in one place, its home: a daemon of its
// home region. So that the home may die, it consumes nothing before a majority
// of the region's replicas holds durably that it may: each replica keeps, of a
// ledger, the highest ballot it has promised and marks, up to which hits may
// have been consumed. Who takes over takes a higher ballot and counts all that
// is marked as consumed; a home that was taken over and does not know it can
// finish only what is marked already. No clock takes part in that (compare
// Vertical Paxos, Lamport, Malkhi, Zhou 2009; the marks are those of TiDB's
// timestamp oracle).
//
// Rights stay in package quota, and package node joins the two.
package sticky
