package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// Outside is a region that does not take part in the liveness phase: the core,
// which is all others, must come to agree in spite of it.
type Outside struct {
	Region string
	State  uint8 // one of the next ones
}

// What becomes of a region outside the core.
const (
	regionLost uint8 = iota // all its daemons are down
	regionDeaf              // it receives nothing from the core
	regionMute              // the core receives nothing from it
)

// settleStep is how often the core is looked at, less often when the phase is
// longer than settleSteps of them.
const (
	settleStep  = 250 * time.Millisecond
	settleSteps = 2_000
	// freshLags is how old views may be at its end, in lags with the delay that
	// is drawn.
	freshLags = 10
)

// settle runs the liveness phase: load stops, the core is healed, all other
// faults become permanent, and the replicas of the core must agree within
// Settle. It returns false if they did not; Pending describes the reason.
func (w *World) settle() bool {
	if w.cfg.Settle == 0 || w.failed != nil {
		return false
	}
	w.heal()
	end := w.now + w.cfg.Settle
	step := max(settleStep, w.cfg.Settle/settleSteps)
	for w.now < end && w.failed == nil {
		w.runUntil(min(end, w.now+step))
		if w.pending = w.Pending(); w.pending == "" {
			return true
		}
	}
	if w.failed == nil && w.stepped > 0 { // what can be repaired was
		w.lenient = true
		w.pending = w.Pending()
	}
	return w.pending == ""
}

// heal stops the load and ends all faults that are not permanent.
func (w *World) heal() {
	w.load.stopped, w.healed = true, true
	for _, i := range slices.Clone(w.faults.active) {
		if f := &w.faults.all[i]; !f.crashes() || !f.Stay {
			w.faults.end(w, i)
		}
	}
	for _, o := range w.cfg.Outside {
		for _, d := range w.daemons {
			if d.Region == o.Region && o.State == regionLost {
				d.downs++
				w.crash(d)
			}
		}
	}
	for _, d := range w.daemons {
		w.auditors.stepped(d, nil, nil)
		d.clock.right(w.now, w.base)
		if d.Set != w.newest() {
			w.adopt(adoption{d.Index, w.newest()})
		}
	}
	w.network.relink(w)
}

// healed is a link without faults.
func (l Link) healed() Link { return Link{Delay: l.Delay, Jitter: l.Jitter, Uniform: l.Uniform} }

// severed reports whether a link leads out of the core or into it and stays
// cut.
func (w *World) severed(from, to *Daemon) bool {
	if !w.healed || from.Region == to.Region {
		return false
	}
	a, b := w.outside(from.Region), w.outside(to.Region)
	return a != nil && a.State == regionMute || b != nil && b.State == regionDeaf
}

func (w *World) outside(region string) *Outside {
	for i := range w.cfg.Outside {
		if o := &w.cfg.Outside[i]; o.Region == region {
			return o
		}
	}
	return nil
}

// core lists the daemons that have to agree, by region.
func (w *World) Core() [][]*Daemon {
	var core [][]*Daemon
	for r, local := range w.local {
		up := slices.DeleteFunc(slices.Clone(local), func(d *Daemon) bool { return !d.Up })
		if len(up) > 0 && w.outside(w.regions[r]) == nil {
			core = append(core, up)
		}
	}
	return core
}

// Pending returns the reason why the core does not agree yet, "" when it does.
// The core agrees when every replica is ready, every peer acknowledged all
// changes, all daemons of a region hold the same cells, and other regions hold
// its sums.
func (w *World) Pending() string {
	core := w.Core()
	if reason := w.pendingLinks(core); reason != "" {
		return reason
	}
	return w.disagreement(core)
}

// disagreement returns the first difference of the cells that the core must
// agree about, "" for none: the daemons of a region hold the same cells, and
// other regions hold the sums of them.
func (w *World) disagreement(core [][]*Daemon) string {
	for _, alike := range byShards(core) {
		for s := range alike[0][0].settings.Shards {
			if reason := w.pendingCells(alike, s); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// byShards splits a core into those that do not refuse each other.
func byShards(core [][]*Daemon) [][][]*Daemon {
	var all [][][]*Daemon
	for _, local := range core {
		for _, d := range local {
			i := slices.IndexFunc(all, func(c [][]*Daemon) bool { return !d.refuses(c[0][0]) })
			if i < 0 {
				i, all = len(all), append(all, nil)
			}
			if n := len(all[i]); n > 0 && all[i][n-1][0].Region == d.Region {
				all[i][n-1] = append(all[i][n-1], d)
			} else {
				all[i] = append(all[i], []*Daemon{d})
			}
		}
	}
	return all
}

// pendingLinks checks the states that the replicas know of each other.
func (w *World) pendingLinks(core [][]*Daemon) string {
	all := slices.Concat(core...)
	in := make(map[crdt.Incarnation]*Daemon)
	for _, d := range all {
		in[d.incarnations[0]] = d
	}
	// A clock far ahead makes windows that others rightly refuse until their
	// time has come, so acknowledgements prove nothing then.
	apart := apart(w)
	oldest := freshLags*(w.cfg.Lag()+2*w.cfg.Network.Region.Jitter+2*w.cfg.Network.Across.Jitter) + 2*w.cfg.Node.Gossip.MaxHeartbeat(len(w.daemons))
	w.heads.look(w, all, oldest)
	for _, d := range all {
		at := d.Instant(w.now)
		want := -1
		for _, o := range all {
			if !d.refuses(o) {
				want++
			}
		}
		for s, n := range d.Nodes {
			if !n.Synced() {
				return fmt.Sprintf("%s, shard %d: not ready", d.Name, s)
			}
			met := 0
			for l := range n.Links(at) {
				peer := in[l.Peer.ID]
				if peer == nil {
					continue
				}
				met++
				if l.Unsent < 0 || l.Unsent > oldest {
					return fmt.Sprintf("%s, shard %d: its view of %s is %v old, want at most %v", d.Name, s, peer.Name, l.Unsent, oldest)
				}
				if l.Acked < w.heads.due(d, s, &l) && !apart && len(fullKeys(s, peer)) == 0 {
					return fmt.Sprintf("%s, shard %d: %s acknowledged %d of %d", d.Name, s, peer.Name, l.Acked, l.Head)
				}
			}
			if met != want {
				return fmt.Sprintf("%s, shard %d: knows %d of %d peers", d.Name, s, met, want)
			}
		}
	}
	return ""
}

// linkOf names a link of one shard of a daemon.
type linkOf struct {
	daemon, shard int
	peer          crdt.Incarnation
}

// heads are the versions of links that the latest looks found. Cells change
// without load, too: those of windows that end are made to last as long as
// others, and a deaf region repeats that it refused some.
type heads struct {
	at          time.Duration // of now
	now, before map[linkOf]uint64
}

// look finds the versions again if those of the latest look are of an age.
func (h *heads) look(w *World, all []*Daemon, age time.Duration) {
	if h.now != nil && w.now-h.at < age {
		return
	}
	h.at, h.before, h.now = w.now, h.now, map[linkOf]uint64{}
	for _, d := range all {
		for s, n := range d.Nodes {
			for l := range n.Links(d.Instant(w.now)) {
				h.now[linkOf{d.Index, s, l.Peer.ID}] = l.Head
			}
		}
	}
}

// due returns the version that a peer must have acknowledged: the latest one,
// or one that was found at least an age ago.
func (h *heads) due(d *Daemon, shard int, l *gossip.Link) uint64 {
	if before, ok := h.before[linkOf{d.Index, shard, l.Peer.ID}]; ok {
		return min(before, l.Head)
	}
	return l.Head
}

// pendingCells compares what one shard of the core's daemons holds.
func (w *World) pendingCells(core [][]*Daemon, shard int) string {
	low, high := w.Clocks(core)
	moved := w.Rescoped()
	sums, mixed := make([]map[windowOf]crdt.PN, len(core)), make([]map[windowOf]uint64, len(core)) // of each region, by its own daemons
	states := make([][]gossip.Cell, len(core))
	reloaded := len(w.sets) > 1 && !apart(w)
	full := fullKeys(shard, slices.Concat(core...)...)
	early := endedEarly(w, core, shard, high)
	for r, local := range core {
		all := make([][]gossip.Cell, len(local))
		for i, d := range local {
			cells := shared(d.Nodes[shard].Cells(d.Instant(w.now), nil), gossip.RegionIncarnation(d.Region), low, high)
			if w.lenient {
				cells = slices.DeleteFunc(cells, misjudged(w))
				cells = slices.DeleteFunc(cells, func(c gossip.Cell) bool { return early[windowOf{c.Key, c.Window}] })
			}
			if len(full) > 0 {
				cells = slices.DeleteFunc(cells, func(c gossip.Cell) bool { return full[c.Key] })
			}
			if reloaded {
				cells = current(cells, high)
			}
			all[i] = cells
		}
		states[r] = union(local, all, shard)
		sums[r], mixed[r] = sentSums(local, shard, states[r], moved)
		holders := cellHoldersOf(w, local, shard)
		for i, d := range local {
			lacks := func(c gossip.Cell) bool { return !holders.keeps(i, c.CellID) }
			want := slices.DeleteFunc(slices.Clone(states[r]), lacks)
			if c, differ := firstDifference(want, slices.DeleteFunc(all[i], lacks)); differ {
				return fmt.Sprintf("shard %d: %s and its region differ in %v", shard, d.Name, c)
			}
		}
	}
	for r, local := range core {
		for o, other := range core {
			if r == o {
				continue
			}
			if reason := missingSum(states[o], sums[r], mixed[r], moved, gossip.RegionIncarnation(local[0].Region)); reason != "" {
				return fmt.Sprintf("shard %d: %s has of %s %s", shard, other[0].Region, local[0].Region, reason)
			}
		}
	}
	return ""
}

// Clocks returns the least and the greatest of the core's hybrid clocks, in
// Unix milliseconds, as their messages showed them. Daemons without a message
// do not count.
func (w *World) Clocks(core [][]*Daemon) (low, high int64) {
	for _, d := range slices.Concat(core...) {
		if d.stamp == 0 {
			continue
		}
		at := d.stamp.Millis() + (w.now - d.stampAt).Milliseconds()
		if low == 0 || at < low {
			low = at
		}
		high = max(high, at)
	}
	return low, high
}

// shared leaves out the cells that not every daemon of the core must hold:
// those of windows that are over by one clock or too far ahead by another,
// those about rights, and a daemon's view of the sum of its own region.
func shared(cells []gossip.Cell, own crdt.Incarnation, low, high int64) []gossip.Cell {
	cells = slices.DeleteFunc(gossip.Live(cells, high), func(c gossip.Cell) bool {
		return !c.Kind.Counts() || c.Window > low || c.Kind == gossip.RegionSum && c.Incarnation == own
	})
	for i := range cells {
		cells[i].Carry = 0
	}
	return cells
}

// current leaves out the cells of windows that are over: after a reload, each
// daemon keeps them for as long as the limit needs by which it decided last.
// Logs always keep theirs.
func current(cells []gossip.Cell, high int64) []gossip.Cell {
	return slices.DeleteFunc(cells, func(c gossip.Cell) bool { return c.WindowLength > 1 && c.Window+c.WindowLength <= high })
}

// endedEarly returns the windows of which some cells are over by the greatest
// clock, which is ahead, and others count longer. Daemons with that clock hold
// these alone. They receive the others when the window is over by all clocks:
// then all its cells are made to count as long.
func endedEarly(w *World, core [][]*Daemon, shard int, high int64) map[windowOf]bool {
	early := map[windowOf]bool{}
	if !w.lenient || !apart(w) {
		return early
	}
	for _, d := range slices.Concat(core...) {
		for _, c := range d.Nodes[shard].Cells(d.Instant(w.now), nil) {
			if c.Kind.Counts() && c.End(c.Window) <= high {
				early[windowOf{c.Key, c.Window}] = true
			}
		}
	}
	return early
}

// windowOf names a window of a key.
type windowOf struct {
	key    crdt.Key
	window int64
}

// rescoped returns the rules whose counts stayed in their regions at some time
// and did not at another: other regions need not know of them.
func (w *World) Rescoped() map[uint64]bool {
	was, moved := make(map[uint64]rules.Scope), make(map[uint64]bool)
	for i := range w.sets {
		for _, r := range w.sets[i].set.Rules() {
			if r.Limit == nil {
				continue
			}
			name := r.Shared()
			scope, seen := was[name]
			moved[name] = moved[name] || seen && scope != r.Limit.Scope
			was[name] = r.Limit.Scope
		}
	}
	return moved
}

// ownSums adds up the cells of a region's own daemons that others get to see:
// not where one of them stays in the region, since limits of other scopes came
// with calls. These windows are mixed.
func ownSums(cells []gossip.Cell, moved map[uint64]bool) (sums map[windowOf]crdt.PN, mixed map[windowOf]uint64) {
	sums, mixed = make(map[windowOf]crdt.PN), make(map[windowOf]uint64)
	for i := range cells {
		c := &cells[i]
		w := windowOf{c.Key, c.Window}
		switch {
		case c.Kind != gossip.Daemon:
		case c.Regional:
			mixed[w] = 0
		case !moved[c.Rule]:
			sums[w] = crdt.PN{P: sums[w].P + c.Value.P, N: sums[w].N + c.Value.N}
		}
	}
	maps.DeleteFunc(sums, func(w windowOf, _ crdt.PN) bool { _, is := mixed[w]; return is })
	return sums, mixed
}

// firstDifference returns the first cell that two states do not share. Rates
// are measurements and differ.
func firstDifference(a, b []gossip.Cell) (gossip.Cell, bool) {
	for i := range max(len(a), len(b)) {
		if i < min(len(a), len(b)) {
			x, y := a[i], b[i]
			if x.Rate, y.Rate = 0, 0; x == y {
				continue
			}
		}
		if i >= len(b) || i < len(a) && a[i].Compare(b[i].CellID) <= 0 {
			return a[i], true
		}
		return b[i], true
	}
	return gossip.Cell{}, false
}

// uncontrolled returns why the control log of the core does not work, "" when
// it does: all daemons have one record and know that it is current.
func uncontrolled(w *World) string {
	first := w.daemons[0]
	refused := slices.ContainsFunc(w.daemons, func(d *Daemon) bool { return d.refuses(first) })
	if w.cfg.Control == nil || refused {
		return ""
	}
	if len(w.cfg.Outside) > 0 && !controlMajority(w) {
		return "" // the region may come back: no reason to recover
	}
	if !anyRecord(w) {
		up := 0
		for _, d := range w.daemons {
			if d.Up && slices.Contains(w.cfg.Founders(), d.Name) {
				up++
			}
		}
		if 2*up <= len(w.cfg.Founders()) {
			return "" // the settings must name other founders
		}
		initControl(w, true) // those that had the record may have lost their disks
		return "the cluster has not begun"
	}
	if !controlMajority(w) {
		recoverControl(w, false)
		return "no majority of the voters of the control log is left"
	}
	if split(w) {
		recoverControl(w, true)
		return "the control log is split"
	}
	if twoClusters(w) {
		return "" // founders lost their disks, and with them that they began one
	}
	for _, d := range slices.Concat(w.Core()...) {
		if d.control.Status().Unread != 0 {
			w.crash(d)
			d.newer = true
			w.events.push(w.now, evStart, int32(d.Index))
			return d.Name + " cannot read the record of the control log"
		}
	}
	all := slices.Concat(w.Core()...)
	elects := func(d *Daemon) bool {
		s := d.control.Status()
		return s.Leads || s.Votes && control.Elects(d.control)
	}
	if !slices.ContainsFunc(all, elects) { // they count voters that are removed and gone
		if len(w.cfg.Outside) > 0 {
			return ""
		}
		recoverControl(w, false)
		return "no voter of the control log can be elected"
	}
	var same *Daemon
	leader := false
	ids := map[control.ID]*Daemon{}
	for _, d := range slices.Concat(w.Core()...) {
		s := d.control.Status()
		if o := ids[s.ID]; o != nil {
			return fmt.Sprintf("%s and %s have the id %v", o.Name, d.Name, s.ID)
		}
		ids[s.ID] = d
		leader = leader || s.Leads
		switch {
		case s.Hash == "":
			return d.Name + " has no record"
		case s.Starting:
			return d.Name + " does not know whether its record is current"
		case s.Unreported > 0:
			return d.Name + " has dropped commands that the record does not name"
		case same == nil:
			same = d
		case s.Version != same.control.Status().Version || s.Hash != same.control.Status().Hash:
			return fmt.Sprintf("%s has version %v of the record, and %s version %v", same.Name, same.control.Status().Version, d.Name, s.Version)
		}
	}
	if !leader {
		return "nobody leads the control log"
	}
	return ""
}
