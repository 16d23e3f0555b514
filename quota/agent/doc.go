// Package agent implements the rights agent, a daemon's part in the epochs of
// package epoch. It decides which part of every window the daemon may use on
// its own. It also makes, stores and sends the daemon's promises, so that all
// daemons of all regions together never use more than the total.
//
// An Agent has two tables. In the regional table, the participants are the
// regions, and each daemon of a region votes. In the local table, the
// participants are the daemons of the region. Amounts of the first are parts
// per million of a rule's total, with own shares for rules whose demand
// differs. Those of the second are equal weights. The limit is in neither
// table: the caller passes the total in force, and the bound is the greatest
// total in force anywhere. docs/adr/0011 and 0012 describe the design.
//
// # Messages
//
// Each message lists the fingerprints of the sender's items, and carries items
// that the receiver lacks. So no single message is needed for progress, and an
// idle pair costs a few bytes. Inside a region all daemons send to all. Across
// regions the leader of each region sends: the daemon with the lowest name
// among those that are ready and alive. Two leaders at a time do no harm.
//
// # Safety and progress
//
// Safety depends on package epoch alone: on records that are stored before
// promises are sent, on an equal genesis, and on the statements of the operator
// (Start.First, Start.Fence, RetireRegion, RetireDaemon). Membership, leaders,
// demand and the time of proposals only decide how much of the rights is unused
// for a while.
//
// An epoch of regions needs the vote of every daemon in the region's epoch.
// While a daemon is dead whose share cannot be reclaimed, the weights of the
// regions stay as they are, and shares that are moving are unused. This ends
// after the horizon; in a region of one or two daemons, or without a horizon,
// when the daemon returns or with RetireDaemon. Windows begin and rights are
// used meanwhile.
package agent
