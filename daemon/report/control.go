package report

import "github.com/georld/rld/control"

// Control is the control log of a daemon. Implementations are safe for
// concurrent use.
type Control interface {
	// State returns the current state.
	State() ControlState
	// Do runs a function on the node and makes it send soon. It returns false
	// if the log is not open.
	Do(by func(*control.Node)) bool
}

// ControlState is the state of the control log of a daemon.
type ControlState struct {
	Status control.Status
	// Record is nil before the founding.
	Record *control.Record
	// Founders are those in the settings. Durable reports that the daemon has a
	// folder.
	Founders []string
	Durable  bool
	// Fault is why the log is not open, "" if it is.
	Fault string
	// Differ describes a daemon with other founders in its settings, "" for
	// none.
	Differ string
	// Events counts the events by the name of their kind.
	Events map[string]uint64
}
