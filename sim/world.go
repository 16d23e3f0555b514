package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/wire"
)

// The streams that randomness is drawn from, so that one draw more in one
// place does not reshuffle the others. Sources, nodes and disks have one each,
// above these numbers.
const (
	streamNetwork = 1 + iota
	streamFaults
	streamLoad
	streamSamples
	streamTokens  = uint64(1) << 59
	streamControl = uint64(1)<<59 + uint64(1)<<58
	streamRecheck = uint64(1)<<59 + uint64(1)<<57
	streamNode    = uint64(1) << 60
	streamDisk    = uint64(1) << 61
)

// warmUp is how long before virtual time 0 the daemons are started: they know
// each other when the load begins.
const warmUp = 3 * time.Second

// World is the state of a run: the cluster, its network and clocks, and its
// clients. Auditors look at it and change nothing.
type World struct {
	cfg     *Config
	now     time.Duration
	events  heap
	count   uint64 // events so far
	daemons []*Daemon
	regions []string
	local   [][]*Daemon // by region

	membership membership
	network    network
	faults     faults
	outbox     []gossip.Message
	encoder    wire.Encoder
	decoder    wire.Decoder

	sets      []ruleSet
	plainSets []*rules.Set // the same sets alone, for auditors
	adoptions pool[adoption]
	adopted   bool // some daemon took another rule set in force,
	adoptedAt time.Duration

	steps   steps
	load    clients
	idle    *pendingCall // not in use, nil for none
	calls   []*node.Call // likewise
	woken   pool[*pendingCall]
	decided Decided

	auditors    watchers
	rights      bool           // daemons take part in epochs
	owners      bool           // and some keys have owners
	layouts     quorum.Layouts // of a run without a control log
	strict      strictTally
	trace       trace
	tallies     tallies
	views       views
	series      recorder
	seen        [256]uint64 // events of the replicas by kind
	agents      [256]uint64 // events of the rights agents by kind
	acceptors   [256]uint64 // events of the acceptors by kind
	controls    [256]uint64 // events of the control log by kind
	met         situations
	breakers    [3]uint64   // transitions of breakers by the state that they went to
	ended       node.Stats  // of processes that are gone
	endedStrict lease.Stats // likewise
	transfers   uint64      // messages about them
	writes      pool[write]
	storage     Audit         // of files
	base        int64         // wall time of virtual time 0, Unix ns
	healed      bool          // the liveness phase has begun
	stepped     time.Duration // when a clock was last stepped, 0 for never
	lenient     bool          // windows that a wrong clock may have misjudged are not compared
	pending     string        // the condition that it waits for
	heads       heads         // of links, as it found them
	recovery    recovery
	failed      error   // what ends the run early
	doing       event   // for the report of a panic
	acting      *Daemon // likewise: where the event happens, nil for nowhere
	lines       *lines  // nil for none
}

// ruleSet is a rule set that is or will be in force somewhere.
type ruleSet struct {
	set   *rules.Set
	front *node.Matcher
	tally []int // by rule index: place in World.tallies, -1 for none
}

// adoption is a rule set on its way to a daemon.
type adoption struct{ daemon, set int }

// newWorld returns the world of a configuration before anything happened.
func newWorld(cfg *Config) *World {
	w := &World{
		cfg: cfg, now: -warmUp,
		membership: membership{byAddress: make(map[crdt.Incarnation]int32)},
		network:    network{rng: rand.New(rand.NewPCG(cfg.Seed, streamNetwork))},
		faults: faults{
			all: slices.Clone(cfg.Faults), rng: rand.New(rand.NewPCG(cfg.Seed, streamFaults)),
			risen: make(map[int]bool), removals: make(map[int][]*removal), undos: make(map[revocation.Name]control.Number),
		},
		trace: newTrace(), base: cmp.Or(cfg.Epoch, epoch),
		rights: cfg.Policy.HasRights() && cfg.HasRights(), owners: cfg.HasOwners(),
	}
	w.storage.Name = "storage"
	w.steps = w.plainSteps()
	for r, region := range cfg.Regions {
		w.regions = append(w.regions, region.Name)
		w.local = append(w.local, nil)
		for i := range region.Daemons {
			d := &Daemon{
				Name: daemonName(region.Name, i), Region: region.Name, owner: daemonName(region.Name, i),
				Index: len(w.daemons), RegionIndex: r, waking: never,
			}
			d.settings, d.newer = cfg.settings(d.Region, d.owner)
			d.clock.right(w.now, w.base)
			d.newDisk(w)
			w.daemons = append(w.daemons, d)
			w.local[r] = append(w.local[r], d)
		}
	}
	w.met = newSituations(cfg, w.daemons)
	w.network.daemons = len(w.daemons)
	w.network.links = slices.Repeat([]link{{Link: &cfg.Network.Across, cutSince: notCut, busy: w.now, last: w.now, arrived: -never}}, len(w.daemons)*len(w.daemons))
	w.network.relink(w)
	w.tallies.regions = len(cfg.Regions)
	w.addRules(cfg.Rules)
	for _, set := range cfg.sets() {
		for _, r := range set.Rules() { // so that the series has a row for it
			w.tallies.place(r)
		}
	}
	return w
}

// Now returns the virtual time. It is below 0 while the daemons start; load
// and faults begin at 0.
func (w *World) Now() time.Duration { return w.now }

// Daemons returns all daemons by region, then index, those that are down too.
// The list stays the same for a run.
func (w *World) Daemons() []*Daemon { return w.daemons }

// Regions returns the names of the regions.
func (w *World) Regions() []string { return w.regions }

// Config returns the configuration of the run. The caller must not change it.
func (w *World) Config() *Config { return w.cfg }

// Rules returns the newest rule set, which not every daemon may have in force
// yet.
func (w *World) Rules() *rules.Set { return w.sets[w.newest()].set }

// Sets returns the rule sets of the run so far, the newest last. They are not
// the caller's to change.
func (w *World) Sets() []*rules.Set {
	return w.plainSets
}

// Adopted returns when a daemon last adopted another rule set, false for never.
func (w *World) Adopted() (time.Duration, bool) { return w.adoptedAt, w.adopted }

// Faulty reports whether any fault is in force.
func (w *World) Faulty() bool { return len(w.faults.active) > 0 }

func (w *World) newest() int { return len(w.sets) - 1 }

// addRules makes a set the newest and returns its number.
func (w *World) addRules(set *rules.Set) int {
	if n := w.newest(); n >= 0 && w.sets[n].set == set {
		return n
	}
	s := ruleSet{set: set, front: node.NewMatcher(set, rules.NewHasher(secret), node.MatcherOptions{})}
	for _, r := range set.Rules() {
		i := w.tallies.place(r)
		if i >= 0 {
			w.tallies.rules[i].limit = r.Limit
		}
		s.tally = append(s.tally, i)
	}
	w.sets, w.plainSets = append(w.sets, s), append(w.plainSets, set)
	return w.newest()
}

// secret is the cluster's: the same in every run, so that keys are too.
var secret = [rules.SecretBytes]byte{'s', 'i', 'm'}

// prepare schedules the first events of a run.
func (w *World) prepare() {
	g := w.cfg.Node.Gossip.WithDefaults()
	for i := range w.daemons {
		// Not all at once: their intervals would stay in step for ever.
		w.events.push(w.now+w.faults.between(0, g.Interval), evStart, int32(i))
	}
	for i := range w.cfg.Faults {
		f := &w.cfg.Faults[i]
		w.events.push(f.At, evFault, int32(i))
	}
	if w.cfg.Control != nil {
		at := w.cfg.Begin
		if at == 0 {
			at = w.now + warmUp/2
		}
		w.events.push(at, evInit, 0)
	}
	w.load.prepare(w)
	w.views.prepare(w)
	w.series.prepare(w)
}

// runUntil lets everything happen that is due before a time.
func (w *World) runUntil(end time.Duration) {
	for w.failed == nil && w.events.len() > 0 && w.events.events[0].at < end {
		e := w.events.pop()
		if e.at < w.now {
			w.fail(fmt.Errorf("sim: %s at %v is due in the past, it is %v", eventKinds[e.kind].name, e.at, w.now))
			return
		}
		if w.lines != nil {
			w.lines.before(w, e.at)
		}
		w.now, w.doing, w.acting = e.at, e, nil
		w.count++
		w.trace.event(e)
		eventKinds[e.kind].happen(w, e.arg)
	}
	if w.failed == nil {
		w.now = max(w.now, end)
	}
}

// eventKinds holds the name of each kind of event and the step that it makes.
var eventKinds = [...]struct {
	name   string
	happen func(w *World, arg int32)
}{
	evDeliver: {"deliver", func(w *World, arg int32) { w.network.arrive(w, arg) }},
	evWake:    {"wake", func(w *World, arg int32) { w.wake(w.daemons[arg], w.now) }},
	evArrival: {"arrival", func(w *World, arg int32) { w.load.arrive(w, int(arg)) }},
	evRetry:   {"retry", func(w *World, arg int32) { w.load.retry(w, arg) }},
	evMember:  {"member", func(w *World, arg int32) { w.membership.learn(w, w.membership.changes.take(arg)) }},
	evFault:   {"fault", func(w *World, arg int32) { w.faults.begin(w, int(arg)) }},
	evRecover: {"recover", func(w *World, arg int32) { w.faults.end(w, int(arg)) }},
	evStart:   {"start", func(w *World, arg int32) { w.fail(w.start(w.daemons[arg])) }},
	evResume:  {"resume", func(w *World, arg int32) { w.resume(w.daemons[arg]) }},
	evRules:   {"rules", func(w *World, arg int32) { w.adopt(w.adoptions.take(arg)) }},
	evViews:   {"views", func(w *World, _ int32) { w.views.sample(w) }},
	evSample:  {"sample", func(w *World, _ int32) { w.series.sample(w) }},
	evStored:  {"stored", (*World).stored},
	evCall:    {"call", func(w *World, arg int32) { w.goOn(w.woken.take(arg)) }},
	evGiveUp:  {"give_up", func(w *World, arg int32) { w.giveUp(w.woken.take(arg)) }},
	evRefund:  {"refund", func(w *World, arg int32) { w.load.refund(w, arg) }},
	evSuspect: {"suspect", func(w *World, arg int32) { w.faults.turn(w, int(arg)) }},
	evLeave:   {"leave", (*World).depart},
	evInit:    {"init", func(w *World, _ int32) { beginControl(w) }},
	evCommand: {"command", func(w *World, arg int32) { w.faults.command(w, arg) }},
	evRecheck: {"recheck", recheck},
}

// fail ends the run with an error, nil for none.
func (w *World) fail(err error) {
	if err != nil {
		w.failed = err
	}
}

// adopt lets a daemon take a rule set in force.
func (w *World) adopt(a adoption) {
	d := w.daemons[a.daemon]
	if !d.Up || a.set < d.Set {
		return
	}
	w.acting = d
	if w.traced(d) {
		w.lines.add(d, "rules", "set=%d was=%d", a.set, d.Set)
	}
	if d.Set != a.set {
		w.adopted, w.adoptedAt = true, w.now
		w.met.adopted(w, d, w.sets[a.set].set.Hash())
	}
	d.setRules(w, a.set)
	d.saw(w, adopted)
	w.drain(d, allShards)
}
