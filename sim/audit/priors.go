package audit

import (
	"math/bits"
	"slices"
	"time"

	"github.com/georld/rld/gossip/prior"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// keyLoads is what processes were offered of a key, by window, ascending.
type keyLoads struct{ windows []keyLoad }

type keyLoad struct {
	start     int64
	charged   uint64
	exhausted bool // hits were denied, or the limit was charged
	of        []processLoad
}

// processLoad is what one process was offered in a window, and when first.
type processLoad struct {
	process          int
	first            time.Duration
	offered, charged uint64
}

// window returns the loads of a window, new ones if there are none. keep is how
// much older than it others may be.
func (k *keyLoads) window(start, keep int64) *keyLoad {
	i, found := slices.BinarySearchFunc(k.windows, start, func(w keyLoad, start int64) int { return int(min(1, max(-1, w.start-start))) })
	if !found {
		k.windows = slices.Insert(k.windows, i, keyLoad{start: start})
		gone := 0
		for k.windows[gone].start < start-keep {
			gone++
		}
		k.windows = slices.Delete(k.windows, 0, gone)
		i -= gone
	}
	return &k.windows[i]
}

// at returns the load of a process, nil if it was offered nothing.
func (w *keyLoad) at(process int) *processLoad {
	for i := range w.of {
		if w.of[i].process == process {
			return &w.of[i]
		}
	}
	return nil
}

// predictable reports whether hits of a limit may be denied by a prior.
func predictable(l *rules.Limit) bool {
	return quota.Of(l).Resets() && !l.HasBudget && l.Scope != rules.NodeLocal
}

// priorLag is the greatest lag that an engine may measure.
func (a *denialAuditor) priorLag() time.Duration {
	quiet := min(a.gossip.Quiet, time.Second)
	return 8*max(a.gossip.WANInterval, quiet) + 5*max(a.gossip.Interval, quiet) + 2*a.late
}

// offer notes a decision.
func (a *denialAuditor) offer(d *sim.Decided) {
	e, l := &a.entry, d.Limit
	if e.counter == nil || l == nil || d.Peek || d.Hits == 0 || !predictable(l) {
		return
	}
	charged := d.Allowed || l.ChargeDenied
	if !charged && !d.Status.Over {
		return // denied by another descriptor
	}
	if e.counter.loads == nil {
		e.counter.loads = &keyLoads{}
	}
	length := l.Window()
	w := e.counter.loads.window(e.now-e.now%length, prior.Oldest(length, a.priorLag())+4*length)
	p := w.at(e.process.index)
	if p == nil {
		w.of = append(w.of, processLoad{process: e.process.index, first: d.At})
		p = &w.of[len(w.of)-1]
	}
	p.offered += d.Hits
	if charged {
		p.charged += d.Hits
		w.charged += d.Hits
	}
	w.exhausted = w.exhausted || d.Status.Over || w.charged >= uint64(l.Requests)
}

// foreseen reports whether a prior is a reason for a denial: the key was
// exhausted in one of the last windows, others were offered hits, and the
// process has used the part of the limit that its own load gives it, within 1.5
// lags of its first hit of the window.
func (a *denialAuditor) foreseen(d *sim.Decided) bool {
	e, l := &a.entry, d.Limit
	if !predictable(l) || d.Status.Gate != node.EstimateGate || e.counter.loads == nil {
		return false
	}
	length, lag := l.Window(), a.priorLag()
	now := e.now - e.now%length
	charged, exhausted := uint64(0), false
	own, others := [3]uint64{}, map[int]uint64{}
	for i := range e.counter.loads.windows {
		w := &e.counter.loads.windows[i]
		p := w.at(e.process.index)
		if w.start >= now {
			if w.start == now && p != nil {
				charged = p.charged
				if 2*(d.At-p.first) > prior.Lags*lag {
					return false
				}
			}
			continue
		}
		if w.start < now-prior.Oldest(length, lag)-3*length {
			continue
		}
		exhausted = exhausted || w.exhausted
		if before := (now - w.start) / length; p != nil && before <= int64(len(own)) {
			own[before-1] = p.offered
		}
		for i := range w.of {
			if o := &w.of[i]; o.process != e.process.index {
				others[o.process] = max(others[o.process], o.offered)
			}
		}
	}
	least, all := slices.Min(own[:]), uint64(0)
	for _, n := range others {
		all += n
	}
	if !exhausted || all == 0 {
		return false
	}
	hi, lo := bits.Mul64(uint64(l.Requests), least)
	share, _ := bits.Div64(hi, lo, least+all)
	return charged+d.Hits > share
}

// priorLeaves reports whether a prior may leave all of a limit to others: the
// key was exhausted in one of the windows before, and the process was offered
// its first hits of the window within a time.
func (t *truth) priorLeaves(d *sim.Decided, within time.Duration) bool {
	e, l := &t.entry, d.Limit
	if !predictable(l) || d.Status.Gate != node.EstimateGate || e.counter.loads == nil {
		return false
	}
	now := e.now - e.now%l.Window()
	exhausted := false
	for i := range e.counter.loads.windows {
		w := &e.counter.loads.windows[i]
		if p := w.at(e.process.index); w.start == now && p != nil && d.At-p.first > within {
			return false
		}
		exhausted = exhausted || w.exhausted && w.start < now && w.start >= now-prior.Oldest(l.Window(), within)-3*l.Window()
	}
	return exhausted
}
