package quorum

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// Lead is how far the clock of a peer is ahead of this daemon's: less than 0
// for one that is behind.
type Lead struct {
	Peer crdt.Incarnation
	By   time.Duration
}

// clocks is the latest measurement of the clocks of all daemons. The clock of
// this daemon alone ends no window for good: it may be wrong by hours, and
// other voters copy the end.
type clocks struct {
	at     time.Duration
	offset int64 // max_offset in milliseconds
	// early and late are the lower and the upper median of the clocks of the
	// region's daemons, in Unix milliseconds: 0 unless more than half of the
	// daemons are known. cluster is the lower median of all clocks.
	early, late, cluster int64
	// off are the daemons that own no keys, and suspects those that the latest
	// measurement contradicts. A peer that was paused looks wrong once.
	off, suspects []crdt.Incarnation
}

// Clocks sets how far the clocks of live peers are apart from that of this
// daemon, as far as this is known. A driver measures them every few seconds. A
// daemon whose clock more than half of the known ones contradict twice in a row
// owns no keys.
func (r *Acceptor) Clocks(at time.Duration, now int64, leads []Lead) {
	r.clock(at)
	r.now = now
	known := []Lead{{Peer: r.self}}
	for _, l := range leads {
		if p := r.live.Get(l.Peer); p.ID != 0 && p.ID != r.self {
			known = append(known, l)
		}
	}
	slices.SortFunc(known, func(a, b Lead) int { return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Peer, b.Peer)) })
	c := clocks{at: r.at, offset: r.cfg.MaxOffset.Milliseconds(), cluster: now + median(known, 1)}
	regional := slices.DeleteFunc(slices.Clone(known), func(l Lead) bool { return r.live.Get(l.Peer).Region != r.cfg.Region })
	if all := max(len(r.newest().VotersOf(r.cfg.Region)), r.daemons(r.cfg.Region)); 2*len(regional) > all {
		c.early, c.late = now+median(regional, 1), now+median(regional, 0)
	}
	for _, l := range known {
		before := slices.Contains(r.clocks.suspects, l.Peer)
		suspect := contradicted(known, l.By, r.cfg.MaxOffset)
		if suspect {
			c.suspects = append(c.suspects, l.Peer)
		}
		if off := slices.Contains(r.clocks.off, l.Peer); suspect && (before || off) || off && before {
			c.off = append(c.off, l.Peer)
		}
	}
	slices.Sort(c.off)
	changed := !slices.Equal(c.off, r.clocks.off)
	r.clocks = c
	r.boundEnded()
	if changed {
		r.setOff()
	}
}

// daemons counts the live daemons of a region by name.
func (r *Acceptor) daemons(region string) int {
	n := 0
	for i, p := range r.live {
		if p.Region == region && (i == 0 || r.live[i-1].Region != region || r.live[i-1].Name != p.Name) {
			n++
		}
	}
	return n
}

// median returns the median lead in milliseconds: of an even number the lower
// one if less is 1, and the upper one if it is 0.
func median(sorted []Lead, less int) int64 { return sorted[(len(sorted)-less)/2].By.Milliseconds() }

// contradicted reports whether more than half of all known clocks differ from
// one by more than the greatest offset.
func contradicted(sorted []Lead, by, offset time.Duration) bool {
	near := 0
	for _, l := range sorted {
		if l.By >= by-offset && l.By <= by+offset {
			near++
		}
	}
	return 2*(len(sorted)-near) > len(sorted)
}

// setOff notes the daemons that own no keys.
func (r *Acceptor) setOff() {
	for i := range r.live {
		p := &r.live[i]
		is := slices.Contains(r.clocks.off, p.ID)
		switch {
		case is && !p.Off:
			r.events.Add(ClockOff, p.Name, "it owns no strict keys until its clock agrees with most others: repair NTP there")
		case !is && p.Off:
			r.events.Add(ClockAgrees, p.Name, "it may own strict keys again")
		}
		p.Off = is
	}
	r.rebuild()
}

// passed returns an instant in Unix milliseconds that has passed by the median
// clock of the region's daemons, 0 if too few clocks are known. It is never
// beyond max_offset after this daemon's clock, now, nor after that of most
// daemons of the cluster.
func (c *clocks) passed(at time.Duration, now int64) int64 {
	since := (at - c.at).Milliseconds()
	if c.early == 0 {
		return 0
	}
	return max(0, min(c.early+since, c.cluster+since+c.offset, now+c.offset))
}

// latest returns the latest instant that can have passed by any clock that is
// right, the greatest one if too few clocks are known.
func (c *clocks) latest(at time.Duration, now int64) int64 {
	if c.late == 0 {
		return math.MaxInt64
	}
	return max(c.late+(at-c.at).Milliseconds(), now) + c.offset
}

// boundEnded corrects an end of watermarks that is in the future: clocks were
// wrong when it was stored, here or at a voter that it was copied from. All
// strict keys would be refused until then. Watermarks of windows that are not
// over may have been forgotten, so these windows may admit twice as much.
func (r *Acceptor) boundEnded() {
	latest := r.clocks.latest(r.at, r.now)
	if r.meta.Ended <= latest || r.failed != nil {
		return
	}
	ahead := time.Duration(r.meta.Ended-latest) * time.Millisecond
	r.events.Add(EndedAhead, "", fmt.Sprintf(
		"a clock that was %v ahead ended watermarks: this is corrected, and strict limits may admit twice as much in the windows until then", ahead))
	r.meta.Ended = latest
	r.putMeta()
}
