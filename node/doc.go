// Package node is one replica of the counters, without I/O. It connects the
// folds of quota, the replication of gossip, rights, and the leases of strict
// keys. The daemon and the simulator both drive it. Time, randomness and
// messages are arguments and results; there is no lock, goroutine or logger.
//
// # A call
//
// A call takes four steps:
//
//  1. A Matcher finds the rule of each descriptor and hashes its key, once for
//     all shards. The result is a Hit per descriptor.
//  2. Node.Probe decides each hit, and charges nothing. A hit passes two gates.
//     The estimate gate compares the known and the extrapolated usage with the
//     limit. The rights gate applies to limits with rights and admits only the
//     hits that this daemon's rights cover. The owner of a strict key decides
//     instead of the gates.
//  3. Decide combines the verdicts of the call and marks the hits to charge.
//  4. Node.Charge charges them and completes the statuses.
//
// One Node holds all keys, or the driver splits them over a power of two of
// Nodes by ShardOf. It then locks the shards of a call, in ascending order,
// around the last three steps.
//
// # Replication
//
// A Node with a region is one of many. Peers, Step and Tick are its inputs, and
// Ready returns its messages and events. LeaseReady returns those about strict
// keys, which StepLease handles.
package node
