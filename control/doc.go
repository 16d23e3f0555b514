// Package control replicates the control log: the regions of the cluster, its
// limits, and the voters of the log itself. No decision about a request waits
// for it.
//
// # The log orders and never proves
//
// A committed entry states which change comes next. It does not prove that a
// daemon has stopped to use rights that the entry moves: acknowledgements prove
// that (package quota/epoch), and the least amount counts until then.
//
// # Parts
//
//   - A Record is the value that the entries add up to. Every daemon keeps it.
//     Its Version is the recovery and the index of the last entry.
//   - A few durable daemons are voters. They run etcd's raft. Everybody else
//     follows: voters push committed entries, and daemons compare versions with
//     neighbors, also while there is no majority.
//   - A cluster begins with one founding, on which the founders agree by Paxos
//     in one ballot (L. Lamport, "The Part-Time Parliament", 1998): however
//     often and wherever an operator asks for it, there is one cluster.
//   - Limits are versions: rule sets, and overrides above them. What a change
//     lowers acts at each daemon that knows it. What it raises, or moves, is
//     pending until all regions have stored it, and then in force from a time
//     that an entry states. LimitsAgent.Effective returns the limits of a
//     moment.
//   - A recovery replaces a log whose majority is lost. It begins with the
//     record of one survivor, and the higher recovery wins everywhere.
//
// # Ids
//
// The id of a daemon is the hash of its public key. Streams prove it, so that a
// message belongs to the id of its stream. Each start is a run, and each
// durable write has a store number. If two runs of an id are live, or one whose
// disk lacks a write, the id is dead: nobody counts its messages, and an entry
// names it until its last window is over.
//
// # Duties of the caller
//
// A Node is a state machine: time and received messages are arguments, items to
// store and messages to send are results of Ready. The caller stores the items
// of Ready with one sync, calls Stored, and calls Ready again. Messages that
// depend on items come after them.
package control
