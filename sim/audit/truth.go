package audit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// truth is the ground truth of a run: which process counted what, when, under
// which window. It is kept for as long as a replica may hold the counts.
type truth struct {
	world     *sim.World
	gossip    gossip.Config // with the longest intervals of all daemons
	quickest  gossip.Config // with the shortest ones
	maxOffset time.Duration
	naive     bool // counts alone decide, without extrapolation
	owners    bool // keys of strict limits have owners

	processes     []*process // in the order in which they started
	byIncarnation map[crdt.Incarnation]*process
	sender        *process   // of the latest message: all auditors ask for it
	up            []*process // by Daemon.Index, nil when down
	starts        []int      // by Daemon.Index: processes so far

	counters map[counterKey]*counter
	recent   [8192]*counter // some of counters, by the hash of the key
	all      []*counter     // in the order in which they came
	free     []*window
	opened   int // windows since the last sweep
	// forgotten is the end of the latest window that was dropped, Unix ms.
	forgotten int64
	// closed is called for each window that is dropped.
	closed []func(*counter, *window)
	// cramped is true where replicas may lack room for keys or cells, rescopes
	// where the scope of a rule may change.
	cramped, rescopes bool
	scopes            map[crdt.Key]*keyScope

	// least and most are how far window clocks were ahead of virtual time, ms.
	least, most int64
	inForce     []time.Duration // by rule set: since when no daemon has an older one
	noRoom      bool            // a replica refused cells for want of room
	restored    []restore       // by region

	entry  entry
	tokens map[uint64]*charge // of refunds
	refund refund             // the latest
}

// process is one run of a daemon, which counts under one incarnation.
type process struct {
	index       int
	incarnation crdt.Incarnation
	daemon      *sim.Daemon
	region      int
	born        time.Duration // where its monotonic clock was 0
	up          bool
	ahead       []int64 // by shard: its latest clock minus virtual time, ms
	// heirs are the regional peers that have all its counts before left, of a
	// process that has left.
	heirs []*process
	left  time.Duration
	// crashed is when it ended without that, 0 for never.
	crashed time.Duration
}

// handedOver reports whether the counts of a process that left are still known:
// a process that is up got them, and no two of the region crashed since, which
// may have been those that kept a key.
func (t *truth) handedOver(p *process) bool {
	crashes := 0
	for _, o := range t.processes {
		if o.region == p.region && o.crashed > p.left {
			crashes++
		}
	}
	return crashes < 2 && slices.ContainsFunc(p.heirs, func(o *process) bool { return o.up })
}

// restore is how often a region restored counts of lost incarnations, and when
// it last did. Restores at one instant go back to the same counts.
type restore struct {
	times uint64
	last  time.Duration
}

// entry is the latest decision with its place in the ground truth.
type entry struct {
	process *process
	shard   int
	now     int64 // clock of the daemon, Unix ms
	counter *counter
	window  *window
	before  uint64 // charged in the window before this
	// charged is the hits counted, admitted those within the limit: fewer in
	// shadow mode and with charge_denied. free is admitted by on_failure.
	charged, admitted, free uint64
	usage                   usage
}

// fewKeys is the number of keys that every daemon has room for.
const fewKeys = 1_000

func newTruth(w *sim.World) *truth {
	cfg := w.Config()
	t := &truth{
		world: w, gossip: cfg.Node.Gossip.WithDefaults(), naive: cfg.Node.Naive || cfg.Policy == sim.Naive,
		maxOffset: cmp.Or(cfg.Node.Clock.MaxOffset, hlc.DefaultMaxOffset), owners: cfg.HasOwners(),
		byIncarnation: make(map[crdt.Incarnation]*process), up: make([]*process, len(w.Daemons())), starts: make([]int, len(w.Daemons())),
		counters: make(map[counterKey]*counter), tokens: make(map[uint64]*charge), scopes: make(map[crdt.Key]*keyScope), forgotten: math.MinInt64,
		least: math.MaxInt64, most: math.MinInt64, restored: make([]restore, len(w.Regions())),
	}
	t.quickest = t.gossip
	for _, d := range w.Daemons() {
		s := d.Settings()
		g := &s.Gossip
		t.gossip.Interval, t.gossip.WANInterval = max(t.gossip.Interval, g.Interval), max(t.gossip.WANInterval, g.WANInterval)
		t.quickest.Interval, t.quickest.WANInterval = min(t.quickest.Interval, g.Interval), min(t.quickest.WANInterval, g.WANInterval)
		t.cramped = t.cramped || s.Gossip.MaxCells < gossip.DefaultMaxCells || s.MaxKeys < fewKeys
	}
	t.rescopes = slices.ContainsFunc(cfg.Faults, func(f sim.Fault) bool { return f.Rules != nil })
	for i := range cfg.Workloads { // a limit of a call is of all daemons
		t.rescopes = t.rescopes || cfg.Workloads[i].Override.Share > 0
	}
	return t
}

// auditor returns the hooks that keep the ground truth.
func (t *truth) auditor() *sim.Auditor {
	return &sim.Auditor{Decided: t.decided, Refunded: t.refunded, Stepped: t.stepped, Happened: t.happened, Restarted: t.restarted, Down: t.down}
}

// restarted adds a process. One that reuses the incarnation of an earlier one
// is the same process in the ground truth.
func (t *truth) restarted(d *sim.Daemon) {
	incarnation := d.Incarnations()[0]
	p := t.byIncarnation[incarnation]
	if p == nil {
		p = &process{index: len(t.processes), incarnation: incarnation, daemon: d, region: d.RegionIndex}
		t.processes = append(t.processes, p)
		t.byIncarnation[incarnation] = p
	}
	now, at := t.world.Now(), d.Instant(t.world.Now())
	p.born, p.up = now-at.Mono, true
	p.ahead = make([]int64, len(d.Nodes))
	t.up[d.Index] = p
	t.starts[d.Index]++
	for s, n := range d.Nodes { // the rules were set at this instant
		t.clock(p, s, n.Millis(at))
	}
}

func (t *truth) down(d *sim.Daemon) {
	if p := t.up[d.Index]; p != nil {
		if p.up = false; len(p.heirs) == 0 {
			p.crashed = t.world.Now()
		}
	}
	t.up[d.Index] = nil
}

// clock notes a reading of a window clock at the current virtual time.
func (t *truth) clock(p *process, shard int, millis int64) {
	ahead := millis - t.world.Now().Milliseconds()
	p.ahead[shard] = ahead
	t.least, t.most = min(t.least, ahead), max(t.most, ahead)
}

// noteSets notes which rule sets no daemon has in force any more.
func (t *truth) noteSets() {
	n := len(t.world.Sets())
	if len(t.inForce) == n {
		return
	}
	oldest := n - 1
	for _, d := range t.world.Daemons() {
		if d.Up {
			oldest = min(oldest, d.Set)
		}
	}
	for len(t.inForce) <= oldest {
		t.inForce = append(t.inForce, t.world.Now())
	}
}

// oldestSet returns the number of the oldest rule set that was in force
// anywhere at a time.
func (t *truth) oldestSet(at time.Duration) int {
	i := len(t.inForce) - 1
	for i > 0 && t.inForce[i] > at {
		i--
	}
	return i
}

// skew returns how far window clocks stood apart at most so far.
func (t *truth) skew() time.Duration { return time.Duration(max(0, t.most-t.least)) * time.Millisecond }

// ahead returns how far the window clocks of processes that are up are ahead of
// virtual time at least and at most, in ms.
func (t *truth) ahead() (least, most int64) {
	least, most = math.MaxInt64, math.MinInt64
	for _, p := range t.up {
		if p != nil {
			least, most = min(least, slices.Min(p.ahead)), max(most, slices.Max(p.ahead))
		}
	}
	return least, most
}

// slowest returns the least window clock of the processes that are up, Unix ms.
func (t *truth) slowest() int64 {
	least, _ := t.ahead()
	return sat.AddInt(least, t.world.Now().Milliseconds())
}

// sentAt returns the virtual time of a nonce, a monotonic reading in units of
// gossip.NonceUnit.
func (p *process) sentAt(nonce uint64) time.Duration {
	return p.born + time.Duration(nonce)*gossip.NonceUnit
}

// stepped reads the clock after a message. After a tick nothing is read: a
// reading could move a clock that is about to adopt a leap.
func (t *truth) stepped(d *sim.Daemon, m *gossip.Message, _ error) {
	if p := t.up[d.Index]; p != nil && m != nil {
		t.clock(p, m.Shard, d.Nodes[m.Shard].Millis(d.Instant(t.world.Now())))
	}
}

// accepted returns the processes that sent and accepted a message, false for
// other inputs and for a sender that never started.
func (t *truth) accepted(d *sim.Daemon, m *gossip.Message, err error) (from, to *process, ok bool) {
	if m == nil || err != nil {
		return nil, nil, false
	}
	from, to = t.from(m), t.up[d.Index]
	return from, to, from != nil && to != nil
}

// from returns the process that sent a message, nil if it never started.
func (t *truth) from(m *gossip.Message) *process {
	if t.sender == nil || t.sender.incarnation != m.From {
		t.sender = t.byIncarnation[m.From]
	}
	return t.sender
}

func (t *truth) happened(d *sim.Daemon, e gossip.Event) {
	switch e.Kind {
	case gossip.CellRefused:
		t.noRoom = t.noRoom || e.Reason == gossip.NoRoom
	case gossip.CountsRestored:
		r := &t.restored[d.RegionIndex]
		if now := t.world.Now(); r.times == 0 || r.last != now {
			r.times, r.last = r.times+1, now
		}
	}
}

// anyRestored reports whether any region counted lost counts again.
func (t *truth) anyRestored() bool {
	return slices.ContainsFunc(t.restored, func(r restore) bool { return r.times > 0 })
}

// decided enters a decision.
func (t *truth) decided(d *sim.Decided) {
	p := t.up[d.Daemon.Index]
	e := &t.entry
	*e = entry{process: p, shard: node.ShardOf(d.Key, len(d.Daemon.Nodes)), now: d.Clock}
	if p == nil {
		return
	}
	t.clock(p, e.shard, d.Clock)
	t.noteSets()
	if d.Limit == nil {
		return
	}
	if l := d.Limit; !d.Peek && (l.ChargeDenied || d.Allowed && (!d.Status.Over || l.Shadow)) {
		e.charged = d.Hits
	}
	if !d.Peek && d.Allowed && !d.Status.Over {
		e.admitted = d.Hits
	}
	// A daemon without room for a key reports only that.
	if why := d.Status.Degraded; d.Limit.OnFailure == rules.Allow && (ownerless(why) || rightless(why) || why == node.KeysFull) {
		e.free = e.admitted
	}
	if isOverride(d) { // no rights and no owner bound its hits
		e.free = e.admitted
	}
	t.enter(d)
	t.use(d)
	t.charge(d)
	if t.opened > sweepAfter {
		t.sweep(t.slowest())
	}
}

// isOverride reports whether the limit of a decision came with the call.
func isOverride(d *sim.Decided) bool { return d.Rule == nil || d.Rule.Limit != d.Limit }

// checkable reports whether the latest decision is of a limit that denies by
// its own count, and is in the ground truth.
func (t *truth) checkable(d *sim.Decided) bool {
	l := d.Limit
	return t.entry.counter != nil && l != nil && !l.Shadow && !l.Unlimited
}

// homed reports whether owners decide the hits of a limit.
func (t *truth) homed(l *rules.Limit) bool { return t.owners && l.Homed() }

// ownerless reports whether an answer was given without the owner of a key.
func ownerless(d node.Degraded) bool { return d == node.OwnerUnreachable || d == node.CircuitOpen }

// rightless reports whether an answer was given without rights.
func rightless(d node.Degraded) bool { return d == node.NoRights || d == node.NoCluster }

// name returns the name of a process in descriptions.
func (p *process) name() string { return p.daemon.Name }

// endedAhead returns how often acceptors have corrected an end of watermarks in
// the future.
func (t *truth) endedAhead() (n uint64) {
	for _, d := range t.world.Daemons() {
		n += d.EndedAhead
	}
	return n
}
