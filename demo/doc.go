// Package demo runs a whole cluster in one process: real daemons of several
// regions with real streams and membership over loopback, a network between the
// regions with delays and partitions, clients, and an account of the admitted
// hits.
//
// Run starts it from Options and returns when its context ends, its time is
// over or the command quit is given. Commands (Parse, ReadScript) change the
// network, the daemons, the clients and the limits while it runs. The output is
// a live table, lines or JSON.
//
// The account belongs to the demo: it counts the answers that clients receive,
// by the window in which the answering daemon counted them, over all regions.
// It does not read the daemons' counters, so it detects a daemon that counts
// wrongly.
package demo
