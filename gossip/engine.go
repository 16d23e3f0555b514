package gossip

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// Engine replicates the cells of one shard of a daemon. It is a state machine:
// time and received messages are arguments, messages to send are results. It is
// not safe for concurrent use.
type Engine struct {
	cfg    Config
	self   Peer
	region crdt.Incarnation // the incarnation of the own region's sums
	shard  int
	shards int

	state       state
	links       links
	ids         []crdt.Incarnation // of links
	local       links              // those of the own region
	queue       queue              // of links
	dueLinks    []*link
	dispatched  dispatched
	unassigned  bool          // reassign is due
	assigned    time.Duration // when reassign was called last
	roles       roles
	retries     retries
	refused     []CellID // a buffer of resend
	restoration restoration
	base        uint64 // the greatest version that a former link may have used

	started   time.Duration // when the first members were set, -1 before
	synced    bool
	leaving   bool   // takes no share of the work any more
	expedited bool   // a cell was expedited since the last call of Messages
	merged    uint64 // received cells
	regrouped time.Duration
	expired   time.Duration // when cells were last checked for expiry
	floor     int64         // cells that end until here (Unix milliseconds) were dropped
	changes   []Change
	found     []located // cells of the current message
	picked    []pick    // cells for the current message
	order     pickOrder
	out       []Message // of the latest call of Messages
	room      cellRoom  // for their cells
	remote    remoteChanges
	ages      ages
	loads     loads
	events    []Event
}

// New returns an engine without peers or cells. self.ID is the incarnation it
// counts under. The configuration must be valid.
func New(cfg Config, self Peer, shard, shards int) *Engine {
	cfg = cfg.WithDefaults()
	e := &Engine{
		cfg: cfg, self: self, region: RegionIncarnation(self.Region),
		shard: shard, shards: shards, state: newState(cfg.MaxCells, cfg.HashSeed), started: -1,
		roles: roles{self: self}, queue: queue{silentAt: never}, dispatched: dispatched{at: never, prompt: never}, restoration: restoration{lost: LostIncarnation(self.Region)},
	}
	e.assign()
	return e
}

// Synced reports whether the engine received all cells of each live regional
// peer once, or waited long enough. From then on it takes its share of work.
func (e *Engine) Synced() bool { return e.synced }

// Leave makes the engine take no share of the region's work any more and
// announces that. It goes on sending its own counts, from now on without delay,
// and sends those of its peers, which may have ended: see scope.hasWriter. It
// goes on with the work too if no other daemon takes it over.
func (e *Engine) Leave(now time.Duration) {
	e.leaving, e.cfg.Quiet = true, 0
	e.state.release(now, 0)
	for _, l := range e.links {
		l.owe(now)
	}
	if e.roles.two { // its keys move, and their new pairs lack its counts
		e.reassign(now)
	} else {
		e.assign()
		for _, l := range e.links { // it may lack withheld sums, or counts of a peer that has ended
			e.resync(now, l)
		}
	}
}

// ready reports whether the daemon takes its share of the region's work.
func (e *Engine) ready() bool { return e.synced && !e.leaving }

// Expedited reports whether cells were expedited since the last call of
// Messages: call it soon.
func (e *Engine) Expedited() bool { return e.expedited }

// Size returns the number of cells in memory, and of cells received since the
// start.
func (e *Engine) Size() (cells int, merged uint64) { return e.state.byID.count, e.merged }

// Peers sets the live incarnations of all regions. A new one receives a resync.
// With more than quietLinks peers, one of another region that has no cells to
// receive gets its first message with its first heartbeat: most daemons of a
// large cluster never exchange counts.
// The link to a former one is dropped, but its counts stay. Peers that may lack
// them receive a resync: those of the region that a former peer sent sums of,
// and all after the loss of a regional peer. A peer that left in order gave up
// its work long before, so the loss changes no roles.
func (e *Engine) Peers(now time.Duration, peers []Peer) {
	if e.started < 0 {
		e.started = now
	}
	kept := make(links, 0, len(peers))
	peers = slices.Clone(peers)
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range peers {
		twice := len(kept) > 0 && kept[len(kept)-1].peer.ID == p.ID
		if p.ID == e.self.ID || p.ID == 0 || twice || len(kept) == MaxPeers {
			continue
		}
		l := linkOf(e, p.ID)
		if l == nil {
			l = e.join(now, p, len(peers) > quietLinks)
		}
		if l.nonce == 0 { // only membership knows
			l.ready = p.Ready
		}
		if l.peer.Ready && !p.Ready {
			l.ready = false // it leaves: its membership is that of all its shards
		}
		if l.peer.Name != p.Name {
			l.naming = namingOf(p.Name)
		}
		l.peer = p
		kept = append(kept, l)
	}
	var lost []*link
	next := 0
	for _, l := range e.links {
		for next < len(kept) && kept[next].peer.ID < l.peer.ID {
			next++
		}
		if next == len(kept) || kept[next] != l {
			e.queue.remove(l)
			e.leave(now, l)
			lost = append(lost, l)
		}
	}
	e.links, e.ids, e.queue.silentAt = kept, e.ids[:0], 0
	for _, l := range kept {
		e.ids = append(e.ids, l.peer.ID)
	}
	e.reassign(now)
	setBeats(e, now)
	for _, l := range e.links {
		if len(lost) > 0 && slices.ContainsFunc(lost, func(former *link) bool { return former.local || former.region == l.region }) {
			e.resync(now, l) // it may lack the last cells of the former peer
		}
	}
	e.sync(now)
}

// join makes the link of a new incarnation, with many peers or few.
func (e *Engine) join(now time.Duration, p Peer, many bool) *link {
	l := newLink(now, &e.cfg, e.self.Region, p, e.base, e.state.version)
	if l.local {
		e.regrouped = now
	}
	l.queue, l.sharded = &e.queue, e.shards > 1
	e.event(now, PeerJoined, p.ID, 0, 0)
	if l.resyncing = e.state.changes.first != none; l.resyncing {
		e.event(now, ResyncStarted, p.ID, 0, 0)
	}
	if many && !l.local {
		l.unused, l.second, l.lastSent, l.owedAt, l.behind = true, e.self.ID > p.ID, now, never, l.resyncing
	}
	e.queue.fix(l)
	return l
}

// leave ends the effects of a link that is dropped.
func (e *Engine) leave(now time.Duration, l *link) {
	if l.local {
		e.regrouped = now
	}
	l.clearRates(&e.state, now)
	e.base = max(e.base, l.base+e.state.version)
	e.event(now, PeerLeft, l.peer.ID, 0, 0)
}

// Live reports whether an incarnation is a live peer according to membership.
func (e *Engine) Live(id crdt.Incarnation) bool { return linkOf(e, id) != nil }

// linkOf returns the link of an incarnation, nil for none. Its search stays
// within a few cache lines, also with a thousand peers.
func linkOf(e *Engine, id crdt.Incarnation) *link {
	if i, ok := crdt.Search(e.ids, id); ok {
		return e.links[i]
	}
	return nil
}

// assign assigns the work of each region.
func (e *Engine) assign() {
	e.roles.assign(e.links, e.ready(), e.leaving)
	keepDigests(&e.state, !e.roles.two)
}

// reassign assigns the work of each region anew. Where it changes, the affected
// links start a resync: this daemon may now send cells that others summed.
func (e *Engine) reassign(now time.Duration) {
	was := e.roles.regions
	e.unassigned, e.assigned = false, now
	e.assign()
	if slices.Equal(e.roles.regions[0].ids, was[0].ids) {
		changed := changedRegions(was, e.roles.regions)
		for _, l := range e.links {
			if changed[l.region] {
				e.resync(now, l)
			}
		}
		return
	}
	recheck(e, now)
	e.state.clearSumRates() // another daemon may forward them now
	for _, l := range e.links {
		e.resync(now, l)
	}
}

// Daemons that start together announce that they are ready one after the other.
// From manyLinks peers on, a daemon assigns the work anew at most once in
// reassignPerLink for each peer, and not for each announcement.
const (
	manyLinks = 100
	// quietLinks is the number of peers above which links to other regions
	// without cells begin with a heartbeat.
	quietLinks      = 30
	reassignPerLink = 200 * time.Microsecond
)

// reassignAt returns when the engine may assign work anew because peers
// announced that they are ready or leave.
func reassignAt(e *Engine) time.Duration {
	if len(e.links) < manyLinks {
		return 0
	}
	return e.assigned + time.Duration(len(e.links))*reassignPerLink
}

// resync starts a resync of a peer, unless nothing was sent since the latest
// start. Messages that are considered lost count as sent: they may still arrive
// without the cells that this resync adds.
func (e *Engine) resync(now time.Duration, l *link) {
	if l.reached > l.base {
		l.resync(e.state.version)
		e.event(now, ResyncStarted, l.peer.ID, 0, 0)
	} else if e.state.changes.first != none {
		if !l.behind { // a message without changes stated that the peer has them all
			l.resyncing = true
			e.event(now, ResyncStarted, l.peer.ID, 0, 0)
		}
		l.rewind() // changes that were noted for others may be for this peer now
	} else {
		return
	}
	l.due = min(l.due, l.next(now))
	l.queue.fix(l)
}

// sync checks whether all cells of each live regional peer were received.
func (e *Engine) sync(now time.Duration) {
	if e.synced || e.started < 0 {
		return
	}
	late := now-e.started >= e.cfg.ReadyWithin
	missing := uint64(0)
	for _, l := range e.local {
		if !l.whole {
			missing = 1
		}
	}
	if missing > 0 && !late {
		return
	}
	e.synced = true
	e.event(now, BecameReady, 0, 0, missing)
	e.reassign(now)
	for _, l := range e.local { // they assign work to it
		l.owe(l.next(now))
	}
}

// Tick runs expiry and retry timers. Use Messages to send. wall is the window
// clock in Unix milliseconds.
func (e *Engine) Tick(now time.Duration, wall int64) {
	if now-e.expired >= expireEvery {
		e.expired, e.floor = now, wall-e.cfg.Grace.Milliseconds()
		e.state.expire(now, e.floor, max(e.state.cells.used/256, expireAtLeast))
	}
	called(e, now)
	if e.unassigned && now >= reassignAt(e) {
		e.reassign(now)
	}
	e.state.release(now, e.cfg.Quiet)
	dueLoads(e, now)
	e.refused = e.retries.due(now, e.refused[:0])
	e.state.resend(now, e.region, e.refused)
	e.restore(now)
	e.sync(now)
	checkSilence(e, now)
}

// checkSilence looks for peers that became silent.
func checkSilence(e *Engine, now time.Duration) {
	if now <= e.queue.silentAt {
		return
	}
	e.queue.silentAt = never
	moved := false
	for _, l := range e.links {
		switch at := l.silentAt(); {
		case l.silent:
		case now <= at:
			e.queue.silentAt = min(e.queue.silentAt, at)
		default:
			l.silent = true
			e.roles.heard(l)
			e.event(now, PeerSilent, l.peer.ID, 0, 0)
			moved = moved || e.leaving && l.local
			askRegion(e, now, l.region, false)
			takeOver(e, now, l)
		}
	}
	if moved { // others must get what the silent peer may not have
		e.reassign(now)
	}
}

// takeOver resyncs the daemons that take the part of a silent peer: they lack
// counts of this daemon of the keys that the peer aggregated.
func takeOver(e *Engine, now time.Duration, silent *link) {
	for _, l := range e.local {
		if l != silent && silent.local && e.roles.two {
			e.resync(now, l)
		}
	}
}

// Every expireEvery, one of 256 cells is checked for expiry, at least
// expireAtLeast: each check costs a cache miss.
const (
	expireEvery   = 100 * time.Millisecond
	expireAtLeast = 32
)

// restore restores lost counts, unless a regional peer may still have to send
// its cells.
func (e *Engine) restore(now time.Duration) {
	if len(e.restoration.checks) == 0 || !e.synced || now-e.regrouped < e.cfg.settleTime() || !e.links.current(now) {
		return
	}
	for _, gain := range e.restoration.restore(&e.state, &e.roles, now) {
		e.event(now, CountsRestored, 0, 0, gain)
	}
}

// idleFor is the longest time between two Ticks, and busyFor that while
// messages are due. Cells that end meanwhile wait for the next one.
const (
	idleFor = 10 * time.Second
	busyFor = time.Second
)

// Wake returns when there is work next: for Tick, or for Messages, at due.
func (e *Engine) Wake(now, due time.Duration) time.Duration {
	at := min(due, e.expired+idleFor, e.queue.silentAt)
	if r := e.retries.list; len(r) > 0 {
		at = min(at, r[0].at)
	}
	if q := e.loads.queue; len(q) > 0 {
		at = min(at, q[0].at)
	}
	if len(e.restoration.checks) > 0 || e.state.soonest <= e.floor {
		at = min(at, now+time.Second)
	}
	if w := e.state.delays.first; w != none {
		at = min(at, e.state.unsents.at(w).since+e.cfg.Quiet)
	}
	if !e.synced && e.started >= 0 {
		at = min(at, e.started+e.cfg.ReadyWithin)
	}
	if e.unassigned && len(e.links) >= manyLinks {
		at = min(at, reassignAt(e))
	}
	if at < now+busyFor { // a message that arrives may send all that is due
		at = min(at, e.expired+busyFor)
	}
	return max(at, now+time.Millisecond)
}
