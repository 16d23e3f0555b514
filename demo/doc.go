// Package demo runs a whole cluster in one process to look at: real daemons of
// several regions with their real streams and membership over loopback, a
// network between the regions that delays and can be cut, clients that ask all
// the time, and an account of what was admitted against the limits.
//
// Run starts it from Options and keeps it going until its context ends, its
// time is over or somebody says quit. Commands (Parse, ReadScript) change the
// network, the daemons, the clients and the limits while it runs. What is to
// be seen goes out as a live table, as lines or as JSON.
//
// The account is the demo's own: it counts the answers that clients got, by
// the window that the answering daemon counted them in, over all regions. No
// daemon is asked for it, so a daemon that counts wrongly is found out.
package demo
