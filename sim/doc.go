// Package sim runs a whole cluster of rld in one goroutine and in virtual time,
// from one seed: the node.Node and replica.Process that a daemon runs, a
// network that delays, loses and damages frames, wall clocks with faults,
// processes that crash, and clients.
//
// A run is a Config: a scenario read from YAML (package scenario), a run drawn
// from a seed (package swarm) or recorded traffic (scenario.Replay). Run plays
// it and returns a Result. A Config and its seed give the same events in the
// same order every time. RunTwice checks that by the hash of the trace.
//
//	cfg, _ := scenario.Builtin("region-loss")
//	result, err := sim.Run(cfg, sim.Options{Auditors: audit.All})
//
// Auditors (package audit) watch a run from outside and check its promises.
// They change nothing: a run has the same trace without them.
//
// The network, the faults, the load and each daemon draw from random streams of
// their own, so that a draw more in one place does not change the others.
// Frames are encoded and decoded by package wire.
//
// The files: world.go and heap.go hold the state and the events of a run,
// daemon.go, driver.go, calls.go, rights.go and strict.go drive the processes,
// network.go, clock.go and disk.go simulate machines, fault.go and members.go
// change the cluster, and run.go, liveness.go and result.go play a run and
// report on it.
package sim
