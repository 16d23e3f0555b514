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
	"github.com/georld/rld/quota/epoch"
)

// regionsKey is what the daemons call the table of the regions in the lists of
// what they hold.
const regionsKey = 1

// Agent holds this daemon's part in the epochs. It is a state machine: time
// and messages are arguments, what to store and to send are results of Ready.
// It is not safe for concurrent use.
type Agent struct {
	cfg    Config
	ids    []uint64 // of cfg.Regions, parallel
	own    int      // this region among them
	member uint64   // this daemon in the epochs of daemons
	self   crdt.Incarnation
	// fence is of a daemon that lost its memory: see Message.
	fence   int64
	genesis [2]uint64

	region, local *epoch.Table
	seen          [2]uint64 // their revisions when the version was last set
	last          [2]epoch.ID
	version       uint64
	blocked       bool // an answer of 0 was given that time may change

	at      time.Duration // of the last call
	now     int64         // the label clock, Unix ms, as last told
	stamp   hlc.Timestamp // of the last Tick, 0 before
	started time.Duration // of the first Tick
	ready   bool
	leading bool
	// listening: it was restarted, and has not heard yet what happened since.
	// home and abroad say whom it heard.
	listening, owner, abroad bool

	links []*link // by incarnation
	names []string
	// changes counts what others may want to know; told caches what is said
	// of the tables as of a count.
	changes uint64
	told    [3]standing
	origins map[print]origin

	votes []epoch.Vote // by epoch and daemon
	// compacted is the base of the regions that the daemons' table was told.
	compacted epoch.ID

	disk    disk
	members members
	demand  demand
	resting [2]time.Duration // until when nothing is proposed of a table
	balance balance

	rules   []Rule    // by ID
	kept    []answers // parallel to rules
	events  []Event
	dropped uint64
	refused map[uint64]time.Duration // when a refusal was told last

	broken flaw
}

// flaw breaks a rule on purpose. Only tests set it, to show that they would
// find the broken rule.
type flaw uint8

const (
	flawEarly    flaw = 1 << iota // promises are told before they are stored
	flawSpeak                     // one daemon speaks for its region
	flawUnheld                    // those who let a daemon in do not say what they hold
	flawAmnesiac                  // a daemon that lost its memory keeps its identity
)

// Stored is what must be on disk: one value, replaced whole and synced.
type Stored struct {
	Region, Local epoch.Record
	// Genesis are the fingerprints of both tables' genesis.
	Genesis [2]uint64
	// Fence is the last label, Unix milliseconds, that the daemon may have
	// used before it lost its memory; 0 if it never did.
	Fence int64
}

// Start says what an office goes on from: exactly one of a record, a first
// start, and a loss of memory.
type Start struct {
	// Record is what was stored last, nil for nothing.
	Record *Stored
	// First is the operator's word that the daemon of this name never ran
	// before. If it is named among Config.Daemons it holds its share at once;
	// if not it joins, and holds 0 until the others have let it in. If the
	// word is wrong, labels may be used twice.
	First bool
	// Generation tells a daemon that lost its record from what it was: not 0, and
	// greater each time, as an HLC stamp is. Fence, above 0, is at or after
	// the last label it may have used before, in Unix milliseconds: what its
	// clock shows plus all it may have been ahead. It joins anew, and the
	// others retire what it was; until then it holds 0. A region all of whose
	// daemons lost their memory holds 0 for good: retire it, and start it under another name.
	Generation uint64
	Fence      int64
}

// New returns an office without peers and rules.
func New(cfg Config, s Start) (*Agent, error) {
	return newAgent(cfg, s, 0)
}

func newAgent(cfg Config, s Start, broken flaw) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rights: %w", err)
	}
	cfg = cfg.WithDefaults()
	cfg.Regions = slices.Clone(cfg.Regions)
	slices.SortFunc(cfg.Regions, func(a, b Region) int { return cmp.Compare(a.Name, b.Name) })
	o := &Agent{cfg: cfg, origins: map[print]origin{}, refused: map[uint64]time.Duration{}, started: -1, broken: broken}
	for i, r := range cfg.Regions {
		o.ids = append(o.ids, regionID(r.Name))
		if r.Name == cfg.Region {
			o.own = i
		}
	}
	o.demand = newDemand(len(cfg.Regions))
	for _, name := range cfg.Daemons {
		o.remember(name)
	}
	if err := o.start(s); err != nil {
		return nil, fmt.Errorf("rights: %w", err)
	}
	o.seen = [2]uint64{o.region.Revision(), o.local.Revision()}
	o.last = [2]epoch.ID{settledID(o.region), settledID(o.local)}
	o.disk.dirty = true
	return o, nil
}

func (o *Agent) start(s Start) error {
	given := 0
	for _, is := range []bool{s.Record != nil, s.First, s.Generation != 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("start with a record, as a first start, or with the life and fence of " +
			"a daemon that lost its record: want exactly one of them")
	}
	if s.Record != nil {
		return o.restore(s.Record)
	}
	if s.Generation != 0 && s.Fence <= 0 {
		return fmt.Errorf("start after a loss of memory with fence %d: want the last label it may have "+
			"used, in Unix milliseconds", s.Fence)
	}
	regions, err := o.cfg.genesis()
	if err != nil {
		return err
	}
	daemons, err := o.cfg.daemons()
	if err != nil {
		return err
	}
	o.genesis = [2]uint64{genesisPrint(regions), genesisPrint(daemons)}
	o.member, o.fence = memberID(o.cfg.Name, s.Generation), s.Fence
	if s.First || o.broken&flawAmnesiac != 0 {
		o.member, o.fence = memberID(o.cfg.Name, 0), 0
	}
	if o.region, err = epoch.NewRegional(o.ids[o.own], regions); err != nil {
		return err
	}
	o.local, err = epoch.New(o.member, daemons)
	return err
}

// restore goes on from a record.
func (o *Agent) restore(s *Stored) error {
	var err error
	o.genesis, o.member, o.fence = s.Genesis, s.Local.Owner, s.Fence
	if !sameName(o.member, memberID(o.cfg.Name, 0)) {
		return fmt.Errorf("record of another daemon than %q: want its own", o.cfg.Name)
	}
	if !s.Region.Regional || s.Local.Regional {
		return errors.New("record with its two tables exchanged: want that of the regions first")
	}
	if o.region, err = epoch.Restore(o.ids[o.own], s.Region); err != nil {
		return fmt.Errorf("regions: want the record of region %q: %w", o.cfg.Region, err)
	}
	if o.local, err = epoch.Restore(o.member, s.Local); err != nil {
		return fmt.Errorf("daemons: %w", err)
	}
	for _, a := range s.Region.Acks {
		// What it had acknowledged when it voted, and perhaps more: that asks
		// for more votes, never for fewer.
		o.addVote(epoch.Vote{Daemon: o.member, Ack: a, Locals: o.local.Acknowledged()})
	}
	o.listening = true
	return nil
}

// Rules takes over the rules that have rights, in any order; of those with the
// same ID the first counts. What is beyond MaxRules is left out: such a rule
// has the weights of the configuration.
func (o *Agent) Rules(rules []Rule) {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	rules = slices.CompactFunc(rules, func(a, b Rule) bool { return a.ID == b.ID })
	rules = rules[:min(len(rules), MaxRules)]
	kept := make([]answers, len(rules))
	for i := range rules {
		if j, ok := o.ruleIndex(rules[i].ID); ok {
			kept[i] = o.kept[j]
		}
	}
	o.rules, o.kept = rules, kept
	o.demand.rules(o.rules)
	o.balance.reset(o.at)
}

// Demand tells how many hits a rule was asked for since this daemon started,
// admitted and denied. Hits of rules that are not among Rules do not count.
func (o *Agent) Demand(rule, total uint64) { o.demand.count(rule, total) }

// Peers takes over the live incarnations of all regions, this one's among them
// or not. self is that of this daemon.
func (o *Agent) Peers(at time.Duration, self crdt.Incarnation, peers []gossip.Peer) {
	o.at, o.self = at, self
	kept := make([]*link, 0, len(peers))
	sorted := slices.SortedFunc(slices.Values(peers), func(a, b gossip.Peer) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range sorted {
		twice := len(kept) > 0 && kept[len(kept)-1].peer.ID == p.ID
		if p.ID == self || p.ID == 0 || twice || len(kept) == gossip.MaxPeers || p.Name == o.cfg.Name {
			continue
		}
		l := o.link(p.ID)
		if l == nil {
			l = &link{heardAt: -1, due: at, joined: at, sent: map[print]sending{}}
		}
		l.peer, l.local = p, p.Region == o.cfg.Region
		if l.local {
			o.remember(p.Name)
		}
		kept = append(kept, l)
	}
	o.links = kept
	o.changes++
}

// Allotment returns what this daemon holds of the label that starts at x (Unix
// milliseconds) of a rule, of the total in force for it; carry is how far the
// rule's algorithm reaches back from there, in milliseconds, not negative. With
// regional the total is of this region alone. Reason says what decided, above all
// when the answer is 0.
//
// The answers for a label may go up and down, and the greatest may be kept.
// Allotment keeps it itself for the latest labels of each rule: what a long label
// began with stays its own, whatever moves meanwhile. Allotment allocates nothing.
func (o *Agent) Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	var base uint64
	var why epoch.Reason
	switch {
	case o.listening:
		why = epoch.ReasonWaiting
	case regional:
		base, why = o.local.Part(total, x, carry)
	default:
		base, why = epoch.DaemonShare(o.region, o.local, regionsKey, rule, total, x, carry)
	}
	base, why = o.keep(rule, answer{x, carry, total, base, regional}, why)
	if why != epoch.ReasonEpoch {
		o.blocked = true
	}
	return base, why
}

// RegionAllotment returns how much this region holds, all of it, of the label that
// begins at x: what Allotment splits among its daemons. The greatest answer for a
// label may be kept, by whoever counts for the region what it uses.
func (o *Agent) RegionAllotment(rule, total uint64, x, carry int64) (uint64, epoch.Reason) {
	if o.listening {
		return 0, epoch.ReasonWaiting
	}
	base, why := epoch.RegionShare(o.region, o.local, regionsKey, rule, total, x, carry)
	if why != epoch.ReasonEpoch {
		o.blocked = true
	}
	return base, why
}

// Version changes whenever an answer of Allotment may have changed.
func (o *Agent) Version() uint64 { return o.version }

// PartOf returns what another daemon of the region holds, as far as is known
// here. It is for those who ask for rights, not for those who use them.
func (o *Agent) PartOf(peer string, rule, total uint64, x, carry int64, regional bool) uint64 {
	if !regional {
		total = o.region.Believed(rule, o.ids[o.own], total, x, carry)
	}
	return o.local.BelievedPart(o.current(peer), total, x, carry)
}

// current returns the participant that a daemon of the region is now.
func (o *Agent) current(name string) uint64 {
	if name == o.cfg.Name {
		return o.member
	}
	for _, l := range o.links {
		if l.local && l.peer.Name == name && l.heardAt >= 0 {
			return l.member
		}
	}
	return memberID(name, 0)
}

// RegionPart returns what a whole region holds, this one or another, as far as
// is known here.
func (o *Agent) RegionPart(region string, rule, total uint64, x, carry int64) uint64 {
	return o.region.Believed(rule, regionID(region), total, x, carry)
}

// advance does what has become possible: it promises, composes, forgets, and
// notes what changed.
func (o *Agent) advance() {
	o.acknowledge()
	o.compose()
	o.forget()
	is := [2]uint64{o.region.Revision(), o.local.Revision()}
	if is == o.seen {
		return
	}
	o.seen = is
	o.version++
	o.changes++
	for i, t := range []*epoch.Table{o.region, o.local} {
		if id := settledID(t); id != o.last[i] {
			o.last[i] = id
			o.event(Settled, "", fmt.Sprintf("%s: epoch %s", [...]string{"regions", "daemons"}[i], id))
		}
	}
	// What was learned must be kept before it counts for those who were let in.
	o.disk.dirty = true
}

// unblock says that answers of 0 may have become others.
func (o *Agent) unblock() {
	if o.blocked {
		o.blocked = false
		o.version++
	}
}

func settledID(t *epoch.Table) epoch.ID {
	e, _ := t.Settled()
	return e.ID
}

// newest returns the greatest epoch a table knows.
func newest(t *epoch.Table) epoch.EntryView { return t.At(t.Len() - 1) }
