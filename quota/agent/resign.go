package agent

import (
	"cmp"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// maxResigned bounds the remembered resignations.
const maxResigned = 2 * epoch.MaxMembers

// Leave begins the end of the daemon: the next epoch of the region leaves it
// out, one epoch for all that leave. The daemon uses its rights until that is
// settled.
func (a *Agent) Leave() {
	a.leaving, a.ready = true, false
	a.changes++
}

// Left reports whether waiting for the others has an end: an epoch without this
// daemon is settled, or no daemon is left that may propose one.
func (a *Agent) Left() bool {
	top := newest(a.local)
	return top.Settled && !top.Epoch.Has(a.member) || !slices.ContainsFunc(a.links, func(l *link) bool {
		return l.local && l.ready && l.alive(a.at)
	})
}

// Resign ends the use of rights: the daemon uses no window that begins later,
// under any epoch. The resignation is stored, then sent, and the others need
// not wait for the horizon of the daemon. The next run of the daemon is another
// participant, which may use the windows from then on. Call it after the last
// call was decided, when Left is true or after a while.
func (a *Agent) Resign() {
	if a.resign != 0 || a.stamp == 0 {
		return
	}
	a.Leave()
	a.resign = a.local.Resign(a.now)
	a.disk.dirty = true
	a.version++
	a.log.Add(Resigned, "", "")
}

// Resigned reports whether the resignation is stored, and the live daemons of
// the region have it.
func (a *Agent) Resigned() bool {
	_, ok := a.members.resigned.of(a.member)
	return ok && !slices.ContainsFunc(a.links, func(l *link) bool {
		return l.local && l.alive(a.at) && !l.resigned
	})
}

// resignations are the participants of the region that resigned, ascending by
// ID, with the first window that each does not use any more.
type resignations []epoch.Retirement

// of returns the first window that a participant does not use any more.
func (r resignations) of(id uint64) (from int64, ok bool) {
	i, ok := r.find(id)
	if !ok {
		return 0, false
	}
	return r[i].From, true
}

func (r resignations) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(r, id, func(e epoch.Retirement, id uint64) int { return cmp.Compare(e.ID, id) })
}

// add adds the resignation of a participant, and reports whether it is new.
// Without room it drops one of a participant that no known epoch names.
func (r *resignations) add(e epoch.Retirement, local *epoch.Table) bool {
	if _, ok := r.find(e.ID); ok {
		return false
	}
	all := slices.Clone(*r) // messages share the slice
	if len(all) >= maxResigned {
		all = slices.DeleteFunc(all, func(o epoch.Retirement) bool { return !local.Named(o.ID) })
	}
	if len(all) >= maxResigned {
		return false
	}
	i, _ := all.find(e.ID)
	*r = slices.Insert(all, i, e)
	return true
}

// takeResigned takes the resignations of a message, and reports whether one is
// new. Only this daemon makes its own.
func (m *members) takeResigned(all []epoch.Retirement) (news bool) {
	for _, e := range all {
		news = e.ID != m.member && m.resigned.add(e, m.local) || news
	}
	return news
}
