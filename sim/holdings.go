package sim

import (
	"time"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
	epochs "github.com/georld/rld/quota/epoch"
)

// holdings is what every process ever answered to hold of each label.
type holdings struct {
	rows  map[holdingKey]*holding
	swept int // rows when they were last looked through
}

// holdingKey names a label of a rule, and the region that it is of alone, -1
// for the world. total tells apart what was asked of one label in several
// units, as a bucket does; 0 is all of it together.
type holdingKey struct {
	rule   uint64
	window int64
	region int
	total  uint64
}

// holding is one label.
type holding struct {
	lives []lifeHolding
	sum   uint64 // of the greatest answers
	total uint64 // the greatest that was asked of
	asked time.Duration
}

// lifeHolding is the greatest answer that a process was given.
type lifeHolding struct {
	member int32 // in World.members
	amount uint64
}

// Rows not asked for in keepHoldings are dropped, when there are sweepHoldings.
const (
	keepHoldings  = time.Hour
	sweepHoldings = 1 << 16
)

// note takes in an answer; it returns the row when it raised what the process
// held, else nil.
func (h *holdings) note(k holdingKey, now time.Duration, member int32, total, amount uint64) *holding {
	row := h.rows[k]
	if row == nil {
		row = &holding{}
		if h.rows == nil {
			h.rows = make(map[holdingKey]*holding)
		}
		h.rows[k] = row
		h.sweep(now)
	}
	row.asked, row.total = now, max(row.total, total)
	life := row.of(member)
	if life == nil {
		row.lives = append(row.lives, lifeHolding{member: member})
		life = &row.lives[len(row.lives)-1]
	}
	if amount <= life.amount {
		return nil
	}
	row.sum = sat.Add(row.sum, amount-life.amount)
	life.amount = amount
	return row
}

// of returns what a process held, nil for nothing.
func (h *holding) of(member int32) *lifeHolding {
	for i := range h.lives {
		if h.lives[i].member == member {
			return &h.lives[i]
		}
	}
	return nil
}

// base is the greatest that a process ever held of a label.
func (h *holdings) base(k holdingKey, member int32) uint64 {
	if row := h.rows[k]; row != nil {
		if life := row.of(member); life != nil {
			return life.amount
		}
	}
	return 0
}

func (h *holdings) sweep(now time.Duration) {
	if len(h.rows) < max(sweepHoldings, 2*h.swept) {
		return
	}
	for k, row := range h.rows {
		if now-row.asked > keepHoldings {
			delete(h.rows, k)
		}
	}
	h.swept = len(h.rows)
}

// witness is a process's part in the epochs, of which the run takes note.
type witness struct {
	world  *World
	daemon *Daemon
	member int32 // the process, in World.members
	inner  node.Allotments
}

var _ node.Allotments = (*witness)(nil)

// Version implements node.Allotments.
func (r *witness) Version() uint64 { return r.inner.Version() }

// Allotment answers what the policy gives out of what is asked of.
func (r *witness) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epochs.Reason) {
	w := r.world
	total = w.portion(rule, total)
	amount, why := r.inner.Allotment(rule, total, x, carry, regional)
	region := -1
	if regional {
		region = r.daemon.RegionIndex
	}
	if amount > 0 {
		r.daemon.usedWindow = max(r.daemon.usedWindow, x)
	}
	w.held(r, holdingKey{rule, x, region, total}, total, amount)
	w.held(r, holdingKey{rule, x, region, 0}, total, amount)
	return amount, why
}

// PartOf implements node.Allotments.
func (r *witness) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	return r.inner.PartOf(peer, rule, r.world.portion(rule, total), x, carry, regional)
}

// RegionPart implements node.Allotments.
func (r *witness) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	return r.inner.RegionPart(region, rule, r.world.portion(rule, total), x, carry)
}

// RegionAllotment implements node.Allotments. What regions hold is theirs once, however
// many of their daemons ask.
func (r *witness) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epochs.Reason) {
	w := r.world
	total = w.portion(rule, total)
	amount, why := r.inner.RegionAllotment(rule, total, x, carry)
	k := holdingKey{rule, x, ofRegions, total}
	if row := w.holdings.note(k, w.now, int32(r.daemon.RegionIndex), total, amount); row != nil {
		w.tellHolders(r.daemon, x, row)
	}
	return amount, why
}

// ofRegions stands for a region in a holdingKey whose lives are regions.
const ofRegions = -2

// portion is what the policy gives out of a total that a node asked of.
func (w *World) portion(rule, total uint64) uint64 {
	if !w.cfg.Policy.plain() {
		return total
	}
	for i := w.newest(); i >= 0; i-- {
		if r := sharedRule(w.sets[i].set, rule); r != nil {
			return w.cfg.Policy.portion(total, r.Limit)
		}
	}
	return total
}

// held notes an answer and tells the auditors when it is more than before.
func (w *World) held(r *witness, k holdingKey, total, amount uint64) {
	if row := w.holdings.note(k, w.now, r.member, total, amount); row != nil {
		w.tellHolders(r.daemon, k.window, row)
	}
}

func (w *World) tellHolders(d *Daemon, window int64, row *holding) {
	for _, a := range w.auditors {
		if h, ok := a.(Holder); ok {
			h.Held(w, d, window, row.sum, row.total)
		}
	}
}
