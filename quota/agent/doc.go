// Package agent is a daemon's part in the epochs of package epoch: which part
// of every label it may use by itself, and what it must promise, store and tell
// so that all daemons of the world together never use more than there is.
//
// An Office holds two tables: that of the regions, in which its region is the
// participant and each daemon of the region votes, and that of the daemons of
// its region, in which it is a participant itself. The amounts of the first
// are parts per million of a rule's total, with a row for each rule that is
// not shared as the regions are configured; those of the second are equal
// weights. The limit is in neither: who asks passes the total in force, and
// the bound is the greatest that is in force anywhere.
//
// # Messages
//
// Offices say what they have (a fingerprint of each item) with every message,
// and send what the other lacks; so nothing depends on a message to arrive, and
// an idle pair costs a few bytes. In a region all tell all. Across regions
// those speak that take themselves for the leader of theirs: the daemon with
// the lowest name among those that are ready and were heard. Two that think so
// do no harm.
//
// # What is safe, and what only makes progress
//
// Safety rests on package epoch alone: on what is stored before it is told, on
// the genesis being the same everywhere, and on the words of the operator
// (Start.First, Start.Fence, RetireRegion, RetireDaemon). Who is live, who
// leads, what the demand is and when something is proposed decide only how much
// of the rights is nobody's for a while.
//
// An epoch of regions needs the word of every daemon that is in its region's
// epoch. So while one is dead that nothing can take its share back from (of one
// or two daemons, or without a horizon, until it returns or RetireDaemon is
// called; of more, for the horizon), the weights of the regions stand still, and
// what was about to move is nobody's. Labels begin and rights are used all the
// same.
package agent
