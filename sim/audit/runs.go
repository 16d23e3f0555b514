package audit

import (
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/sim"
)

// runs checks which messages of the control log count: none of an id that the
// record declares dead, and of each id one run after the other. A run that was
// displaced counts never again at that process, so no vote or acknowledgement
// of both a daemon and its clone does.
type runs struct {
	finding
	all     map[control.ID][]*run
	counted map[int]map[control.ID][]run // by process, the latest run last
	// unseen reports that a message counted whose sender has an old disk: its
	// receiver did not know of the later writes. The promises end there.
	unseen bool
}

// run is one run of an id.
type run struct {
	is           control.Run
	began, store uint64 // the latest that it sent, or that counted
}

func newRuns(f finding) runs {
	return runs{finding: f, all: make(map[control.ID][]*run), counted: make(map[int]map[control.ID][]run)}
}

// sent notes a message that a daemon sends.
func (r *runs) sent(d *sim.Daemon, s *control.Sender) {
	all := r.all[s.ID]
	i := slices.IndexFunc(all, func(o *run) bool { return o.is == s.Run })
	if i < 0 {
		i = len(all)
		r.all[s.ID] = append(all, &run{is: s.Run, began: s.Began})
	}
	o := r.all[s.ID][i]
	o.store = max(o.store, s.Store)
	if r.old(s) && d.ControlLog().Leads() { // it may be the only voter
		r.unseen = true
	}
}

// old reports whether the disk of a run lacks a write of an earlier one.
func (r *runs) old(s *control.Sender) bool {
	for _, o := range r.all[s.ID] {
		if o.is == s.Run {
			return false
		}
		if o.store > s.Began {
			return true
		}
	}
	return false
}

// received checks a message that a daemon received.
func (r *runs) received(d *sim.Daemon, m *control.Message, err error) {
	rec, s := d.ControlLog().Record(), &m.Sender
	if err != nil || rec != nil && m.Cluster != 0 && m.Cluster != rec.Cluster.ID {
		return
	}
	// The message itself may have brought the entry.
	r.check(rec == nil || rec.DeadID(s.ID) == nil || len(m.Entries) > 0 || m.Base != nil || len(m.Raft) > 0 || m.Founding != nil,
		"%s counts a message of %v, which is dead", d.Name, s.ID)
	r.unseen = r.unseen || r.old(s)
	of := r.counted[d.Process()]
	if of == nil {
		of = make(map[control.ID][]run)
		r.counted[d.Process()] = of
	}
	all := of[s.ID]
	i := slices.IndexFunc(all, func(o run) bool { return o.is == s.Run })
	if i < 0 {
		i = len(all)
		all = append(all, run{is: s.Run})
		of[s.ID] = all
	}
	all[i].began, all[i].store = s.Began, s.Store
	// A run that had written nothing when it counted has promised nothing here.
	// The run before it returns where only one of them is a member at a time.
	r.check(!slices.ContainsFunc(all[i+1:], func(o run) bool { return o.store > o.began }),
		"%s counts run %v of %v again, after another one", d.Name, s.Run, s.ID)
}
