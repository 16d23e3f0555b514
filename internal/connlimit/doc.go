// Package connlimit bounds the connections of a listener, so that callers
// without credentials use up neither the open files of a process nor its
// memory.
//
// A connection is unfinished until its handshake is complete. Unfinished
// connections have a bound of their own and little time: a connection that
// sends nothing competes with its like and never with an established one. The
// server of the connections calls Conn.Finish. Plan divides the open files of a
// process between its listeners.
package connlimit
