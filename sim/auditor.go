package sim

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// Auditor watches a run with knowledge that no replica has. It must not change
// what it is shown, nor draw on the run's randomness.
type Auditor interface {
	// Name is the auditor's name in results: "overage".
	Name() string
	// Decided is called for each descriptor of each decision.
	Decided(w *World, d *Decided)
	// Stepped is called after each input to a daemon: a message, a tick, a
	// change of members. m is the message or nil, err what Step returned.
	Stepped(w *World, d *Daemon, m *gossip.Message, err error)
	// Happened is called for each event of a replica.
	Happened(w *World, d *Daemon, e gossip.Event)
	// Restarted is called when a daemon came up with a new node; Down when
	// it crashed or was lost, before its node is dropped.
	Restarted(w *World, d *Daemon)
	Down(w *World, d *Daemon)
	// Ended is called once at the end: after the liveness phase on a healed
	// core where the run has one (healed), else after the last event.
	Ended(w *World, healed bool)
	// Report returns what was found.
	Report() Audit
}

// Decided is one descriptor of one decision.
type Decided struct {
	At      time.Duration // virtual
	Instant node.Instant  // as the daemon's clocks read
	Daemon  *Daemon
	Key     crdt.Key
	Rule    *rules.Rule
	Limit   *rules.Limit
	Hits    uint64
	Allowed bool        // the whole call's decision: hits were admitted
	Status  node.Status // of the descriptor
}
