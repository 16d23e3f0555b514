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
// # Control log
//
// The record of the control log orders what the tables cannot: the genesis of
// both, the epochs of regions, the ends of regions, and the ids of daemons that
// are dead. Its caller passes it to Regions and Dead, and states with Confirm
// that it is current as of after the start. Epochs of regions are entries of
// the log: an agent that computes new shares returns them as Ready.Proposal.
// A participant is a generation of a region, or the id of a daemon: a region
// that is added again, and a daemon that lost its disk, is a new one.
// docs/adr/0026 describes this.
//
// # Safety and progress
//
// Safety depends on package epoch alone: on records that are stored before
// promises are sent, on an equal genesis, on Start.Found, and on the statements
// of the record about participants that ended. Membership, leaders, demand and
// the time of proposals only decide how much of the rights is unused for a
// while.
//
// An epoch of regions needs the vote of every daemon in the region's epoch.
// While a daemon is dead whose share cannot be reclaimed, the weights of the
// regions stay as they are, and nobody joins. This ends after the horizon; in a
// region of one or two daemons, or without a horizon, when the daemon returns
// or the record states that it is dead. Windows begin and rights are used
// meanwhile.
package agent
