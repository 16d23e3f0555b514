package gossip

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// Engine replicates the cells of one shard of a daemon: it says who is to be
// sent what, and takes in what others say. It is a state machine: time and
// messages are arguments, messages to send are results. It is not safe for
// concurrent use.
type Engine struct {
	cfg    Config
	self   Peer
	region crdt.Incarnation // the slot of our region
	lost   crdt.Incarnation // of what our region forgot
	shard  int
	shards int

	state state
	links []*link // by peer id
	teams []team  // by region; own first
	// arranged counts how often the work was shared out.
	arranged uint64
	busy     int    // daemons that share the work, of all regions
	told     uint64 // the greatest version that a link which is gone may have used

	started time.Duration // when the first members came, -1 before
	synced  bool
	leaving bool // takes no share any more
	urgent  bool // a cell was hurried since Messages was called
	merged  uint64
	// regrouped is when a daemon of the region came or went last.
	regrouped time.Duration
	swept     time.Duration
	retry     []retry
	retrying  map[CellID]struct{} // those of retry
	checks    []check
	changes   []Change
	restored  []Change
	picked    []int32 // cells for the message at hand
	events    []Event
}

// New returns an engine without peers or cells. self.ID is the slot it counts
// under. The configuration must be valid.
func New(cfg Config, self Peer, shard, shards int) *Engine {
	cfg = cfg.WithDefaults()
	e := &Engine{
		cfg: cfg, self: self, region: RegionIncarnation(self.Region), lost: LostIncarnation(self.Region),
		shard: shard, shards: shards, state: newState(cfg.MaxCells, cfg.HashSeed), started: -1,
	}
	e.share()
	return e
}

// Synced reports whether the engine heard each live peer of its region whole
// once, or waited long enough: from then on it takes its share of work.
func (e *Engine) Synced() bool { return e.synced }

// Leave makes the engine take no share of the region's work any more, and say
// so. It goes on telling what it counts, from now on without waiting. When
// nobody else takes the work over it goes on with that too.
func (e *Engine) Leave(now time.Duration) {
	e.leaving, e.cfg.Quiet = true, 0
	e.release(now)
	for _, l := range e.links {
		l.due = min(l.due, now)
	}
	e.share()
}

// ready reports whether the daemon takes its share of the region's work.
func (e *Engine) ready() bool { return e.synced && !e.leaving }

// Expedited reports whether cells were hurried since Messages was called: it is
// worth calling soon.
func (e *Engine) Expedited() bool { return e.urgent }

// Size returns how many cells are held, and how many told cells were taken in
// since the start.
func (e *Engine) Size() (cells int, merged uint64) { return e.state.byID.count, e.merged }

// Peers takes over the live incarnations of all regions. A new one is told
// everything; one that is gone is forgotten, but its counts stay.
func (e *Engine) Peers(now time.Duration, peers []Peer) {
	if e.started < 0 {
		e.started = now
	}
	kept := make([]*link, 0, len(peers))
	for _, p := range slices.SortedFunc(slices.Values(peers), func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) }) {
		twice := len(kept) > 0 && kept[len(kept)-1].peer.ID == p.ID
		if p.ID == e.self.ID || p.ID == 0 || twice || len(kept) == MaxPeers {
			continue
		}
		l := e.link(p.ID)
		if l == nil {
			l = e.join(now, p)
		}
		if l.peer.Ready && !p.Ready {
			l.ready = false // it leaves: its membership is of all its shards
		}
		l.peer = p
		kept = append(kept, l)
	}
	bereft := false
	for _, l := range e.links {
		if !slices.Contains(kept, l) {
			e.leave(now, l)
			bereft = bereft || l.local
		}
	}
	e.links = kept
	e.arrange(now)
	for _, l := range e.links {
		if bereft && l.local { // some may lack what the one that is gone told us last
			e.resync(now, l)
		}
	}
	e.sync(now)
}

// join makes the link of a new incarnation.
func (e *Engine) join(now time.Duration, p Peer) *link {
	l := e.newLink(now, p)
	if l.local {
		e.regrouped = now
	}
	e.event(now, PeerJoined, p.ID, 0, 0)
	e.event(now, ResyncStarted, p.ID, 0, 0)
	return l
}

// leave takes back what a link that is gone stood for.
func (e *Engine) leave(now time.Duration, l *link) {
	if l.local {
		e.regrouped = now
	}
	e.unrate(now, l)
	e.told = max(e.told, l.base+e.state.version)
	e.event(now, PeerLeft, l.peer.ID, 0, 0)
}

func (e *Engine) newLink(now time.Duration, p Peer) *link {
	l := &link{
		peer: p, local: p.Region == e.self.Region, incarnation: RegionIncarnation(p.Region), ready: p.Ready,
		// A peer that comes back acknowledges versions of the link before.
		base: e.told, sweepTo: e.state.version, sweeping: true, cursor: none, heardAt: -1, rtt: -1, joined: now,
		lastSent: -time.Hour, digestAt: now,
	}
	l.lag = 2 * e.interval(l)
	l.due = e.next(now, l)
	return l
}

// link returns the link of an incarnation, nil for none.
func (e *Engine) link(id crdt.Incarnation) *link {
	i, ok := slices.BinarySearchFunc(e.links, id, func(l *link, id crdt.Incarnation) int { return cmp.Compare(l.peer.ID, id) })
	if !ok {
		return nil
	}
	return e.links[i]
}

// Live reports whether an incarnation is a peer that lives, as membership knows.
func (e *Engine) Live(id crdt.Incarnation) bool { return e.link(id) != nil }

// interval is the time between two messages to a peer when nothing is urgent.
func (e *Engine) interval(l *link) time.Duration {
	quiet := min(e.cfg.Quiet, maxQuietInterval)
	if l.local {
		return max(e.cfg.Interval, quiet)
	}
	return max(e.cfg.WANInterval, quiet)
}

// maxQuietInterval is the longest time between two messages with a quiet
// interval: increments may wait longer, but a peer is heard.
const maxQuietInterval = time.Second

// next is when a link is due again: at the next multiple of its interval, so
// that the shards of a daemon, which share its clock, speak together.
func (e *Engine) next(now time.Duration, l *link) time.Duration {
	return (now/e.interval(l) + 1) * e.interval(l)
}

// share finds out who shares the work of each region.
func (e *Engine) share() {
	e.arranged++
	e.teams = []team{{region: e.self.Region, incarnation: e.region}}
	if e.ready() {
		e.teams[0].add(e.self.ID, e.self.Name)
	}
	e.busy = 1
	for _, l := range e.links {
		l.team = e.team(l.peer.Region)
		if l.ready {
			e.teams[l.team].add(l.peer.ID, l.peer.Name)
			e.busy++
		}
	}
	if e.leaving && len(e.teams[0].ids) == 0 {
		e.teams[0].add(e.self.ID, e.self.Name)
	}
}

// arrange shares out the work. Where that changed, the links it concerns are
// told everything again: cells that others summed up may be ours to tell now.
func (e *Engine) arrange(now time.Duration) {
	was := e.teams
	e.share()
	if e.teams[0].equal(&was[0]) {
		for _, l := range e.links {
			if !l.local && !sameTeam(was, e.teams, l.peer.Region) {
				e.resync(now, l)
			}
		}
		return
	}
	e.state.unrateSums() // who knows of their growth may be another now
	for _, l := range e.links {
		e.resync(now, l)
	}
}

// resync tells a peer everything again. One that was told nothing since the
// latest start needs no second one; one of which messages are taken for lost
// does, as they may still come, and what they left out with them.
func (e *Engine) resync(now time.Duration, l *link) {
	if l.reached <= l.base {
		return
	}
	l.tell(e.state.version)
	l.sweeping = true
	e.event(now, ResyncStarted, l.peer.ID, 0, 0)
}

func sameTeam(was, is []team, region string) bool {
	find := func(teams []team) *team {
		for i := range teams {
			if teams[i].region == region {
				return &teams[i]
			}
		}
		return &team{}
	}
	return find(was).equal(find(is))
}

// team returns the place of a region's team, which is made when there is none.
func (e *Engine) team(region string) int {
	for i := range e.teams {
		if e.teams[i].region == region {
			return i
		}
	}
	e.teams = append(e.teams, team{region: region, incarnation: RegionIncarnation(region)})
	return len(e.teams) - 1
}

// mine reports whether this daemon sums up a key for its region.
func (e *Engine) mine(k crdt.Key) bool { return e.teams[0].aggregator(k) == e.self.ID }

// sync finds out whether each live peer of the region was heard whole.
func (e *Engine) sync(now time.Duration) {
	if e.synced || e.started < 0 {
		return
	}
	late := now-e.started >= e.cfg.ReadyWithin
	missing := uint64(0)
	for _, l := range e.links {
		if l.local && !l.whole {
			missing = 1
		}
	}
	if missing > 0 && !late {
		return
	}
	e.synced = true
	e.event(now, BecameReady, 0, 0, missing)
	e.arrange(now)
}

// Tick does what time calls for: sends nothing, which is Messages' part. wall
// is the label clock in Unix milliseconds.
func (e *Engine) Tick(now time.Duration, wall int64) {
	if now-e.swept >= expireEvery {
		e.swept = now
		e.state.expire(wall-e.cfg.Grace.Milliseconds(), max(len(e.state.cells)/256, expireAtLeast))
	}
	e.release(now)
	e.retryDue(now)
	e.restore(now)
	e.sync(now)
	for _, l := range e.links {
		if l.heardAt >= 0 && !l.silent && now-l.heardAt > 3*l.lag {
			l.silent = true
			e.event(now, PeerSilent, l.peer.ID, 0, 0)
		}
	}
}

// Each expireEvery, one in 256 cells is looked at for expiry, of few at least
// expireAtLeast: to find out that a cell still lives costs a cache miss.
const (
	expireEvery   = 100 * time.Millisecond
	expireAtLeast = 32
)

// Wake is when Tick has work next.
func (e *Engine) Wake(now time.Duration) time.Duration {
	at := now + time.Second
	for _, l := range e.links {
		at = min(at, e.dueAt(l))
	}
	if w := e.state.waitHead; w != none {
		at = min(at, e.state.cells[w].since+e.cfg.Quiet)
	}
	if !e.synced && e.started >= 0 {
		at = min(at, e.started+e.cfg.ReadyWithin)
	}
	return max(at, now+time.Millisecond)
}
