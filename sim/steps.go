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
	// genesis returns the layout that a daemon is configured with, recover the
	// start of its acceptor.
	genesis func(d *Daemon) route.Layout
	recover func(d *Daemon) quorum.Start
	// allotments returns the allotments that the nodes of a process see.
	allotments func(d *Daemon, a node.Allotments) node.Allotments
	agentRules func([]agent.Rule) []agent.Rule
	// post sends the messages of the nodes of a daemon.
	post func(d *Daemon, out []gossip.Message)
	// strict delivers a message about strict keys and returns the answers.
	strict func(d *Daemon, m *sticky.Message) []sticky.Message
	// writeLog writes entries to the log of an acceptor.
	writeLog func(d *Daemon, entries [][]byte)
	// transition notes that the breaker of an owner changed its state.
	transition func(d *Daemon, c replica.PathChange)
}

// plainSteps returns the steps of a run without a rig.
func (w *World) plainSteps() steps {
	return steps{
		genesis:    func(*Daemon) route.Layout { return w.cfg.FirstLayout() },
		recover:    func(d *Daemon) quorum.Start { return d.startOf(w) },
		allotments: func(_ *Daemon, a node.Allotments) node.Allotments { return a },
		agentRules: func(list []agent.Rule) []agent.Rule { return list },
		post:       w.post,
		strict:     func(d *Daemon, m *sticky.Message) []sticky.Message { return d.stepStrict(w, m) },
		writeLog:   func(d *Daemon, entries [][]byte) { d.writeLog(w, entries) },
		transition: func(_ *Daemon, c replica.PathChange) { w.breakers[c.To]++ },
	}
}
