package sim

import (
	"slices"

	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/journal"
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
	// genesis changes the layout that a daemon is configured with. reconfigured
	// prefers it to the stored one.
	genesis      func(d *Daemon, l *route.Layout)
	reconfigured bool
	// strict returns the messages that a daemon gets in place of one.
	strict func(w *World, d *Daemon, m *sticky.Message) []*sticky.Message
	// rights returns other allotments than those of the agent.
	rights func(w *World, d *Daemon, agent node.Allotments) node.Allotments
}

// rig puts the mutation into a world that has not started.
func (m *mutation) rig(w *World) {
	plain := w.steps
	if m.genesis != nil {
		w.steps.genesis = func(d *Daemon) route.Layout {
			l := plain.genesis(d)
			m.genesis(d, &l)
			return l
		}
	}
	if genesis := w.steps.genesis; m.reconfigured {
		w.steps.genesis = func(d *Daemon) route.Layout {
			l := genesis(d)
			reconfigure(d, l)
			return l
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

// reconfigure puts a layout into the log of an acceptor that is about to start.
func reconfigure(d *Daemon, l route.Layout) {
	disk, found, err := journal.Open(journal.Config{
		Folder: d.mount, Name: replica.JournalFile, Owner: d.storage.Owner,
	})
	if err != nil {
		return
	}
	defer disk.Close()
	if len(found.Records) == 0 {
		return
	}
	stored, err := replica.Recover(found.Records)
	if err != nil {
		return
	}
	stored.Layout = l
	a, err := quorum.NewAcceptor(quorum.Config{Region: d.Region, Name: d.Name, Genesis: l}, quorum.Start{Stored: stored})
	if err == nil {
		_ = disk.Rewrite(slices.Values((&replica.AcceptorLoop{Acceptor: a}).Snapshot()))
	}
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
