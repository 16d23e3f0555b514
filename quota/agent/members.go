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
		if l.local && l.ready && l.alive(at) {
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
// that restarted without their record, and those in an unsettled retirement by
// an operator.
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
	for _, member := range top.Epoch.Members {
		if slices.Contains(live, member.ID) {
			continue
		}
		if fence, ok := m.replaced(at, member.ID, ls); ok {
			retired = append(retired, epoch.Retirement{ID: member.ID, From: fence + 1})
			continue
		}
		if !ls.leaving(at, member.ID) { // one that leaves acknowledges the epoch
			dead = append(dead, member.ID)
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

// replaced reports whether a participant is a former generation of a live
// daemon that lost its record, and returns the last window that it may have
// used.
func (m *members) replaced(at time.Duration, id uint64, ls links) (fence int64, ok bool) {
	if m.fence != 0 && sameName(id, m.member) && id != m.member {
		return m.fence, true
	}
	for _, l := range ls {
		if l.local && l.ready && l.fence != 0 && sameName(id, l.member) && id != l.member && l.alive(at) {
			return l.fence, true
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

// remembers reports whether one of the participants is in the settled epoch: it
// knows the promises of the region, and joining daemons learn them from it.
func (m *members) remembers(want []uint64) bool {
	s, _ := m.local.Settled()
	return slices.ContainsFunc(want, s.Has)
}
