package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	epochs "github.com/georld/rld/quota/epoch"
)

// mode returns the rights of a scope in the words of the limits language.
func (s *Scope) mode() string {
	switch {
	case !s.Rights:
		return ""
	case s.Budget == 0:
		return ", consistency: partition"
	}
	return fmt.Sprintf(", overage_budget: %d%%", s.Budget)
}

// total is what all rights of a window sum to.
func (e *explorer) total() uint64 { return uint64(e.scope.Limit) * uint64(100+e.scope.Budget) / 100 }

// shares are the rights of a process: equal parts of a region's, which are
// equal parts of the world's. Of windows up to the fence it holds nothing.
type shares struct {
	regions, region uint64 // how many, and which
	daemons, daemon uint64 // of the region
	fence           int64  // 0 for none
}

var _ node.Allotments = (*shares)(nil)

// sharesOf returns those of a process that starts.
func (e *explorer) sharesOf(daemon int, run uint8, now time.Duration) *shares {
	s := &shares{}
	if run > 0 && !e.scope.mutation.noFence {
		s.fence = e.millis(now)
	}
	r := e.regionIndex(daemon)
	s.regions, s.region = uint64(len(e.scope.Regions)), uint64(r)
	s.daemons, s.daemon = uint64(e.scope.Regions[r]), uint64(daemon-slices.Index(e.regions, e.regions[daemon]))
	return s
}

// regionIndex returns the number of a daemon's region.
func (e *explorer) regionIndex(daemon int) int { return int(e.regions[daemon][0] - 'a') }

// part is that of the k-th of n; the parts sum to the whole.
func part(whole, n, k uint64) uint64 { return (whole + n - 1 - k) / n }

// Version implements node.Allotments.
func (s *shares) Version() uint64 { return 1 }

// Allotment implements node.Allotments.
func (s *shares) Allotment(rule, total uint64, x, carry int64, _ bool) (uint64, epochs.Reason) {
	region, why := s.RegionAllotment(rule, total, x, carry)
	return part(region, s.daemons, s.daemon), why
}

// Former implements node.Allotments. No process hands on accounts here.
func (s *shares) Former(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	return s.Allotment(rule, total, x, carry, regional)
}

// RegionAllotment implements node.Allotments.
func (s *shares) RegionAllotment(_, total uint64, x, _ int64) (uint64, epochs.Reason) {
	if x <= s.fence {
		return 0, epochs.ReasonFenced
	}
	return part(total, s.regions, s.region), epochs.ReasonEpoch
}

// PartOf implements node.Allotments. It returns the share that a peer would
// have.
func (s *shares) PartOf(_ string, _, total uint64, _, _ int64, _ bool) uint64 {
	return part(part(total, s.regions, s.region), s.daemons, 0)
}

// RegionPart implements node.Allotments.
func (s *shares) RegionPart(region string, _, total uint64, _, _ int64) uint64 {
	return part(total, s.regions, uint64(region[0]-'a'))
}

// RegionMost is part of node.Allotments.
func (s *shares) RegionMost(region string, rule, total uint64, x, carry int64) uint64 {
	return s.RegionPart(region, rule, total, x, carry)
}

// checkRow checks that a process used and gave no more than it holds and was
// given.
func (e *explorer) checkRow(h *history) error {
	if !e.scope.Rights {
		return nil
	}
	now := e.now(h.in.tick)
	window, run := e.windowAt(now), h.cast[h.daemon]
	own := e.incarnations[h.daemon][run]
	given, received := uint64(0), uint64(0)
	for i := range h.facts {
		switch f := &h.facts[i]; {
		case f.window != window:
		case f.kind == gossip.Given:
			given += f.hits
		case f.kind == gossip.Received:
			received += f.hits
		}
	}
	used := hitsOf(h.counted, gossip.Daemon, own, window)
	e.out.Given = max(e.out.Given, given)
	base, _ := e.sharesOf(h.daemon, run, e.now(e.startOf(h))).Allotment(0, e.total(), window, 0, false)
	if used+given > base+received {
		return e.violated("%s admitted %d and gave %d of %d that it holds and %d that it was given",
			e.names[h.daemon], used, given, base, received)
	}
	return nil
}

// startOf is the tick at which the process of a history started.
func (e *explorer) startOf(h *history) int16 {
	for h.in.kind != inStart {
		h = &e.histories[h.parent]
	}
	return h.in.tick
}

// checkTransfer checks that no process received more than its donor was
// charged.
func (e *explorer) checkTransfer(m *moment, h *history, f *fact) error {
	if f.kind != gossip.Received {
		return nil
	}
	giver, ok := e.runs[f.incarnation]
	if !ok {
		return e.violated("%s was given rights by %v, which never was there", e.names[h.daemon], f.incarnation)
	}
	own := e.incarnations[h.daemon][h.cast[h.daemon]]
	for i := m.at[giver.daemon]; i != noHistory; i = e.histories[i].parent {
		o := &e.histories[i]
		if o.cast[giver.daemon] != giver.restarts {
			continue // of a later process
		}
		charged := hitsOf(o.facts, gossip.Given, own, f.window)
		if f.hits > charged && !e.over(f.window, e.now(o.in.tick)) {
			return e.violated("%s was given %d rights by %s, which was charged %d",
				e.names[h.daemon], f.hits, e.owner(f.incarnation), charged)
		}
		return nil
	}
	return nil
}
