// Package daemon wires one rld daemon together and runs it: the engine that
// splits a node over locked shards, the limits in force and their reload, and
// the listeners, started in order and stopped in the reverse one. It can be
// embedded: Run takes everything as Options and installs no signal handler.
package daemon
