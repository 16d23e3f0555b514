package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/internal/rendezvous"
)

// demand is what was asked for, period by period. Periods are those of the
// label clock, so all daemons number them alike.
type demand struct {
	ids          []uint64 // the rules, ascending
	totals, last []uint64 // of this daemon: now, and when the period began

	period uint64 // the number of the one that runs: it was closed with it
	closed time.Duration
	rows   []Demand // of this daemon in the last one
	// regions are the latest known sums, by configured region.
	regions []told
}

// told is the demand of a region in a period.
type told struct {
	period uint64
	rows   []Demand
}

// sumWithin is how long a leader waits for the demand of its region's daemons.
const sumWithin = time.Second

func newDemand(regions int) demand { return demand{regions: make([]told, regions)} }

// rules takes over the rules, and keeps what was counted for those that stay.
func (d *demand) rules(rules []Rule) {
	next := demand{period: d.period, closed: d.closed, rows: d.rows, regions: d.regions}
	for _, r := range rules {
		total, last := uint64(0), uint64(0)
		if i, ok := slices.BinarySearch(d.ids, r.ID); ok {
			total, last = d.totals[i], d.last[i]
		}
		next.ids = append(next.ids, r.ID)
		next.totals, next.last = append(next.totals, total), append(next.last, last)
	}
	*d = next
}

func (d *demand) count(rule, total uint64) {
	if i, ok := slices.BinarySearch(d.ids, rule); ok {
		d.totals[i] = max(d.totals[i], total)
	}
}

// closePeriod notes what was asked for when a period ends, and sums it up for
// the region.
func (o *Agent) closePeriod() {
	d := &o.demand
	k := uint64(max(o.now, 0)) / uint64(o.cfg.Period.Milliseconds())
	if k > d.period {
		first := d.period == 0
		d.period, d.closed, d.rows = k, o.at, nil
		for i, id := range d.ids {
			if hits := d.totals[i] - d.last[i]; hits > 0 && !first {
				d.rows = append(d.rows, Demand{id, hits})
			}
			d.last[i] = d.totals[i]
		}
		o.changes++
	}
	own := &d.regions[o.own]
	if !o.leading || own.period >= d.period {
		return
	}
	for _, l := range o.links {
		if l.local && l.ready && o.hears(l) && l.period < d.period && o.at-d.closed < sumWithin {
			return
		}
	}
	own.period, own.rows = d.period, o.sum()
	o.changes++
}

// sum adds up the demand of the region's daemons in the last period.
func (o *Agent) sum() []Demand {
	d := &o.demand
	hits := make([]uint64, len(d.ids))
	add := func(rows []Demand) {
		for _, r := range rows {
			if i, ok := slices.BinarySearch(d.ids, r.Rule); ok {
				hits[i] += min(r.Hits, 1<<40)
			}
		}
	}
	add(d.rows)
	for _, l := range o.links {
		if l.local && l.period == d.period {
			add(l.rows)
		}
	}
	var rows []Demand
	for i, h := range hits {
		if h > 0 {
			rows = append(rows, Demand{d.ids[i], h})
		}
	}
	return rows
}

// hitsOf returns the hits of a rule in rows, which are ascending.
func hitsOf(rows []Demand, rule uint64) uint64 {
	i, ok := slices.BinarySearchFunc(rows, rule, func(d Demand, rule uint64) int { return cmp.Compare(d.Rule, rule) })
	if !ok {
		return 0
	}
	return rows[i].Hits
}

// regionIndex returns the place of a region among the configured, -1 for none.
func (o *Agent) regionIndex(name string) int {
	return slices.IndexFunc(o.cfg.Regions, func(r Region) bool { return r.Name == name })
}

// takeDemand keeps the newest demand of a daemon or a region.
func (o *Agent) takeDemand(l *link, m *Message) {
	if m.Period == 0 {
		return
	}
	running := uint64(max(o.now, 0)) / uint64(o.cfg.Period.Milliseconds())
	if m.Period > running+1 || m.Period+3 < running {
		o.event(Refused, l.peer.Name, fmt.Sprintf("demand of period %d: want about %d: do the daemons have "+
			"one period, and the clocks one time?", m.Period, running))
		return
	}
	if l.local {
		if m.Period > l.period {
			l.period, l.rows = m.Period, m.Demand
		}
		return
	}
	i := o.regionIndex(l.peer.Region)
	if i >= 0 && m.Period > o.demand.regions[i].period {
		o.demand.regions[i] = told{m.Period, m.Demand}
	}
}

// heardOf returns the period up to which the peer's demand is known.
func (o *Agent) heardOf(l *link) uint64 {
	if l.local {
		return l.period
	}
	if i := o.regionIndex(l.peer.Region); i >= 0 {
		return o.demand.regions[i].period
	}
	return 0
}

// fillDemand adds this daemon's demand for the leader of the region, or the
// region's for another region.
func (o *Agent) fillDemand(l *link, m *Message) bool {
	d := &o.demand
	period, rows := d.period, d.rows
	if !l.local {
		period, rows = d.regions[o.own].period, d.regions[o.own].rows
	} else if o.leading || !o.leader(l) {
		return false
	}
	if period == 0 || l.heard >= period || l.heardAt < 0 || !o.wants(l, rendezvous.Mix(period)) {
		return false
	}
	m.Period, m.Demand = period, rows
	return true
}

// leader reports whether the peer leads this region as far as is known.
func (o *Agent) leader(l *link) bool {
	if !l.ready || !o.hears(l) {
		return false
	}
	for _, other := range o.links {
		if other.local && other.ready && o.hears(other) && other.peer.Name < l.peer.Name {
			return false
		}
	}
	return true
}
