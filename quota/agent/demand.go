package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// demand counts the offered hits by period. Periods are those of the window
// clock, so all daemons number them alike.
type demand struct {
	cfg          *Config
	of           *regions
	ids          []uint64 // the rules, ascending
	totals, last []uint64 // of this daemon: now, and at the start of the period

	period uint64        // the number of the current one
	closed time.Duration // when the last one ended
	rows   []Demand      // of this daemon in the last one
	// regions are the latest known sums, parallel to those of the cluster.
	regions []periodDemand
}

// periodDemand is the demand of a daemon or a region in a period.
type periodDemand struct {
	period uint64
	rows   []Demand
}

// sumWithin is how long a leader waits for the demand of its region's daemons.
const sumWithin = time.Second

// setRules sets the rules and keeps the counts of those that remain.
func (d *demand) setRules(rules []Rule) {
	ids, totals, last := d.ids, d.totals, d.last
	d.ids, d.totals, d.last = nil, nil, nil
	for _, r := range rules {
		d.ids, d.totals, d.last = append(d.ids, r.ID), append(d.totals, 0), append(d.last, 0)
		if i, ok := slices.BinarySearch(ids, r.ID); ok {
			n := len(d.ids) - 1
			d.totals[n], d.last[n] = totals[i], last[i]
		}
	}
}

// count sets the hits offered to this daemon for a rule since its start.
func (d *demand) count(rule, total uint64) {
	if i, ok := slices.BinarySearch(d.ids, rule); ok {
		d.totals[i] = max(d.totals[i], total)
	}
}

// number returns the number of the period at now (Unix milliseconds).
func (d *demand) number(now int64) uint64 {
	return uint64(max(now, 0)) / uint64(d.cfg.Period.Milliseconds())
}

// closePeriod notes the demand of this daemon when a period ends and, with
// leading, sums the demand of the region. It reports whether anything changed.
func (d *demand) closePeriod(at time.Duration, now int64, leading bool, ls links) (changed bool) {
	if k := d.number(now); k > d.period {
		first := d.period == 0
		d.period, d.closed, d.rows = k, at, nil
		for i, id := range d.ids {
			if hits := d.totals[i] - d.last[i]; hits > 0 && !first {
				d.rows = append(d.rows, Demand{id, hits})
			}
			d.last[i] = d.totals[i]
		}
		changed = true
	}
	if !leading || d.of.own < 0 || d.regions[d.of.own].period >= d.period {
		return changed
	}
	for _, l := range ls {
		if l.local && l.ready && l.alive(at) && l.demand.period < d.period && at-d.closed < sumWithin {
			return changed
		}
	}
	d.regions[d.of.own] = periodDemand{d.period, d.sum(ls)}
	return true
}

// sum returns the demand of the region's daemons in the last period.
func (d *demand) sum(ls links) []Demand {
	hits := make([]uint64, len(d.ids))
	add := func(rows []Demand) {
		for _, r := range rows {
			if i, ok := slices.BinarySearch(d.ids, r.Rule); ok {
				hits[i] += min(r.Hits, 1<<40)
			}
		}
	}
	add(d.rows)
	for _, l := range ls {
		if l.local && l.demand.period == d.period {
			add(l.demand.rows)
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

// latest returns the known demand of a peer, or of its region; nil for a region
// that is not known.
func (d *demand) latest(l *link) *periodDemand {
	if l.local {
		return &l.demand
	}
	if i := d.of.index(l.peer.Region); i >= 0 {
		return &d.regions[i]
	}
	return nil
}

// take records newer demand of a peer. It returns an error for a period far
// from the current one.
func (d *demand) take(l *link, m *Message, now int64) error {
	if m.Period == 0 {
		return nil
	}
	current := d.number(now)
	if m.Period > current+1 || m.Period+3 < current {
		return fmt.Errorf("demand of period %d: want about %d: do the daemons have "+
			"one period, and the clocks one time?", m.Period, current)
	}
	if known := d.latest(l); known != nil && m.Period > known.period {
		*known = periodDemand{m.Period, m.Demand}
	}
	return nil
}

// toSend returns the demand to send to a peer: that of this daemon for the
// leader of the region, or that of the region for another region. It returns ok
// false for none.
func (d *demand) toSend(at time.Duration, l *link, leading bool, ls links) (out periodDemand, ok bool) {
	out = periodDemand{d.period, d.rows}
	if !l.local && d.of.own < 0 {
		return out, false
	}
	if !l.local {
		out = d.regions[d.of.own]
	} else if leading || !l.ready || !l.alive(at) || !ls.leads(at, l.peer.Name, true) {
		return out, false
	}
	return out, out.period != 0 && l.period < out.period && l.receivedAt >= 0
}
