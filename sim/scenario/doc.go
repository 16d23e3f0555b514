// Package scenario reads simulator runs from YAML, the language of
// docs/simulation.md, and holds the scenarios that come with the program.
//
// Parse compiles a file to a sim.Config, or returns an error that shows every
// fault with its line and column. Builtin and Source return scenarios that come
// with the program by name. Replay makes a run of recorded traffic.
package scenario
