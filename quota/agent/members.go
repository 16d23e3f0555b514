package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// members follows who lives in the region.
type members struct {
	// seen is when each participant was live last.
	seen map[uint64]time.Duration
	// differs is since when the live ones are not those of the newest epoch,
	// -1 while they are.
	differs time.Duration
}

const (
	// joinAfter is how long a change must last before it is proposed.
	joinAfter = time.Second
	// dropAfter is how long a daemon must be gone. As its share comes back a
	// horizon after it was granted a label last, nothing is lost by waiting,
	// and a quick restart costs no epoch.
	dropAfter = 5 * time.Second
	// proposeEvery is the least time between two epochs of a table.
	proposeEvery = 2 * time.Second
)

// proposeDaemons proposes an epoch of the region's daemons, with equal weights,
// when those who are live are others than those of the newest one.
func (o *Agent) proposeDaemons() {
	live := o.live()
	if !o.leading || !o.ready || o.at < o.resting[1] {
		o.members.differs = -1
		return
	}
	top := newest(o.local)
	want, retired := o.wanted(live)
	same := len(want) == len(top.Epoch.Members)
	for _, id := range want {
		same = same && top.Epoch.Has(id)
	}
	if same && !barren(o.local) {
		o.members.differs = -1
		return
	}
	if o.members.differs < 0 {
		o.members.differs = o.at
	}
	if o.at-o.members.differs < joinAfter || o.age(top.Epoch.ID) < proposeEvery || !o.remembers(want) {
		return
	}
	e := epoch.Epoch{Horizon: o.cfg.horizon(), Retired: retired}
	for _, id := range want {
		e.Members = append(e.Members, epoch.Member{ID: id, Amount: 1})
	}
	o.tryPropose(1, e, fmt.Sprintf("%d daemons instead of %d", len(want), len(top.Epoch.Members)))
	o.members.differs = -1
}

// live returns the participants of the region that are ready and were heard
// lately, ascending, and notes when.
func (o *Agent) live() []uint64 {
	if o.members.seen == nil {
		o.members.seen, o.members.differs = map[uint64]time.Duration{}, -1
	}
	var live []uint64
	if o.ready {
		live = append(live, o.member)
	}
	for _, l := range o.links {
		if l.local && l.ready && o.hears(l) {
			live = append(live, l.member)
		}
	}
	slices.Sort(live)
	live = slices.Compact(live)
	if len(o.members.seen) > 4*epoch.MaxMembers {
		clear(o.members.seen)
	}
	for _, id := range live {
		o.members.seen[id] = o.at
	}
	return live
}

// wanted returns who the next epoch is to name, ascending: the live, and the
// dead where nothing could be taken back from them. retired are those that
// came back without their memory, and those an operator retired while that is
// not settled.
func (o *Agent) wanted(live []uint64) (want []uint64, retired []epoch.Retirement) {
	top := newest(o.local)
	want = slices.Clone(live)
	if !top.Settled {
		for _, r := range top.Epoch.Retired {
			if !slices.Contains(want, r.ID) {
				retired = append(retired, r)
			}
		}
	}
	var dead []uint64
	for _, m := range top.Epoch.Members {
		if slices.Contains(live, m.ID) {
			continue
		}
		if fence, ok := o.replaced(m.ID); ok {
			retired = append(retired, epoch.Retirement{ID: m.ID, From: fence + 1})
			continue
		}
		dead = append(dead, m.ID)
	}
	if !o.reclaimable(live, retired) {
		want = append(want, dead...)
		dead = nil
	}
	for _, id := range dead {
		seen, ok := o.members.seen[id]
		if gone := o.at - max(seen, o.started); !ok && o.at-o.started < dropAfter || ok && gone < dropAfter {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	slices.SortFunc(retired, func(a, b epoch.Retirement) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return want[:min(len(want), epoch.MaxMembers)], slices.CompactFunc(retired, func(a, b epoch.Retirement) bool {
		return a.ID == b.ID
	})
}

// replaced reports whether a participant is an earlier life of a live daemon
// that lost its memory, and the last label it may have used.
func (o *Agent) replaced(id uint64) (fence int64, ok bool) {
	if o.fence != 0 && sameName(id, o.member) && id != o.member {
		return o.fence, true
	}
	for _, l := range o.links {
		if l.local && l.ready && l.fence != 0 && sameName(id, l.member) && id != l.member && o.hears(l) {
			return l.fence, true
		}
	}
	return 0, false
}

// reclaimable reports whether the shares of the dead can be taken back without
// them: of every epoch that may be in force at most a third are dead.
func (o *Agent) reclaimable(live []uint64, retired []epoch.Retirement) bool {
	settled := settledID(o.local)
	for i := range o.local.Len() {
		k := o.local.At(i)
		if k.Epoch.ID.Before(settled) {
			continue
		}
		dead, n := 0, len(k.Epoch.Members)
		for _, m := range k.Epoch.Members {
			if !slices.Contains(live, m.ID) && !slices.ContainsFunc(retired, func(r epoch.Retirement) bool {
				return r.ID == m.ID
			}) {
				dead++
			}
		}
		if dead > 0 && (k.Epoch.Horizon == 0 || n <= 2 || dead > n/3) {
			return false
		}
	}
	return true
}

// remembers reports whether one of those named is in the settled epoch: it
// knows what the region promised, and those who join learn it from it.
func (o *Agent) remembers(want []uint64) bool {
	s, _ := o.local.Settled()
	return slices.ContainsFunc(want, s.Has)
}
