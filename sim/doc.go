// Package sim runs a whole cluster of rld in one goroutine and in virtual
// time, from one seed: the very node.Node that the daemon runs, a network that
// delays, loses and mangles, clocks that go wrong, daemons that die, clients
// that come too often, and auditors that know what no replica can.
//
// A run is a Config: a scenario read from YAML (ParseScenario, Builtin), a
// swarm run drawn from a seed (Draw) or a recorded trace (Replay). Run plays
// it and returns a Result. Nothing is left to chance: a Config and its seed
// give the same events in the same order every time, which RunTwice checks by
// the hash of the whole trace.
//
//	cfg, _ := sim.Builtin("region-loss")
//	result, err := sim.Run(cfg, sim.Options{})
//
// What is drawn comes from streams of their own (network, faults, load, each
// daemon), so that one draw more in one place does not reshuffle the others.
// What is sent goes through package wire, so the codec is simulated too.
package sim
