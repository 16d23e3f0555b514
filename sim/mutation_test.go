package sim

import (
	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// mutation is bugs for auditors to catch. Its rig wraps the steps of a world.
type mutation struct {
	reuseIncarnation bool // a restarted daemon counts under its former incarnation
	forgetful        bool // a daemon that lost its disk states that it never ran
	noUse            bool // accounts that a process hands on lack what it used
	oneRecord        bool // only the first record is ever stored
	generous         bool // transfers are greater than the donor was charged
	hasty            bool // weights follow the demand of the last periods
	early            bool // acceptors state to have stored before they have
	uncopied         bool // a layout is active before its voters have copied
	// strict returns the messages that a daemon gets in place of one.
	strict func(w *World, d *Daemon, m *sticky.Message) []*sticky.Message
	// rights returns other allotments than those of the agent.
	rights func(w *World, d *Daemon, agent node.Allotments) node.Allotments
}

// rig puts the mutation into a world that has not started.
func (m *mutation) rig(w *World) {
	plain := w.steps
	if m.uncopied {
		w.steps.layouts = func(d *Daemon) (active, announced *route.Layout) {
			if active, announced = plain.layouts(d); announced == nil {
				return active, nil
			}
			l := announced.Clone()
			l.Formers = nil
			return &l, nil
		}
	}
	if m.forgetful { // layouts have the store number of its new disk
		w.steps.layouts = func(d *Daemon) (active, announced *route.Layout) {
			if active, announced = plain.layouts(d); active == nil {
				return nil, nil
			}
			l := active.Clone()
			g := l.Region(d.Region)
			g.Generations = g.Generations.With(route.Generation{Voter: route.NameHash(d.Name), Generation: d.acceptor.Acceptor.Report().Generation})
			return &l, announced
		}
	}
	if m.strict != nil {
		w.steps.strict = func(d *Daemon, one *sticky.Message) (answers []sticky.Message) {
			for _, x := range m.strict(w, d, one) {
				answers = append(answers, plain.strict(d, x)...)
			}
			return answers
		}
	}
	if m.rights != nil {
		w.steps.allotments = func(d *Daemon, a node.Allotments) node.Allotments { return m.rights(w, d, a) }
	}
	if m.hasty {
		w.steps.agentRules = func(list []agent.Rule) []agent.Rule {
			for i := range list {
				list[i].Window = 0
			}
			return list
		}
	}
	if m.generous {
		w.steps.post = func(d *Daemon, out []gossip.Message) {
			embellish(out)
			plain.post(d, out)
		}
	}
	if started := map[*simdisk.Disk]bool{}; m.early {
		w.steps.writeLog = func(d *Daemon, entries []quorum.Entry) {
			if !started[d.disk] {
				started[d.disk] = true
				plain.writeLog(d, entries)
				return
			}
			d.serveAcceptor(w, d.acceptor.Stored(d.Instant(w.now).Mono, d.time(w.now), nil))
		}
	}
	if started := map[*simdisk.Disk]bool{}; m.oneRecord {
		w.steps.writeRecord = func(d *Daemon, s *agent.Stored) {
			if !started[d.disk] {
				started[d.disk] = true
				plain.writeRecord(d, s)
				return
			}
			d.serveAgent(w, d.agent.Stored(d.Instant(w.now).Mono, nil))
		}
	}
	if m.noUse {
		w.steps.handOn = func(l *replica.Leftover) { l.Accounts.Keys = nil }
	}
	w.auditors = watching(append(w.auditors.all, m.watch()))
}

// watch returns an auditor that changes machines whose process has crashed.
func (m *mutation) watch() *Auditor {
	return &Auditor{
		Down: func(d *Daemon) {
			if m.reuseIncarnation {
				d.starts = 0
			}
			if m.forgetful {
				d.ran = ""
			}
		},
	}
}

// embellish makes transfers greater on their way.
func embellish(msgs []gossip.Message) {
	for i := range msgs {
		for j := range msgs[i].Cells {
			if c := &msgs[i].Cells[j]; c.Kind == gossip.Given {
				c.Value.P += 20
			}
		}
	}
}
