package sim

import (
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// steps are the ways between a process and its machine: start values, and
// messages and writes on their way. A rig may wrap them before a run starts.
type steps struct {
	// genesis returns the layout that a daemon is configured with.
	genesis func(d *Daemon) route.Layout
	// allotments returns the allotments that the nodes of a process see.
	allotments func(d *Daemon, a node.Allotments) node.Allotments
	agentRules func([]agent.Rule) []agent.Rule
	// post sends the messages of the nodes of a daemon.
	post func(d *Daemon, out []gossip.Message)
	// strict delivers a message about strict keys and returns the answers.
	strict func(d *Daemon, m *sticky.Message) []sticky.Message
	// writeRecord replaces the record of a rights agent, writeLog appends
	// entries to the log of an acceptor.
	writeRecord func(d *Daemon, s *agent.Stored)
	writeLog    func(d *Daemon, entries []quorum.Entry)
	// transition notes that the breaker of an owner changed its state.
	transition func(d *Daemon, c replica.PathChange)
}

// plainSteps returns the steps of a run without a rig.
func (w *World) plainSteps() steps {
	return steps{
		genesis:     func(*Daemon) route.Layout { return w.cfg.FirstLayout() },
		allotments:  func(_ *Daemon, a node.Allotments) node.Allotments { return a },
		agentRules:  func(list []agent.Rule) []agent.Rule { return list },
		post:        w.post,
		strict:      func(d *Daemon, m *sticky.Message) []sticky.Message { return d.stepStrict(w, m) },
		writeRecord: func(d *Daemon, s *agent.Stored) { d.writeRecord(w, s) },
		writeLog:    func(d *Daemon, entries []quorum.Entry) { d.writeLog(w, entries) },
		transition:  func(_ *Daemon, c replica.PathChange) { w.breakers[c.To]++ },
	}
}
