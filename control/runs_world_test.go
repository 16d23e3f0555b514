package control

import "slices"

// ledger is the ground truth about the runs of all ids, and the messages that
// daemons counted.
type ledger struct {
	runs map[ID][]*runTruth // in the order of their first messages
	// counted are the runs that a node counted, of each id, the latest last.
	counted map[*Node]map[ID][]Run
	// unseen reports that a message of an old disk counted: its receiver did
	// not know of the later writes. The promises of the log end there.
	unseen bool
}

// runTruth is one run of an id.
type runTruth struct {
	run          Run
	began, store uint64 // the latest that it sent
}

func newLedger() ledger {
	return ledger{runs: map[ID][]*runTruth{}, counted: map[*Node]map[ID][]Run{}}
}

// sent notes a message that a daemon sends.
func (l *ledger) sent(s *Sender) {
	all := l.runs[s.ID]
	i := slices.IndexFunc(all, func(r *runTruth) bool { return r.run == s.Run })
	if i < 0 {
		i = len(all)
		l.runs[s.ID] = append(all, &runTruth{run: s.Run, began: s.Began})
	}
	r := l.runs[s.ID][i]
	r.store = max(r.store, s.Store)
}

// old reports whether the disk of a run lacks a write of an earlier one.
func (l *ledger) old(s *Sender) bool {
	for _, r := range l.runs[s.ID] {
		if r.run == s.Run {
			return false
		}
		if r.store > s.Began {
			return true
		}
	}
	return false
}

// receives hands a message to a daemon, and checks that it counts no message of
// an id that its record declares dead, and one run after the other of each id.
// A run that was displaced never counts again.
func (w *world) receives(to *machine, m *Message) {
	n, s := to.node, &m.Sender
	dead := n.Record() != nil && n.Record().DeadID(s.ID) != nil
	if err := n.Receive(w.now, w.now.Milliseconds(), m); err != nil {
		return
	}
	if n.Record() != nil && m.Cluster != 0 && m.Cluster != n.Record().Cluster.ID {
		return
	}
	if dead {
		w.t.Fatalf("at %v: %s counts a message of %v, which is dead", w.now, to.name, s.ID)
	}
	w.ledger.unseen = w.ledger.unseen || w.ledger.old(s)
	of := w.ledger.counted[n]
	if of == nil {
		of = map[ID][]Run{}
		w.ledger.counted[n] = of
	}
	runs := of[s.ID]
	switch i := slices.Index(runs, s.Run); {
	case i < 0:
		of[s.ID] = append(runs, s.Run)
	case i < len(runs)-1:
		w.t.Fatalf("at %v: %s counts run %v of %v again, after another one", w.now, to.name, s.Run, s.ID)
	}
}

// minority returns a durable daemon where the majority of the voters gave their
// ids up, nil where it did not.
func (w *world) minority() *machine {
	var any *machine
	live := map[ID]bool{}
	for _, m := range w.machines {
		live[m.node.ID()] = true
		if m.durable {
			any = m
		}
	}
	r := any.node.Record()
	votes := 0
	for _, v := range r.Voters {
		if !v.Learner && live[v.Daemon] {
			votes++
		}
	}
	if 2*votes > r.Voting() {
		return nil
	}
	return any
}
