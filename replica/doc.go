// Package replica is the process machine of rld: the decisions of a process
// that stand above its shards. It decides which calls wait for the owner of a
// strict key, how often they request leases and when they give up; which owners
// get requests at all (circuit breakers); in which frame a message travels and
// which part of the process receives it; that the acceptor and the rights agent
// store before they send; and that a refund token counts once.
//
// The package has no I/O, no lock and no clock. The daemon drives it with
// sockets, disks and timers, the simulator with virtual ones. Both run the same
// code, so a fault that the simulator finds here is a fault of the daemon.
//
//	call --> shard --> decided                        (most calls: not seen here)
//	           |
//	           +-- waits --> Waiters.Next --> Probe | Request | Charge
//	                            |                         |
//	                          Reach                  LeaseReady
//	                     (paths, breakers)                |
//	peer --> Decode --> Inbound.Deliver --> shards        v
//	                            |         acceptor     Route --> Outbox --> peer
//	                            |         rights agent
//
// A driver implements Receiver and Parts, the way from a frame to the parts of
// the process, and probes, charges and requests leases as Waiters.Next decides.
//
// The parts keep state of their own, and a driver with several goroutines
// guards them with three locks: one for a Process, one for an AcceptorLoop, one
// for a RightsLoop. A shard may be locked when one of these is taken, never the
// other way round. What shards read most, the Routes, is immutable and needs no
// lock.
package replica
