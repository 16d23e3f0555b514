package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/eventlog"
	"github.com/georld/rld/quota/epoch"
)

// The tables of an agent, as indexes. voteTable stands for the votes.
const (
	regionTable = iota
	daemonTable
	voteTable
)

// tableNames are the names of the tables in events.
var tableNames = [...]string{"regions", "daemons"}

// Agent is the rights agent of a daemon. It is a state machine: time and
// received messages are arguments, records to store and messages to send are
// results of Ready. It is not safe for concurrent use.
type Agent struct {
	cfg     Config
	ids     []uint64 // of cfg.Regions, parallel
	own     int      // place of this region among them
	member  uint64   // this daemon as a participant of its region's epochs
	self    crdt.Incarnation
	fence   int64 // after a lost record: see Message
	genesis [2]uint64

	region, local *epoch.Table
	seen          [2]uint64 // their revisions as of version
	settled       [2]epoch.ID
	settledAt     [2]time.Duration // when settled changed
	version       uint64
	blocked       bool // an allotment of 0 was returned that time may change

	at       time.Duration // of the current call
	now      int64         // the window clock, Unix ms
	stamp    hlc.Timestamp // of the latest Tick, 0 before
	started  time.Duration // of the first Tick, -1 before
	ready    bool
	leading  bool
	learning learning

	links links
	names names
	log   eventlog.Log[EventKind]
	// changes counts the changes that peers may need; contents caches the
	// contents of the tables as of a count.
	changes  uint64
	contents [3]content
	origins  origins
	votes    votes
	// compacted is the oldest regional epoch in dependencies of local.
	compacted epoch.ID

	disk     disk
	leaving  bool // Leave was called
	stopping bool // Stop was called
	members  members
	demand   demand
	balance  balance
	cache    shareCache
	resting  [2]time.Duration // until when no epoch of a table is proposed
	learned  [2]time.Duration // when an epoch of a table was learned last
}

// learning is the state of a restarted daemon: it holds nothing until it has
// received the epochs of its own and of another region.
type learning struct{ active, regional, remote bool }

// Stored is the durable state: one value, replaced as a whole and synced.
type Stored struct {
	Region, Local epoch.Record
	// Genesis are the fingerprints of the genesis of both tables.
	Genesis [2]uint64
	// Fence is the last window, in Unix milliseconds, that the daemon may have
	// used before it lost its record; 0 if it never did.
	Fence int64
}

// Stopped reports whether the run that stored the record had stopped: see
// Agent.Stop.
func (s *Stored) Stopped() bool { return s.Region.Stopped && s.Local.Stopped }

// Until returns the last window that the run may have used that stored the
// record, and the runs before it, in Unix milliseconds.
func (s *Stored) Until() int64 { return max(s.Region.Bounds.Window, s.Local.Bounds.Window) }

// Start is the initial state of an agent: exactly one of a record, a first
// start, and a start after the loss of the record.
type Start struct {
	// Record is the latest stored record, nil for none.
	Record *Stored
	// Accounts is set if the caller knows all use of rights by the run that
	// stopped with Record, and by those before it as far as that run knew it.
	// Former then returns rights of their windows. The caller sets it once for
	// a record, or two runs use the same rights.
	Accounts bool
	// First is the operator's statement that the daemon of this name never ran
	// before. If it is among Config.Daemons it holds its share immediately; if
	// not, it joins and holds 0 until the others have admitted it. If the
	// statement is wrong, windows may be used twice.
	First bool
	// Generation identifies a daemon that lost its record: not 0, and greater
	// with each loss, as an HLC stamp is. Fence, above 0, is at or after the
	// last window it may have used before, in Unix milliseconds: its clock plus
	// the most that it may have been ahead. It joins anew, and the others
	// retire its former participant; until then it holds 0. A region all of
	// whose daemons lost their records holds 0 until an operator retires it and
	// starts it under another name.
	Generation uint64
	Fence      int64
}

// New returns an agent without peers and rules.
func New(cfg Config, s Start) (*Agent, error) {
	a, err := newAgent(cfg, s)
	if err != nil {
		return nil, fmt.Errorf("rights: %w", err)
	}
	return a, nil
}

func newAgent(cfg Config, s Start) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	cfg.Regions = slices.Clone(cfg.Regions)
	slices.SortFunc(cfg.Regions, func(a, b Region) int { return cmp.Compare(a.Name, b.Name) })
	a := &Agent{cfg: cfg, origins: origins{}, started: -1, names: names{regions: cfg.Regions}}
	for i, r := range cfg.Regions {
		a.ids = append(a.ids, regionID(r.Name))
		if r.Name == cfg.Region {
			a.own = i
		}
	}
	a.names.remember(cfg.Name)
	for _, name := range cfg.Daemons {
		a.names.remember(name)
	}
	if err := a.start(s); err != nil {
		return nil, err
	}
	a.demand = demand{cfg: &a.cfg, own: a.own, regions: make([]periodDemand, len(cfg.Regions))}
	a.members = members{member: a.member, fence: a.fence, local: a.local, seen: map[uint64]time.Duration{}, differs: -1}
	a.balance = balance{cfg: &a.cfg, ids: a.ids, own: a.own, demand: &a.demand, log: &a.log}
	a.seen = [2]uint64{a.region.Revision(), a.local.Revision()}
	a.settled = [2]epoch.ID{settledID(a.region), settledID(a.local)}
	a.disk.dirty = true
	return a, nil
}

func (a *Agent) start(s Start) error {
	given := 0
	for _, is := range []bool{s.Record != nil, s.First, s.Generation != 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("start with a record, as a first start, or with the generation and fence of " +
			"a daemon that lost its record: want exactly one of them")
	}
	if s.Record != nil {
		return a.restore(s.Record, s.Accounts)
	}
	if s.Generation != 0 && s.Fence <= 0 {
		return fmt.Errorf("start after a lost record with fence %d: want the last window it may have "+
			"used, in Unix milliseconds", s.Fence)
	}
	regions, err := a.cfg.genesis()
	if err != nil {
		return err
	}
	daemons, err := a.cfg.daemons()
	if err != nil {
		return err
	}
	a.genesis = [2]uint64{genesisPrint(regions), genesisPrint(daemons)}
	a.member, a.fence = memberID(a.cfg.Name, s.Generation), s.Fence
	if s.First {
		a.fence = 0
	}
	if a.region, err = epoch.NewRegional(a.ids[a.own], regions); err != nil {
		return err
	}
	a.local, err = epoch.New(a.member, daemons)
	return err
}

// restore restores the tables from a record.
func (a *Agent) restore(s *Stored, accounts bool) error {
	var err error
	restore := epoch.Restore
	if accounts {
		restore = epoch.Resume
	}
	a.genesis, a.member, a.fence = s.Genesis, s.Local.Owner, s.Fence
	if !sameName(a.member, memberID(a.cfg.Name, 0)) {
		return fmt.Errorf("record of another daemon than %q: want its own", a.cfg.Name)
	}
	if !s.Region.Regional || s.Local.Regional {
		return errors.New("record with its two tables exchanged: want that of the regions first")
	}
	if a.region, err = restore(a.ids[a.own], s.Region); err != nil {
		return fmt.Errorf("regions: want the record of region %q: %w", a.cfg.Region, err)
	}
	if a.local, err = restore(a.member, s.Local); err != nil {
		return fmt.Errorf("daemons: %w", err)
	}
	for _, ack := range s.Region.Acks {
		// The list may contain more epochs than at the time of the vote. That
		// requires more votes, never fewer.
		a.addVote(epoch.Vote{Daemon: a.member, Ack: ack, Locals: a.local.Acknowledged()})
	}
	a.learning.active = true
	return nil
}

// Rules sets the rules with rights, in any order; of rules with the same ID the
// first counts. Rules beyond MaxRules keep the weights of the configuration.
func (a *Agent) Rules(rules []Rule) {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	rules = slices.CompactFunc(rules, func(a, b Rule) bool { return a.ID == b.ID })
	rules = rules[:min(len(rules), MaxRules)]
	a.cache.setRules(rules)
	a.demand.setRules(rules)
	a.balance.setRules(rules, a.at)
}

// Demand sets the hits offered for a rule since this daemon started, admitted
// and denied. Rules that are not among Rules are ignored.
func (a *Agent) Demand(rule, total uint64) { a.demand.count(rule, total) }

// Peers sets the live incarnations of all regions, with or without this daemon.
// self is the incarnation of this daemon.
func (a *Agent) Peers(at time.Duration, self crdt.Incarnation, peers []gossip.Peer) {
	a.clock(at)
	a.self = self
	kept := make(links, 0, len(peers))
	sorted := slices.SortedFunc(slices.Values(peers), func(a, b gossip.Peer) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range sorted {
		twice := len(kept) > 0 && kept[len(kept)-1].peer.ID == p.ID
		if p.ID == self || p.ID == 0 || twice || len(kept) == gossip.MaxPeers || p.Name == a.cfg.Name {
			continue
		}
		l := a.links.find(p.ID)
		if l == nil {
			l = &link{cfg: &a.cfg, receivedAt: -1, due: at, sent: map[print]sending{}}
		}
		l.peer, l.local = p, p.Region == a.cfg.Region
		if l.local {
			a.names.remember(p.Name)
		}
		kept = append(kept, l)
	}
	a.links = kept
	a.changes++
}

// Period returns the time between two evaluations of the demand.
func (a *Agent) Period() time.Duration { return a.cfg.Period }

// clock sets the time of the current call.
func (a *Agent) clock(at time.Duration) { a.at, a.log.At = at, at }

// table returns a table by its index.
func (a *Agent) table(i int) *epoch.Table {
	if i == regionTable {
		return a.region
	}
	return a.local
}

// advance makes all steps that are possible now: it acknowledges, composes,
// prunes, and notes changes.
func (a *Agent) advance() {
	a.acknowledge()
	a.compose()
	a.forget()
	seen := [2]uint64{a.region.Revision(), a.local.Revision()}
	if seen == a.seen {
		return
	}
	a.seen = seen
	a.version++
	a.changes++
	for i, t := range []*epoch.Table{a.region, a.local} {
		if id := settledID(t); id != a.settled[i] {
			a.settled[i], a.settledAt[i] = id, a.at
			a.log.Add(Settled, "", fmt.Sprintf("%s: epoch %s", tableNames[i], id))
		}
	}
	// Learned epochs must be stored before they count for admitted daemons.
	a.disk.dirty = true
}

// settledID returns the greatest settled epoch of a table.
func settledID(t *epoch.Table) epoch.ID {
	e, _ := t.Settled()
	return e.ID
}

// newest returns the greatest epoch of a table.
func newest(t *epoch.Table) epoch.EntryView { return t.At(t.Len() - 1) }
