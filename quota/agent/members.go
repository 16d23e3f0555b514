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
	fence  int64
	local  *epoch.Table
	// resigned are the participants that resigned.
	resigned resignations
	// seen is when each participant was alive last.
	seen map[uint64]time.Duration
	// differs is since when the live ones differ from the newest epoch, -1
	// while they do not.
	differs time.Duration
}

const (
	// joinAfter is how long a change must last before it is proposed.
	joinAfter = time.Second
	// leaveAfter is the same for a change with daemons that leave or resigned.
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
	for _, r := range retired { // without it the newest epoch may wait for ever
		same = same && (top.Settled || top.Epoch.Retires(r.ID))
	}
	if same && !barren(a.local) {
		m.differs = -1
		return
	}
	if m.differs < 0 {
		m.differs = a.at
	}
	wait := joinAfter
	leaves := func(member epoch.Member) bool { return m.leaving(a.at, member.ID, a.links) }
	if len(retired) > 0 || slices.ContainsFunc(top.Epoch.Members, leaves) {
		wait = leaveAfter
	}
	if a.at-m.differs < wait || age(a.now, top.Epoch.ID) < proposeEvery || !m.remembers(want, a.links) {
		return
	}
	e := epoch.Epoch{Horizon: a.cfg.horizon(), Retired: retired}
	for _, id := range want {
		e.Members = append(e.Members, epoch.Member{ID: id, Amount: 1})
	}
	a.tryPropose(daemonTable, e, fmt.Sprintf("%d daemons instead of %d", len(want), len(top.Epoch.Members)))
	m.differs = -1
}

// live returns the participants that are ready and alive, ascending, and notes
// the time.
func (m *members) live(at time.Duration, ready bool, ls links) []uint64 {
	var live []uint64
	if ready {
		live = append(live, m.member)
	}
	for _, l := range ls {
		if _, left := m.resigned.of(l.member); l.local && l.ready && l.alive(at) && !left {
			live = append(live, l.member)
		}
	}
	slices.Sort(live)
	live = slices.Compact(live)
	if len(m.seen) > 4*epoch.MaxMembers {
		clear(m.seen)
	}
	for _, id := range live {
		m.seen[id] = at
	}
	return live
}

// next returns the members of the next epoch, ascending: the live participants,
// and the dead ones whose shares cannot be reclaimed. retired are participants
// that resigned or restarted without their record, and those in an unsettled
// retirement by an operator.
func (m *members) next(at, started time.Duration, live []uint64, ls links) (want []uint64, retired []epoch.Retirement) {
	top := newest(m.local)
	want = slices.Clone(live)
	if !top.Settled {
		for _, r := range top.Epoch.Retired {
			if !slices.Contains(want, r.ID) {
				retired = append(retired, r)
			}
		}
	}
	var dead []uint64
	for i := range m.local.Len() {
		k := m.local.At(i)
		if k.Epoch.ID.Before(settledID(m.local)) {
			continue
		}
		for _, member := range k.Epoch.Members {
			from, left := m.left(at, member.ID, ls)
			switch {
			case slices.Contains(live, member.ID), m.leaving(at, member.ID, ls):
			case left:
				retired = append(retired, epoch.Retirement{ID: member.ID, From: from})
			case k.Epoch.ID == top.Epoch.ID:
				dead = append(dead, member.ID)
			}
		}
	}
	if !m.reclaimable(live, retired) {
		want = append(want, dead...)
		dead = nil
	}
	for _, id := range dead {
		seen, ok := m.seen[id]
		if gone := at - max(seen, started); !ok && at-started < dropAfter || ok && gone < dropAfter {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	slices.SortFunc(retired, func(a, b epoch.Retirement) int { return cmp.Compare(a.ID, b.ID) })
	return want[:min(len(want), epoch.MaxMembers)], slices.CompactFunc(retired, func(a, b epoch.Retirement) bool {
		return a.ID == b.ID
	})
}

// leaving reports whether a live daemon leaves: it acknowledges an epoch
// without it.
func (m *members) leaving(at time.Duration, id uint64, ls links) bool {
	_, resigned := m.resigned.of(id)
	return !resigned && slices.ContainsFunc(ls, func(l *link) bool {
		return l.local && l.leaving && l.member == id && l.alive(at)
	})
}

// left reports whether a participant resigned, or is a former generation of a
// live daemon, and returns the first window that it does not use any more.
func (m *members) left(at time.Duration, id uint64, ls links) (from int64, ok bool) {
	if from, ok = m.resigned.of(id); ok {
		return from, true
	}
	if m.fence != 0 && sameName(id, m.member) && id != m.member {
		return m.fence + 1, true
	}
	for _, l := range ls {
		if l.local && l.ready && l.fence != 0 && sameName(id, l.member) && id != l.member && l.alive(at) {
			return l.fence + 1, true
		}
	}
	return 0, false
}

// reclaimable reports whether the shares of dead participants can be reclaimed:
// of every epoch that may be in force enough are left to refuse their horizons.
func (m *members) reclaimable(live []uint64, retired []epoch.Retirement) bool {
	settled := settledID(m.local)
	for i := range m.local.Len() {
		k := m.local.At(i)
		if k.Epoch.ID.Before(settled) {
			continue
		}
		dead, left, n := 0, 0, len(k.Epoch.Members)
		for _, member := range k.Epoch.Members {
			switch {
			case slices.Contains(live, member.ID):
			case slices.ContainsFunc(retired, func(r epoch.Retirement) bool { return r.ID == member.ID }):
				left++
			default:
				dead++
			}
		}
		if dead > 0 && (k.Epoch.Horizon == 0 || n <= 2 || dead+left > n/3) {
			return false
		}
	}
	return true
}

// remembers reports whether one of the participants knows the promises of the
// region, so that joining daemons learn them from it.
func (m *members) remembers(want []uint64, ls links) bool {
	return slices.ContainsFunc(want, func(id uint64) bool {
		former := uint64(0)
		if l := ls.ofMember(id); l != nil {
			former = l.former
		} else if id == m.member {
			former = m.local.Former()
		}
		return m.local.Remembers(id, former)
	})
}
