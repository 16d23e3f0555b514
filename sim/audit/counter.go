package audit

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// The ground truth is swept when sweepAfter windows were opened since the last
// sweep. A window is kept for keepWindows ms beyond its end.
const (
	sweepAfter  = 4_096
	keepWindows = 20_000
)

// counterKey names a counter: a key, and the domain that shares its counts.
type counterKey struct {
	key crdt.Key
	// domain is everywhere for scope global, the index of a region, or the
	// index of a daemon after all regions.
	domain int
}

const everywhere = -1

// counter is the ground truth of one key.
type counter struct {
	counterKey
	rule    *rules.Rule  // of its latest decision
	overage *ruleOverage // of that rule, nil if it was not needed yet
	full    bool         // a window that is over reached the limit
	latest  *window      // that was looked up, one of windows or nil
	// unsure is true after a replica had no room for the key, rescoped when the
	// key was counted under other scopes too.
	unsure, rescoped bool
	// overridden is true after a limit of a call was in force for the key.
	overridden bool
	windows    []*window // by start
	loads      *keyLoads // nil where no prior needs them
	refunds    []step    // of the counter, by time; their sums are of all so far
	bucket     bucket    // of a bucket
	spent      spent     // of its rights
	log        summary   // of a log, whose cells are no windows
	logStart   int64
}

// window is the ground truth of one window of a counter: of a log or a bucket,
// of one cell interval.
type window struct {
	start int64 // Unix ms
	// end is from when on no replica uses the window, least from when on those
	// with the shortest of the rules that charged it do not.
	end, least int64
	limit      uint64
	rights     uint64 // the most in force, of all daemons
	charged    uint64
	refunded   uint64 // of those charged
	admitted   uint64 // and not refunded
	free       uint64 // of those admitted, without an owner or by a limit of the call
	requested  uint64
	counts     []count  // by process, in the order in which they came
	first      [6]int32 // the processes of the first counts
	unsure     bool     // hits may be counted elsewhere, or nowhere
	summary    summary
	near       *nearWindow // while the key is near its limit, else nil
}

// count is what one process counted in a window.
type count struct {
	process                 int
	charged, admitted, free uint64 // as those of the window
	refunded                uint64
	steps, backs            []step // of charges and of refunds
}

// net returns the hits that count.
func (w *window) net() uint64 { return w.charged - w.refunded }

func (c *count) net() uint64 { return c.charged - c.refunded }

// step is the sum of charges, or of refunds, up to a time, that of the latest.
type step struct {
	at  time.Duration
	sum uint64
}

// summary is the overage auditor's finding about a window.
type summary struct {
	any         bool // hits were admitted
	reached     bool // as many as the limit
	over, bound float64
}

// domainOf returns the domain of a limit's counter at a daemon.
func domainOf(l *rules.Limit, d *sim.Daemon) int {
	switch l.Scope {
	case rules.Region:
		return d.RegionIndex
	case rules.NodeLocal:
		return sim.MaxRegions + d.Index
	}
	return everywhere
}

// intervalOf returns the start and length of the cell interval that hits are
// counted in, and for how long beyond its end it is used.
func intervalOf(l *rules.Limit, now int64) (start, length, carry int64) {
	length = l.Window()
	if quota.Of(l).Drains() || quota.Of(l).Stamped() {
		return quota.Of(l).Shared(&quota.Cell{}, now)
	}
	if quota.Of(l).Weighted() {
		carry = length
	}
	return now - now%length, length, carry
}

// enter adds the latest decision to its counter.
func (t *truth) enter(d *sim.Decided) {
	e := &t.entry
	k := counterKey{d.Key, domainOf(d.Limit, d.Daemon)}
	place := &t.recent[uint64(k.key)%uint64(len(t.recent))]
	c := *place
	if c == nil || c.counterKey != k {
		c = t.counters[k]
		*place = c
	}
	if c == nil {
		c = &counter{counterKey: k, bucket: bucket{at: d.At}}
		t.counters[k], *place = c, c
		t.all = append(t.all, c)
	}
	if isOverride(d) {
		c.overridden = true
	} else if c.rule != d.Rule {
		c.rule, c.overage = d.Rule, nil
	}
	if t.rescopes {
		t.rescope(c, d.Limit.Scope)
	}
	start, length, carry := intervalOf(d.Limit, e.now)
	end := start + length + carry
	least := end
	if isOverride(d) && d.Rule != nil && d.Rule.Limit != nil && d.Rule.Limit.Grid() == d.Limit.Grid() && quota.Of(d.Rule.Limit).Weighted() {
		end = start + 2*length // its hits count for the rule too
	}
	unsure := t.unsure(d.Status.Degraded)
	w := c.window(start)
	if w == nil {
		c.unsure = c.unsure || unsure
		if e.charged == 0 && quota.Of(d.Limit).Stamped() {
			e.counter = c // a window for each denial would be many
			return
		}
		w = t.open(c, start, end)
	}
	w.limit, w.rights = max(w.limit, quota.Of(d.Limit).Capacity()), max(w.rights, rightsOf(d.Limit))
	w.end, w.least = max(w.end, end), min(w.least, least)
	w.unsure = w.unsure || unsure
	c.unsure = c.unsure || w.unsure
	e.counter, e.window, e.before = c, w, w.net()
	w.free += e.free
	w.requested += d.Hits
	if e.charged > 0 {
		w.add(e.process.index, d.At, e.charged, e.admitted)
		w.count(e.process.index).free += e.free
	}
}

// rightsOf returns the sum of all rights of a limit: unbounded if it has none.
func rightsOf(l *rules.Limit) uint64 {
	switch {
	case !l.HasRights():
		return math.MaxUint64
	case quota.Of(l).Drains():
		return l.TotalBurst()
	}
	return l.Total()
}

// unsure reports whether an answer shows that its hits may not have been
// counted under their key. An answer about something else, like a clock, hides
// whether there was room.
func (t *truth) unsure(d node.Degraded) bool {
	return d == node.KeysFull || d == node.CellsFull || d != node.NotDegraded && (t.cramped || t.noRoom)
}

// uncertain reports whether the counts of a decision are not certain, because a
// replica had no room.
func (e *entry) uncertain(l *rules.Limit) bool {
	if quota.Of(l).Resets() && e.window != nil {
		return e.window.unsure
	}
	return e.counter.unsure
}

// rescope marks all counters of a key that is counted under a scope other than
// the first.
func (t *truth) rescope(c *counter, scope rules.Scope) {
	x, ok := t.scopes[c.key]
	switch {
	case !ok:
		t.scopes[c.key] = &keyScope{first: scope}
	case x.changed: // before this counter came
		c.rescoped = true
	case x.first != scope:
		x.changed = true
		for _, o := range t.all {
			o.rescoped = o.rescoped || o.key == c.key
		}
	}
}

// keyScope is the first scope of a key, and whether another one followed.
type keyScope struct {
	first   rules.Scope
	changed bool
}

// window returns the window of a start, nil for none.
func (c *counter) window(start int64) *window {
	if c.latest == nil || c.latest.start != start {
		i, ok := c.search(start)
		if !ok {
			return nil
		}
		c.latest = c.windows[i]
	}
	return c.latest
}

func (c *counter) search(start int64) (int, bool) {
	return slices.BinarySearchFunc(c.windows, start, func(w *window, start int64) int {
		return int(max(-1, min(1, w.start-start)))
	})
}

// open adds a window to a counter.
func (t *truth) open(c *counter, start, end int64) *window {
	t.opened++
	w := &window{}
	if n := len(t.free); n > 0 {
		w = t.free[n-1]
		t.free = t.free[:n-1]
	}
	*w = window{start: start, end: end, least: end, counts: w.counts[:0]}
	i, _ := c.search(start)
	c.windows = slices.Insert(c.windows, i, w)
	return w
}

func (w *window) add(process int, at time.Duration, charged, admitted uint64) {
	w.charged += charged
	w.admitted += admitted
	c := w.count(process)
	if c == nil {
		n := len(w.counts)
		w.counts = slices.Grow(w.counts, 1)[:n+1]
		c = &w.counts[n]
		if n < len(w.first) {
			w.first[n] = int32(process)
		}
		*c = count{process: process, steps: c.steps[:0], backs: c.backs[:0]}
		if c.steps == nil {
			c.steps = make([]step, 0, 4)
		}
	}
	c.charged += charged
	c.admitted += admitted
	c.steps = append(c.steps, step{at, c.charged})
}

// count returns the count of a process in the window, nil for none.
func (w *window) count(process int) *count {
	known := min(len(w.counts), len(w.first))
	if i := slices.Index(w.first[:known], int32(process)); i >= 0 {
		return &w.counts[i]
	}
	for i := known; i < len(w.counts); i++ {
		if w.counts[i].process == process {
			return &w.counts[i]
		}
	}
	return nil
}

// before returns the sum of steps before a time.
func before(steps []step, at time.Duration) uint64 {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].at >= at })
	if i == 0 {
		return 0
	}
	return steps[i-1].sum
}

// steepest returns the greatest rate, in hits per nanosecond, that the count
// showed over an interval or longer, as seen with a delay.
func (c *count) steepest(now, delay, interval time.Duration) float64 {
	best := 0.0
	for i := len(c.steps) - 1; i >= 0; i-- {
		hits := c.charged
		if i > 0 {
			hits -= c.steps[i-1].sum
		}
		over := max(interval, now-c.steps[i].at-delay)
		best = max(best, float64(hits)/float64(over))
		if float64(c.charged)/float64(over) <= best {
			break // no earlier start can be steeper
		}
	}
	return best
}

// sweep drops windows that no replica uses any more, by the slowest clock.
func (t *truth) sweep(slowest int64) {
	t.opened = 0
	kept := t.all[:0]
	for _, c := range t.all {
		n := 0
		for n < len(c.windows) && c.windows[n].end+keepWindows < slowest {
			w := c.windows[n]
			t.close(c, w)
			t.forgotten = max(t.forgotten, w.end)
			t.free = append(t.free, w)
			n++
		}
		c.windows, c.latest = slices.Delete(c.windows, 0, n), nil
		if len(c.windows) == 0 {
			t.close(c, &window{summary: c.log})
			delete(t.counters, c.counterKey)
			t.recent[uint64(c.key)%uint64(len(t.recent))] = nil
		} else {
			kept = append(kept, c)
		}
	}
	clear(t.all[len(kept):])
	t.all = kept
}

// close reports a window that is dropped.
func (t *truth) close(c *counter, w *window) {
	for _, f := range t.closed {
		f(c, w)
	}
}

// closeAll reports all windows that are left, at the end of a run.
func (t *truth) closeAll(f func(*counter, *window)) {
	for _, c := range t.all {
		for _, w := range c.windows {
			f(c, w)
		}
		f(c, &window{summary: c.log})
	}
}

// usage is the part of a limit that the whole world had used at a decision, in
// hits, by the clock of the replica that decided.
type usage struct {
	// before is charged before the decision, admitted is admitted with it.
	before, admitted float64
	// mixed is true while replicas have different limits of a bucket in force.
	mixed bool
}

// bucket is the level of one bucket of the whole world.
type bucket struct {
	level      float64 // hits
	at         time.Duration
	rate       float64 // hits per ns
	burst      uint32
	fill       time.Duration // to fill an empty one
	mixedUntil time.Duration
	first      map[int]time.Duration // when each process first decided on it
	busy       time.Duration         // since when it was never full
	charged    map[int]float64       // since then, by process
}

// use fills in the usage of the latest decision.
func (t *truth) use(d *sim.Decided) {
	e := &t.entry
	u, l := &e.usage, d.Limit
	switch {
	case quota.Of(l).Drains():
		t.useBucket(d)
		return
	case quota.Of(l).Stamped():
		for _, w := range e.counter.within(e.now, l) {
			u.before += float64(w.net())
			u.admitted += float64(w.admitted)
		}
		u.before -= float64(e.charged)
		return
	}
	u.before, u.admitted = float64(e.before), float64(e.window.admitted)
	if prev := e.prev(l); prev != nil {
		u.before += e.weight(l, prev.net())
		u.admitted += e.weight(l, prev.admitted)
	}
}

// within returns the stamps of a log in the window that ends now.
func (c *counter) within(now int64, l *rules.Limit) []*window {
	i := len(c.windows)
	for i > 0 && c.windows[i-1].start > now-l.Window() {
		i--
	}
	return c.windows[i:]
}

// prev returns the window before, where it counts by weight.
func (e *entry) prev(l *rules.Limit) *window {
	if !quota.Of(l).Weighted() {
		return nil
	}
	return e.counter.window(e.window.start - l.Window())
}

// left returns how much of the window is to come, in ms.
func (e *entry) left(l *rules.Limit) float64 { return float64(e.window.start + l.Window() - e.now) }

// weight returns the weighted count of the window before, rounded up.
func (e *entry) weight(l *rules.Limit, hits uint64) float64 {
	return math.Ceil(float64(hits) * e.left(l) / float64(l.Window()))
}

// useBucket drains the bucket of the world and charges it.
func (t *truth) useBucket(d *sim.Decided) {
	e, l := &t.entry, d.Limit
	b := &e.counter.bucket
	rate := float64(l.Requests) / float64(l.Window()*int64(time.Millisecond))
	fill := time.Duration(0)
	if rate > 0 {
		fill = time.Duration(min(float64(l.Burst)/rate, float64(sim.MaxDuration)))
	}
	// A replica may have drained it at another rate before it had these rules.
	changed, ever := t.world.Adopted()
	if ever && d.At < changed+2*fill+5*time.Second || b.burst != 0 && (b.rate != rate || b.burst != l.Burst) {
		b.mixedUntil = d.At + 2*fill + 5*time.Second
	}
	b.level = max(0, b.level-rate*float64(d.At-b.at))
	b.at, b.rate, b.burst, b.fill = d.At, rate, l.Burst, fill
	if b.first == nil {
		b.first, b.charged = make(map[int]time.Duration), make(map[int]float64)
	}
	if b.level == 0 {
		b.busy = d.At
		clear(b.charged)
	}
	if _, ok := b.first[e.process.index]; !ok {
		b.first[e.process.index] = d.At
	}
	e.usage = usage{before: math.Ceil(b.level), mixed: d.At < b.mixedUntil}
	b.level += float64(e.charged)
	b.charged[e.process.index] += float64(e.charged)
	e.usage.admitted = b.level
}

// learning reports whether a replica may hold more of a bucket for used than
// is, because it first decided on it lately: it cannot know when in a cell
// interval the hits of others came, until these have drained.
func (e *entry) learning(d *sim.Decided) bool {
	if !quota.Of(d.Limit).Drains() {
		return false
	}
	_, length, _ := intervalOf(d.Limit, e.now)
	b := &e.counter.bucket
	return d.At-b.first[e.process.index] <= time.Duration(length)*time.Millisecond+b.fill
}
