package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// members follows the live participants of the region's epochs.
type members struct {
	member uint64 // this daemon
	local  *epoch.Table
	// dead are the participants that the record states to be dead, ascending.
	dead []epoch.Retirement
	// seen is when each participant was alive last.
	seen map[uint64]time.Duration
	// differs is since when the live ones differ from the newest epoch, -1
	// while they do not.
	differs time.Duration
}

const (
	// joinAfter is how long a change must last before it is proposed.
	joinAfter = time.Second
	// leaveAfter is the same for a change with daemons that leave.
	leaveAfter = 200 * time.Millisecond
	// dropAfter is how long a daemon must be silent before an epoch leaves it
	// out. Its share is reclaimed a horizon after its last extension, so the
	// wait costs nothing, and a quick restart needs no epoch.
	dropAfter = 5 * time.Second
	// proposeEvery is the least time between two epochs of a table.
	proposeEvery = 2 * time.Second
)

// proposeDaemons proposes an epoch of the region's daemons, with equal weights,
// if the live ones differ from the newest epoch.
func (a *Agent) proposeDaemons() {
	m := &a.members
	live := m.live(a.at, a.ready, a.links)
	if !a.leading || !a.ready || a.at < a.resting[daemonTable] {
		m.differs = -1
		return
	}
	top := newest(a.local)
	want, retired := m.next(a.at, a.started, live, a.links)
	same := len(want) == len(top.Epoch.Members)
	for _, id := range want {
		same = same && top.Epoch.Has(id)
	}
	for _, r := range retired { // an epoch before this one may wait for it
		same = same && (top.Settled || slices.Contains(top.Epoch.Retired, r))
	}
	if same && !barren(a.local) {
		m.differs = -1
		return
	}
	if m.differs < 0 {
		m.differs = a.at
	}
	wait, pause := joinAfter, proposeEvery
	if slices.ContainsFunc(top.Epoch.Members, func(member epoch.Member) bool { return a.links.leaving(a.at, member.ID) }) {
		wait, pause = leaveAfter, proposeEvery/4 // they wait for it
	}
	if a.at-m.differs < wait || age(a.now, top.Epoch.ID) < pause || !m.remembers(want) {
		return
	}
	e := epoch.Epoch{Horizon: a.cfg.horizon(), Retired: retired}
	for _, id := range want {
		e.Members = append(e.Members, epoch.Member{ID: id, Amount: 1, Diskless: m.diskless(id, a.cfg.Diskless, &top, a.links)})
	}
	if strands(&top.Epoch, &e, live, refusing(a.at, live, a.links)) {
		return // until they are back, or left out
	}
	a.tryPropose(daemonTable, e, fmt.Sprintf("%d daemons instead of %d", len(want), len(top.Epoch.Members)))
	m.differs = -1
}

// diskless reports whether a participant has no disk, by its own message or the
// newest epoch. own is that of this daemon.
func (m *members) diskless(id uint64, own bool, top *epoch.EntryView, ls links) bool {
	if id == m.member {
		return own
	}
	for _, l := range ls {
		if l.local && l.member == id {
			return l.diskless
		}
	}
	return slices.ContainsFunc(top.Epoch.Members, func(m epoch.Member) bool { return m.ID == id && m.Diskless })
}

// live returns the participants that are ready and alive, ascending, and notes
// the time.
func (m *members) live(at time.Duration, ready bool, ls links) []uint64 {
	var live []uint64
	if ready {
		live = append(live, m.member)
	}
	for _, l := range ls {
		if l.local && l.ready && l.alive(at) {
			live = append(live, l.member)
		}
	}
	slices.Sort(live)
	live = slices.DeleteFunc(slices.Compact(live), func(id uint64) bool {
		_, dead := m.deadFrom(id)
		return dead
	})
	if len(m.seen) > 4*epoch.MaxMembers {
		clear(m.seen)
	}
	for _, id := range live {
		m.seen[id] = at
	}
	return live
}

// deadFrom returns from which window on a participant that is dead by the
// record holds nothing.
func (m *members) deadFrom(id uint64) (from int64, dead bool) {
	i, dead := slices.BinarySearchFunc(m.dead, id, func(r epoch.Retirement, id uint64) int { return cmp.Compare(r.ID, id) })
	if !dead {
		return 0, false
	}
	return m.dead[i].From, true
}

// next returns the members of the next epoch, ascending: the live participants,
// and the silent ones that may return. retired are the dead ones of all epochs
// that may be in force. While the shares of silent ones cannot be reclaimed,
// nobody joins and nobody is retired: such an epoch would not settle.
func (m *members) next(at, started time.Duration, live []uint64, ls links) (want []uint64, retired []epoch.Retirement) {
	top := newest(m.local)
	var pending []epoch.Retirement
	if !top.Settled {
		pending = top.Epoch.Retired
	}
	retired = m.retirements(pending)
	isRetired := func(id uint64) bool {
		return slices.ContainsFunc(retired, func(r epoch.Retirement) bool { return r.ID == id })
	}
	if !m.reclaimable(refusing(at, live, ls), isRetired) {
		for _, member := range top.Epoch.Members {
			if !ls.leaving(at, member.ID) { // one that leaves acknowledges the epoch
				want = append(want, member.ID)
			}
		}
		return want, pending
	}
	want = slices.DeleteFunc(slices.Clone(live), isRetired)
	for _, member := range top.Epoch.Members {
		id := member.ID
		if slices.Contains(live, id) || isRetired(id) || ls.leaving(at, id) {
			continue
		}
		seen, ok := m.seen[id]
		if gone := at - max(seen, started); !ok && at-started < dropAfter || ok && gone < dropAfter {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	return want[:min(len(want), epoch.MaxMembers)], retired
}

// retirements adds the dead participants to pending retirements that an epoch
// names which may be in force.
func (m *members) retirements(pending []epoch.Retirement) []epoch.Retirement {
	retired, settled := slices.Clone(pending), settledID(m.local)
	for i := range m.local.Len() {
		k := m.local.At(i)
		if k.Epoch.ID.Before(settled) {
			continue
		}
		for _, member := range k.Epoch.Members {
			from, dead := m.deadFrom(member.ID)
			j, known := slices.BinarySearchFunc(retired, member.ID, func(r epoch.Retirement, id uint64) int { return cmp.Compare(r.ID, id) })
			if dead && !known {
				retired = slices.Insert(retired, j, epoch.Retirement{ID: member.ID, From: from})
			}
		}
	}
	return retired[:min(len(retired), epoch.MaxMembers)]
}

// refusing returns a function that reports whether a participant acknowledges
// the next epoch, and so refuses the horizons of those that it leaves out: the
// live ones do, and those that leave.
func refusing(at time.Duration, live []uint64, ls links) func(id uint64) bool {
	return func(id uint64) bool { return slices.Contains(live, id) || ls.leaving(at, id) }
}

// strands reports whether a silent member of an epoch would keep its share for
// ever if it does not return, while others could reclaim that of the newest
// epoch: those that leave help no more. refuses is that of the newest epoch.
func strands(top, e *epoch.Epoch, live []uint64, refuses func(id uint64) bool) bool {
	return slices.ContainsFunc(e.Members, func(member epoch.Member) bool {
		id := member.ID
		remains := func(id uint64) bool { return slices.Contains(live, id) && e.Has(id) }
		return !slices.Contains(live, id) && top.Has(id) && top.Reclaimable(id, refuses) && !e.Reclaimable(id, remains)
	})
}

// reclaimable reports whether the shares of silent participants can be
// reclaimed: of every epoch that may be in force enough are left to refuse
// their horizons.
func (m *members) reclaimable(refuses func(id uint64) bool, retired func(id uint64) bool) bool {
	settled := settledID(m.local)
	for i := range m.local.Len() {
		k := m.local.At(i)
		if k.Epoch.ID.Before(settled) {
			continue
		}
		for _, member := range k.Epoch.Members {
			id := member.ID
			if !refuses(id) && !retired(id) && !k.Epoch.Reclaimable(id, refuses) {
				return false
			}
		}
	}
	return true
}

// remembers reports whether one of the participants is in the settled epoch: it
// knows the promises of the region, and joining daemons learn them from it.
func (m *members) remembers(want []uint64) bool {
	s, _ := m.local.Settled()
	return slices.ContainsFunc(want, s.Has)
}
