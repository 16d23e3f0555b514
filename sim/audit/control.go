package audit

import (
	"maps"
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// controlAuditor checks the control log: there is one cluster, daemons with one
// version have one record, a process never goes back, no sound disk counts as
// an old one, and a command has one outcome: a reported result stays in the
// record, unless a recovery began before it.
type controlAuditor struct {
	finding
	promises promises
	runs     runs
	founders []*sim.Daemon
	cluster  control.Number
	hashes   map[control.Version]string
	versions []controlVersion // by Daemon.Index
	reported map[control.Number]control.Result
	began    map[control.Recovery]control.Version // Record.From of each recovery
	dropped  map[control.Number]map[int]bool      // commands, with Daemon.Index of those that dropped them
	latest   *control.Record
	limits   controlLimits
	regions  map[uint64]control.Region // by ID: as their first record had them
	ids      []control.ID              // by Daemon.Index: the latest of each
	removed  map[control.ID]bool       // by an operator
}

// controlVersion is the latest version of a process.
type controlVersion struct {
	process int
	version control.Version
	record  *control.Record
	// ended are the generations of its region that ended. returned is true from
	// when one of them is back, until the next new id.
	ended    []control.Version
	returned bool
}

func controlLog(a *sim.Auditor, t *truth) {
	c := &controlAuditor{
		finding: finding{a, t}, hashes: make(map[control.Version]string),
		versions: make([]controlVersion, len(t.world.Daemons())), reported: make(map[control.Number]control.Result),
		began: make(map[control.Recovery]control.Version), promises: newPromises(finding{a, t}), runs: newRuns(finding{a, t}),
		dropped: make(map[control.Number]map[int]bool), limits: controlLimits{finding{a, t}, make(map[string]*rules.Set), make(map[rules.ID]uint32)},
		regions: make(map[uint64]control.Region), ids: make([]control.ID, len(t.world.Daemons())), removed: make(map[control.ID]bool),
	}
	for _, d := range t.world.Daemons() { // before any of them has another name
		if slices.Contains(t.world.Config().Founders(), d.Name) {
			c.founders = append(c.founders, d)
		}
	}
	a.Controlled, a.Counted, a.Ended = c.controlled, c.runs.received, c.ended
}

func (a *controlAuditor) controlled(d *sim.Daemon, ready *control.Ready) {
	for _, r := range ready.Results {
		if a.runs.unseen {
			break
		}
		was, known := a.reported[r.ID]
		a.check(!known || was.Version == r.Version || was.Version.Recovery != r.Version.Recovery,
			"%s reports command %v at version %v, another daemon at %v", d.Name, r.ID, r.Version, was.Version)
		a.reported[r.ID] = r
	}
	r, is := d.ControlLog().Record(), &a.versions[d.Index]
	if is.process != d.Process() {
		*is = is.restarted(d, r)
	}
	for i := range ready.Events {
		a.event(d, &ready.Events[i])
	}
	a.ids[d.Index] = d.ControlLog().ID()
	for i := range ready.Messages {
		a.runs.sent(d, &ready.Messages[i].Sender)
		if !a.runs.unseen {
			a.promises.sent(d, &ready.Messages[i])
		}
	}
	if r == nil {
		return
	}
	if r.Version == is.version {
		return
	}
	if v := r.VoterOf(d.ControlLog().ID()); v != nil && !v.Learner && r.Voting() == 1 && d.ControlLog().Leads() && forgets(d) {
		a.runs.unseen = true // it asks nobody, nor its learners: nobody can notice what it forgot
	}
	for i := range r.Dead {
		if r.Dead[i].Stopped {
			a.removed[r.Dead[i].ID] = true
		}
	}
	if a.runs.unseen {
		return
	}
	a.check(r.Version.Compare(is.version) > 0, "%s goes from version %v to %v", d.Name, is.version, r.Version)
	a.drops(d, is.record, r)
	a.generations(d, is.record, r)
	is.returned = is.returned || is.follow(d.Region, r) && d.Diskless
	is.version, is.record = r.Version, r
	a.limits.changed(d, r)
	if a.cluster == 0 {
		a.cluster = r.Cluster.ID
	}
	a.check(r.Cluster.ID == a.cluster || a.forgotten(), "%s is in cluster %v, others in %v", d.Name, r.Cluster.ID, a.cluster)
	hash := r.Hash()
	if was, known := a.hashes[r.Version]; known {
		a.check(was == hash, "%s has version %v with hash %s, another daemon has it with %s", d.Name, r.Version, hash, was)
	}
	a.hashes[r.Version] = hash
	a.began[r.Version.Recovery] = r.From
	if a.latest == nil || r.Version.Compare(a.latest.Version) > 0 {
		a.latest = r
	}
}

// restarted returns the state of the next process of a daemon. Where its disk
// was full, it starts with an earlier record than the former process had.
func (v *controlVersion) restarted(d *sim.Daemon, r *control.Record) controlVersion {
	earlier := r != nil && v.record != nil && r.Version.Compare(v.version) < 0
	returned := earlier && v.follow(d.Region, r)
	return controlVersion{process: d.Process(), ended: v.ended, returned: returned}
}

// follow notes the end of the generation of a region in its next record, and
// reports whether one that ended is back.
func (v *controlVersion) follow(region string, next *control.Record) bool {
	if v.record == nil {
		return false
	}
	was, is := v.record.Region(region), next.Region(region)
	if was != nil && (is == nil || is.Generation != was.Generation) {
		v.ended = append(v.ended, was.Generation)
	}
	return is != nil && (was == nil || is.Generation != was.Generation) && slices.Contains(v.ended, is.Generation)
}

// event checks an event that only a fault of a disk explains, or none. An id
// that an operator removed ends in the same way. A daemon drops its record of
// rights with the generation of its region. Where the generation is back, by a
// recovery at a diskless one, or by a restart before its end was stored, the
// daemon joins it under a new id.
func (a *controlAuditor) event(d *sim.Daemon, e *control.Event) {
	switch e.Kind {
	case control.OldDisk:
		_, shared := d.LostDisk()
		is := &a.versions[d.Index]
		a.check(forgets(d) || shared || is.returned || a.removed[a.ids[d.Index]], "%s: %v: %s", d.Name, e.Kind, e.Text)
		is.returned = false
	case control.Diverged, control.Abstains:
		s := d.ControlLog().Status()
		a.check(a.runs.unseen || s.Unread > s.Reads, "%s: %v: %s", d.Name, e.Kind, e.Text)
	default:
	}
}

// generations checks that a generation of a region begins once, keeps its
// founders, and does not come back, and that the newest epoch shares out the
// rights among the present ones. was is the record before, nil for none.
func (a *controlAuditor) generations(d *sim.Daemon, was, is *control.Record) {
	present := make(map[uint64]bool, len(is.Regions))
	for i := range is.Regions {
		g := &is.Regions[i]
		id := g.ID()
		present[id] = true
		first, known := a.regions[id]
		if !known {
			a.regions[id], first = *g, *g
		}
		a.check(g.Horizon == first.Horizon && slices.Equal(g.Founders, first.Founders),
			"%s has generation %v of region %s with other founders than before", d.Name, g.Generation, g.Name)
		if was == nil || was.Version.Recovery != is.Version.Recovery {
			continue
		}
		o := was.Region(g.Name)
		a.check(o != nil && o.Generation == g.Generation || !was.Contains(g.Generation),
			"%s has generation %v of region %s again: it was not in version %v", d.Name, g.Generation, g.Name, was.Version)
	}
	e, err := is.Newest()
	for _, m := range e.Members {
		a.check(present[m.ID], "the newest epoch of version %v has the member %016x, and no region has this generation", is.Version, m.ID)
	}
	a.check(err == nil && len(e.Members) == len(present), "version %v has %d regions, and its newest epoch %d members: %v",
		is.Version, len(present), len(e.Members), err)
}

// drops notes the commands that a daemon drops when it follows a recovery. One
// without a disk, or whose disk fails, may end before it reports them.
func (a *controlAuditor) drops(d *sim.Daemon, was, is *control.Record) {
	if was == nil || was.Version.Recovery == is.Version.Recovery || slices.Contains(a.world.Config().Diskless, d.Name) ||
		d.ControlLog().Status().Failing != "" {
		return
	}
	for _, c := range was.History {
		if !is.Contains(c.Version) {
			if a.dropped[c.Request] == nil {
				a.dropped[c.Request] = make(map[int]bool)
			}
			a.dropped[c.Request][d.Index] = true
		}
	}
}

// keeps checks that the record of a daemon names the commands that the daemon
// dropped, or that it still has to report them: a report needs a leader. The
// liveness phase waits for the reports of a core that elects one.
func (a *controlAuditor) keeps(d *sim.Daemon) {
	if !d.Up || forgets(d) || len(a.dropped) > 50 || d.ControlLog().Record() == nil {
		return
	}
	r, left := d.ControlLog().Record(), 0
	if len(a.dropped) > 0 { // a status takes long in large clusters
		left = d.ControlLog().Status().Unreported
	}
	var unnamed []control.Number
	for _, id := range slices.Sorted(maps.Keys(a.dropped)) {
		named := slices.ContainsFunc(r.Dropped, func(c control.Command) bool { return c.Request == id })
		if a.dropped[id][d.Index] && !named && r.Outcome(id) == nil {
			unnamed = append(unnamed, id)
		}
	}
	a.check(len(unnamed) <= left, "%s dropped commands %v, which its record does not name, and has %d to report", d.Name, unnamed, left)
}

// forgotten reports whether a founder lost its disk, and with it its promises.
func (a *controlAuditor) forgotten() bool {
	return slices.ContainsFunc(a.founders, forgets)
}

// forgets reports whether a daemon may have lost stored state.
func forgets(d *sim.Daemon) bool {
	lost, _ := d.LostDisk()
	return lost
}

// contains reports whether the latest record has the entry of a version,
// through the recoveries that led to it.
func (a *controlAuditor) contains(at control.Version) bool {
	recovery, index := a.latest.Version.Recovery, a.latest.Version.Index
	for recovery.Number > at.Recovery.Number {
		from := a.began[recovery]
		recovery, index = from.Recovery, from.Index
	}
	return recovery == at.Recovery && at.Index <= index
}

// outdated reports whether the record may have forgotten the outcome of a
// command, of the rebalancer: it keeps the latest ones. Those of others are in
// the history, too.
func (a *controlAuditor) outdated(id control.Number, v control.Version) bool {
	if slices.ContainsFunc(a.latest.History, func(c control.Command) bool { return c.Request == id }) {
		return false
	}
	kept := 0
	oldest := v
	for i := range a.latest.Outcomes {
		if o := &a.latest.Outcomes[i]; o.Rebalanced {
			if kept == 0 {
				oldest = o.Version
			}
			kept++
		}
	}
	return kept == control.MaxRebalanced && oldest != v && v.Index < oldest.Index
}

func (a *controlAuditor) ended(bool) {
	if a.latest == nil || a.runs.unseen {
		return
	}
	for _, d := range a.world.Daemons() {
		a.keeps(d)
	}
	for _, id := range slices.Sorted(maps.Keys(a.reported)) {
		r := a.reported[id]
		if !a.contains(r.Version) {
			continue // a recovery drops it, and reports that
		}
		o := a.latest.Outcome(id)
		if o == nil && a.outdated(id, r.Version) {
			continue
		}
		a.check(o != nil && o.Version == r.Version && (o.Refused == "") == (r.Err == nil),
			"command %v was reported at version %v with error %v, and in version %v its outcome is %+v", id, r.Version, r.Err, a.latest.Version, o)
	}
	done := make(map[control.Number]bool)
	for _, c := range a.latest.History {
		o := a.latest.Outcome(c.Request)
		a.check(!done[c.Request] && (o == nil || o.Refused == "" && o.Version == c.Version),
			"command %v of version %v: done before %t, outcome %+v", c.Request, c.Version, done[c.Request], o)
		done[c.Request] = true
	}
}
