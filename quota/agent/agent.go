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

// Agent is the rights agent of a daemon. It is a state machine: time, received
// messages and the record of the control log are arguments, records to store,
// messages to send and epochs to propose are results of Ready. It is not safe
// for concurrent use.
type Agent struct {
	cfg     Config
	regions regions
	self    crdt.Incarnation
	genesis [2]uint64

	confirmed bool               // Confirm was called
	recorded  epoch.Epoch        // the newest one of the record
	ended     []epoch.Retirement // regions that the epochs of the record retire
	dead      bool               // the record states that this participant is dead
	proposal  proposal

	region, local *epoch.Table
	seen          [2]uint64 // their revisions as of version
	settled       [2]epoch.ID
	settledAt     [2]time.Duration // when settled changed
	version       uint64
	blocked       bool // an allotment of 0 was returned that time may change

	at      time.Duration // of the current call
	now     int64         // the window clock, Unix ms
	stamp   hlc.Timestamp // of the latest Tick, 0 before
	started time.Duration // of the first Tick, -1 before
	ready   bool
	leading bool

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

// Stored is the durable state: one value, replaced as a whole and synced.
type Stored struct {
	Region, Local epoch.Record
	// Genesis are the fingerprints of the genesis of both tables.
	Genesis [2]uint64
	// Number ascends with each record of a participant, over all of its runs: a
	// file with a lower one than the latest is a former file.
	Number uint64
}

// Stopped reports whether the run that stored the record had stopped: see
// Agent.Stop.
func (s *Stored) Stopped() bool { return s.Region.Stopped && s.Local.Stopped }

// Until returns the last window that the run may have used that stored the
// record, and the runs before it, in Unix milliseconds.
func (s *Stored) Until() int64 { return max(s.Region.Bounds.Window, s.Local.Bounds.Window) }

// Start is the initial state of an agent. Without a record, a founder founds,
// and all others join and hold 0 until the daemons of the region have admitted
// them.
type Start struct {
	// Record is the latest stored record of Config.Self and Config.Generation,
	// nil for none.
	Record *Stored
	// Accounts is set if the caller knows all use of rights by the run that
	// stopped with Record, and by those before it as far as that run knew it.
	// Former then returns rights of their windows. The caller sets it once for
	// a record, or two runs use the same rights.
	Accounts bool
	// Found is the statement that this daemon is one of the founders and never
	// held rights: no record of it was ever in force. If it is wrong, windows
	// may be used twice. A founder whose record is lost is a new participant
	// instead.
	Found bool
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
	a := &Agent{cfg: cfg, origins: origins{}, started: -1, regions: newRegions(cfg.Genesis, cfg.Generation)}
	a.names.regions = a.regions.all
	a.names.remember(cfg.Self, cfg.Name)
	if err := a.start(s); err != nil {
		return nil, err
	}
	a.demand = demand{cfg: &a.cfg, of: &a.regions, regions: make([]periodDemand, len(cfg.Genesis))}
	a.members = members{member: cfg.Self, local: a.local, seen: map[uint64]time.Duration{}, differs: -1}
	a.balance = balance{cfg: &a.cfg, of: &a.regions, demand: &a.demand, log: &a.log}
	a.seen = [2]uint64{a.region.Revision(), a.local.Revision()}
	a.settled = [2]epoch.ID{settledID(a.region), settledID(a.local)}
	a.disk.dirty, a.cfg.rest = true, restOf(a.local)
	return a, nil
}

func (a *Agent) start(s Start) error {
	founder := slices.Contains(a.cfg.Founders, a.cfg.Self)
	switch {
	case s.Record != nil && s.Found:
		return errors.New("start with a record, and as a founder: want one of them")
	case s.Record != nil:
		a.disk.number = s.Record.Number
		return a.restore(s.Record, s.Accounts)
	case s.Found != founder:
		return fmt.Errorf("start as a founder: %v, with participant %016x among the founders: %v: want both or neither; "+
			"a founder that lost its record is a new participant", s.Found, a.cfg.Self, founder)
	}
	regions, err := a.cfg.regions()
	if err != nil {
		return err
	}
	daemons, err := a.cfg.daemons()
	if err != nil {
		return err
	}
	a.genesis = [2]uint64{genesisPrint(a.cfg.Cluster, &regions), genesisPrint(a.cfg.Generation, &daemons)}
	if a.region, err = epoch.NewRegional(a.cfg.Generation, regions); err != nil {
		return err
	}
	if a.local, err = epoch.New(a.cfg.Self, daemons); err != nil {
		return err
	}
	if s.Found && a.cfg.From > 0 {
		a.local.Fence(a.cfg.From)
	}
	return nil
}

// restore restores the tables from a record.
func (a *Agent) restore(s *Stored, accounts bool) error {
	var err error
	restore := epoch.Restore
	if accounts {
		restore = epoch.Resume
	}
	a.genesis = s.Genesis
	if !s.Region.Regional || s.Local.Regional {
		return errors.New("record with its two tables exchanged: want that of the regions first")
	}
	if a.region, err = restore(a.cfg.Generation, s.Region); err != nil {
		return fmt.Errorf("regions: want the record of this generation of region %q: %w", a.cfg.Region, err)
	}
	if a.local, err = restore(a.cfg.Self, s.Local); err != nil {
		return fmt.Errorf("daemons: want the record of this participant: %w", err)
	}
	for _, ack := range s.Region.Acks {
		// The list may contain more epochs than at the time of the vote. That
		// requires more votes, never fewer.
		a.addVote(epoch.Vote{Daemon: a.cfg.Self, Ack: ack, Locals: a.local.Acknowledged()})
	}
	return nil
}

// Rules sets the rules with rights, in any order; of rules with the same ID the
// first counts. Rules beyond MaxRules keep the weights of their regions.
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
			l = &link{cfg: &a.cfg, receivedAt: -1, sentAt: at - time.Hour, due: at, sent: map[print]sending{}}
		}
		l.peer, l.local = p, p.Region == a.cfg.Region
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
	a.seen, a.cfg.rest = seen, restOf(a.local)
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
