package report

// Limits are the limits that decide the calls of a daemon. Implementations are
// safe for concurrent use.
type Limits interface {
	// State returns the current state.
	State() LimitsState
}

// LimitsState is the state of the limits of a daemon.
type LimitsState struct {
	// Fault is why limits of the control log cannot be used, "" if they are.
	Fault string
	// Overruled are the domains of files that have other rules in the control
	// log: the files do not count there.
	Overruled []string
}
