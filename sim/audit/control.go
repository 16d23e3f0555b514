package audit

import (
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/sim"
)

// controlAuditor checks the control log: there is one cluster, daemons with one
// version have one record, a process never goes back, and a command whose
// result was reported stays in the record of its recovery.
type controlAuditor struct {
	finding
	cluster  control.Number
	hashes   map[control.Version]string
	versions []controlVersion // by Daemon.Index
	done     map[control.Number]control.Version
	latest   *control.Record
}

// controlVersion is the latest version of a process.
type controlVersion struct {
	process int
	version control.Version
}

func controlLog(a *sim.Auditor, t *truth) {
	c := &controlAuditor{
		finding: finding{a, t}, hashes: make(map[control.Version]string),
		versions: make([]controlVersion, len(t.world.Daemons())), done: make(map[control.Number]control.Version),
	}
	a.Controlled, a.Ended = c.controlled, c.ended
}

func (a *controlAuditor) controlled(d *sim.Daemon, results []control.Result) {
	for _, r := range results {
		if r.Err == nil {
			a.done[r.ID] = r.Version
		}
	}
	r := d.ControlLog().Record()
	if r == nil {
		return
	}
	is := &a.versions[d.Index]
	if is.process != d.Process() {
		*is = controlVersion{process: d.Process()}
	}
	if r.Version == is.version {
		return
	}
	a.check(r.Version.Compare(is.version) > 0, "%s goes from version %v to %v", d.Name, is.version, r.Version)
	is.version = r.Version
	if a.cluster == 0 {
		a.cluster = r.Cluster.ID
	}
	// Founders that lose their disks forget what they have promised.
	a.check(r.Cluster.ID == a.cluster || a.lostDisks(), "%s is in cluster %v, others in %v", d.Name, r.Cluster.ID, a.cluster)
	hash := r.Hash()
	if was, known := a.hashes[r.Version]; known {
		a.check(was == hash, "%s has version %v with hash %s, another daemon has it with %s", d.Name, r.Version, hash, was)
	}
	a.hashes[r.Version] = hash
	if a.latest == nil || r.Version.Compare(a.latest.Version) > 0 {
		a.latest = r
	}
}

// lostDisks reports whether the files of a daemon were lost or damaged.
func (a *controlAuditor) lostDisks() bool {
	return slices.ContainsFunc(a.world.Daemons(), (*sim.Daemon).LostDisk)
}

func (a *controlAuditor) ended(bool) {
	for id, at := range a.done {
		if a.latest == nil || a.latest.Version.Recovery != at.Recovery {
			continue // a recovery may drop it, and says so
		}
		o := a.latest.Outcome(id)
		a.check(o != nil && o.Version == at && o.Refused == "", "command %v was done at version %v, and version %v does not contain it", id, at, a.latest.Version)
	}
}
