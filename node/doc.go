// Package node is one replica without I/O: it glues the engines together and
// is the seam that the daemon and the simulator share. Time, randomness and
// (with the next release) the network are arguments; there is no lock, no
// goroutine and no logger in it.
//
// A question goes three steps. A Front finds the rule of each descriptor and
// hashes its key, once, whatever the number of shards; each Node probes the
// hits it owns; Decide joins the verdicts and says what to charge; each Node
// charges it. One Node holds all keys (Config.Shards = 1), or the driver
// splits them over a power of two of Nodes by key and locks those a call
// touches, in ascending order, around both steps.
package node
