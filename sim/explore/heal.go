package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// healRounds is within how many ticks a healed cluster must agree: lost
// messages are resent after the patience of a link, and a region's lost counts
// come back when it is ready.
const healRounds = 60

// settleRounds is for how many ticks a cluster is looked at in which a daemon
// restarted: what comes back late must not be counted twice.
const settleRounds = 24

// recovery is a cluster whose network is whole from now on.
type recovery struct {
	e            *explorer
	procs        []*process
	now          time.Duration
	incarnations []crdt.Incarnation
	cells        [][]gossip.Cell // that daemons must agree on
	facts        [][]fact        // of these
}

// heal makes everything right again from a moment on, once with the frames
// that were on their way and once without, and checks that the cluster agrees.
func (e *explorer) heal(m *moment) error {
	for _, lost := range []bool{false, true} {
		if lost && len(m.net) == 0 {
			continue
		}
		e.out.Healed++
		h := &recovery{e: e, now: e.now(m.tick)}
		is := e.castNow(m)
		for d := range e.names {
			h.procs = append(h.procs, e.replay(m.at[d]))
			h.incarnations = append(h.incarnations, e.incarnations[d][is[d]])
		}
		if !lost {
			for _, f := range m.net {
				h.deliver(&e.frames[f.frame])
			}
		}
		for d, p := range h.procs {
			if e.histories[m.at[d]].cast != is {
				p.node.Peers(e.instant(p, h.now), e.peers(is))
				p.node.Ready()
			}
		}
		if why := h.settle(m, is != cast{}); why != "" {
			return e.violated("healed, all that was on its way lost: %t: %s", lost, why)
		}
	}
	return nil
}

// settle lets the cluster run until it agrees; it returns why it does not.
func (h *recovery) settle(m *moment, restarted bool) (why string) {
	for i := range healRounds {
		h.round()
		if restarted && i < settleRounds {
			continue
		}
		if why = h.disagrees(m, restarted); why == "" {
			return ""
		}
	}
	return why
}

// round lets a tick pass and delivers all messages.
func (h *recovery) round() {
	h.now += gossip.DefaultInterval
	var sent []sentFrame
	for _, p := range h.procs {
		p.node.Tick(h.e.instant(p, h.now))
		for _, m := range p.node.Ready().Messages {
			if b, err := h.e.encode(&m); err == nil {
				sent = append(sent, sentFrame{stream: streamOf(&m), bytes: b})
			}
		}
	}
	for i := range sent {
		h.deliver(&sent[i])
	}
}

// deliver hands a frame to the process that it is for, if that is there.
func (h *recovery) deliver(f *sentFrame) {
	msgs, err := f.decode()
	if err != nil {
		return
	}
	if d := slices.Index(h.incarnations, msgs[0].To); d >= 0 {
		p := h.procs[d]
		_ = p.node.Step(h.e.instant(p, h.now), &msgs[0]) // of a process that is gone
		p.node.Ready()
	}
}

// disagrees compares the daemons with each other and with the ground truth, in
// the windows that are not over.
func (h *recovery) disagrees(m *moment, restarted bool) string {
	e := h.e
	h.cells, h.facts = h.cells[:0], h.facts[:0]
	for d, p := range h.procs {
		own := gossip.RegionIncarnation(e.regions[d])
		cells := slices.DeleteFunc(p.node.Cells(e.instant(p, h.now), nil), func(c gossip.Cell) bool {
			return c.Kind == gossip.RegionSum && c.Incarnation == own || !c.Kind.Counts()
		})
		h.cells, h.facts = append(h.cells, cells), append(h.facts, e.factsOf(cells))
	}
	same := func(a, b gossip.Cell) bool {
		return a.CellID == b.CellID && a.CellMeta == b.CellMeta && a.Value == b.Value
	}
	for d := range h.procs {
		for o := range h.procs[:d] {
			if e.regions[d] != e.regions[o] {
				continue
			}
			if x, y := h.common(d, o), h.common(o, d); !slices.EqualFunc(x, y, same) {
				return fmt.Sprintf("%s holds %v and %s %v", e.names[o], y, e.names[d], x)
			}
		}
	}
	for o := range h.procs {
		for _, b := range e.histories[m.at[o]].counted {
			if e.over(b.window, h.now) {
				continue
			}
			for d := range h.procs {
				if why := h.compare(m, d, b.window, restarted); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// common returns the cells of a daemon that another one has to hold too.
func (h *recovery) common(d, o int) []gossip.Cell {
	return slices.DeleteFunc(slices.Clone(h.cells[d]), func(c gossip.Cell) bool {
		return !node.Keeps(h.procs[d].node, c.CellID) || !node.Keeps(h.procs[o].node, c.CellID)
	})
}

// keeps reports whether a daemon keeps the counts of a process of its region, 0
// for one that is not live.
func (e *explorer) keeps(p *process, of crdt.Incarnation) bool {
	return node.Keeps(p.node, gossip.CellID{Key: e.key, Kind: gossip.Daemon, Incarnation: of})
}

// aggregates reports whether a daemon has to hold all counts: those of its
// region, and the sums of others.
func (e *explorer) aggregates(p *process) bool {
	return e.keeps(p, 0) && node.Keeps(p.node, gossip.CellID{Key: e.key, Kind: gossip.RegionSum})
}

// compare compares the counts of a window that one daemon holds with the ground
// truth. The aggregator must hold all counts of live processes and all counts
// that any of the daemons that keep them held before, and no more. Counts that
// no live one of them received are gone.
func (h *recovery) compare(m *moment, d int, window int64, restarted bool) string {
	e := h.e
	if !e.aggregates(h.procs[d]) {
		return ""
	}
	known := e.known(d, h.facts[d], window)
	all := e.truth(m, window, anywhere)
	least := e.truth(m, window, func(_ int, s crdt.Incarnation) bool { return slices.Contains(h.incarnations, s) })
	for o := range h.procs {
		if was := &e.histories[m.at[o]]; was.keeps {
			least = max(least, e.held(o, was.facts, window))
		}
		if !e.aggregates(h.procs[o]) {
			continue
		}
		if n := e.known(o, h.facts[o], window); n != known {
			return fmt.Sprintf("%s knows %d hits and %s %d", e.names[d], known, e.names[o], n)
		}
	}
	switch {
	case known > all, !restarted && known < all:
		return fmt.Sprintf("%s knows %d hits of %d", e.names[d], known, all)
	case known < least:
		return fmt.Sprintf("%s knows %d hits, and %d were known before or are of daemons that are there", e.names[d], known, least)
	}
	return ""
}
