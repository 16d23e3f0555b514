package sim

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// Daemon is one daemon of the cluster: a machine with a clock, and the process
// on it while it is up.
type Daemon struct {
	// Name is the present name; a restart may change it. Region is the name of
	// its region.
	Name, Region string
	// Index is its place in World.Daemons, RegionIndex that of its region in
	// World.Regions.
	Index, RegionIndex int
	// Up is false from a crash to the start of the next process, Paused true
	// while the process is there and does not run.
	Up, Paused bool
	// Diskless is set for a daemon without a state folder.
	Diskless bool
	// Nodes holds one node a shard, nil when down.
	Nodes []*node.Node
	// Set is the number of the rule set in force, in World.Sets.
	Set int

	owner        string // the name it has in the configuration
	settings     node.Config
	newer        bool // it runs a later version
	clock        wallClock
	started      time.Duration // of the process
	starts       int           // processes so far
	member       int32         // the incarnation in World.members
	incarnations []crdt.Incarnation
	known        []int32         // incarnations it knows, ascending, itself among them
	ready        []bool          // whether each of known takes its share, as far as it knows
	wakes        []time.Duration // monotonic, one a node, then otherWakes
	waking       time.Duration   // virtual time of the first evWake under way
	inbox        []int32         // flights that arrived during a pause
	stamp        hlc.Timestamp   // the greatest its process sent
	stampAt      time.Duration   // when
	downs        int             // crash faults in force
	pauses       int             // pause faults in force
	leaving      *leaving        // nil for a process that does not leave

	disk       *simdisk.Disk // of the machine
	disks      int           // that the machine has had
	unrecorded int           // starts that found no record of rights, but for the first
	forgotten  []control.ID  // ids of these records
	mount      *simdisk.Mount
	storage    replica.Storage
	writing    [diskFiles]func() error // on their way to the disk, nil for none
	compacting bool                    // the log of the acceptor is rewritten
	logFailed  bool                    // and nothing can be stored in it before it is opened again
	opened     bool                    // the log was opened since the process began
	logConfig  quorum.Config
	logDisk    int              // the disk on which the log has entries, by disks
	layouts    [2]*route.Layout // the active and the announced one that the acceptor has
	first      bool             // the process is the first one of its name
	lostLog    bool             // a process started without the entries of a former one
	// EndedAhead is how often acceptors of the daemon corrected an end of
	// watermarks that wrong clocks had set in the future.
	EndedAhead uint64
	slow       time.Duration  // the most by which a write is late
	damaged    bool           // a fault damaged one of its files
	refused    string         // the file that the process before could not read
	failing    simdisk.Faults // of the disk when the process could not start last
	backup     backup         // of OldDisk and CopiedControl
	stale      bool           // its control log was older once, or that of another daemon
	alone      bool           // it was the only voter of the control log when it last knew
	copied     bool           // another daemon got a copy of its control log
	journalOf  string         // the daemon that its control log is of, "" for itself
	ran        string         // the name of the process before
	own        *identity      // of ClonedDisk, nil for none

	sealer replica.TokenSealer

	left    *replica.Leftover // of the process before
	resumed bool              // its agent goes on with that
	chain   uint64            // see Chain

	agent    *replica.RightsLoop // nil when no rule has rights, and before the founding
	follows  follower            // of the control log
	limitsOf control.Version     // of the record whose limits are in use

	control    *control.Node                         // nil without a control log
	controlLog *replica.ControlLog                   // likewise, and for a diskless daemon
	rewriting  bool                                  // the control log is rewritten
	early      map[crdt.Incarnation]*control.Message // the latest of each daemon that is not live yet

	process  *replica.Process      // nil when no key has an owner
	parts    *parts                // what serves strict keys
	acceptor *replica.AcceptorLoop // likewise
	log      *replica.AcceptorLog  // likewise
	suspects []bool                // daemons that it considers dead, nil for none
	bars     []bool                // daemons that it refuses as revoked, nil for none
	rechecks bool                  // it will verify its streams
	deferred []event               // of a pause, for the time after it
}

// never is a virtual time that does not come.
const never = time.Duration(math.MaxInt64)

// maxInbox bounds the frames that wait for a paused process; beyond it the
// kernel's buffers are full.
const maxInbox = 1_024

// Instant returns the readings of the daemon's two clocks at a virtual time.
// The monotonic one starts with the process.
func (d *Daemon) Instant(now time.Duration) node.Instant {
	return node.Instant{Mono: now - d.started, Wall: d.clock.read(now)}
}

// Incarnations returns the incarnations it runs now, one a shard; nil when
// down. They are not the caller's to change.
func (d *Daemon) Incarnations() []crdt.Incarnation {
	if !d.Up {
		return nil
	}
	return d.incarnations
}

// RightsAgent returns the rights agent of the process, nil for none. Auditors
// read its status.
func (d *Daemon) RightsAgent() *agent.Agent {
	if d.agent == nil {
		return nil
	}
	return d.agent.Agent
}

// Acceptor returns the acceptor of the process, nil for none, for its status.
func (d *Daemon) Acceptor() *quorum.Acceptor {
	if d.acceptor == nil {
		return nil
	}
	return d.acceptor.Acceptor
}

// ControlLog returns the part of the process in the control log, nil for none.
// Auditors read its record.
func (d *Daemon) ControlLog() *control.Node { return d.control }

// LostDisk reports whether the machine may have lost stored state: a
// disk of it was lost, a file damaged, or its control log replaced by that of
// another time or daemon. shared reports whether another daemon got a copy.
func (d *Daemon) LostDisk() (lost, shared bool) {
	return d.disks > 1 || d.damaged || d.stale, d.copied
}

// Circuits describes the paths of the process to owners.
func (d *Daemon) Circuits(now time.Duration) []replica.Circuit {
	if d.process == nil {
		return nil
	}
	return d.process.Reach.Circuits(d.Instant(now).Mono)
}

// Synced reports whether all its nodes are.
func (d *Daemon) Synced() bool {
	return !slices.ContainsFunc(d.Nodes, func(n *node.Node) bool { return !n.Synced() })
}

// Settings returns the configuration of its nodes together, with all defaults.
// It is not the caller's to change.
func (d *Daemon) Settings() *node.Config { return &d.settings }

// refuses reports whether two daemons refuse each other at the handshake, as
// those do that split keys into different numbers of shards. Neither is a peer
// of the other then.
func (d *Daemon) refuses(o *Daemon) bool { return d.settings.Shards != o.settings.Shards }

// Chain returns the number of the chain of its process: that of the first one
// of those that went on with the accounts of the one before.
func (d *Daemon) Chain() uint64 { return d.chain }

// generationOf returns the present generation of the region of a daemon.
func generationOf(d *Daemon) uint64 {
	if d.control == nil {
		return uint64(d.RegionIndex)
	}
	return control.RegionID(d.Region, d.follows.of.generation)
}

// Process returns the number of the process that it runs, unique in a run.
func (d *Daemon) Process() int { return int(d.member) }

// start runs a new process on a machine that is down.
func (w *World) start(d *Daemon) error {
	if d.Up || d.downs > 0 {
		return nil
	}
	if d.failing != (simdisk.Faults{}) && d.failing == d.disk.Faults { // it would fail again
		w.events.push(w.now+supervise, evStart, int32(d.Index))
		return nil
	}
	w.acting = d
	stream := uint64(d.starts)
	d.Nodes, d.incarnations = nil, nil
	d.openStorage(w)
	rights, err := d.openAgent(w)
	if err != nil {
		return d.cannotStart(w, replica.RightsFile, err)
	}
	d.parts = &parts{w, d}
	if err = d.openAcceptor(w); err != nil {
		return d.cannotStart(w, replica.JournalFile, err)
	}
	if err = d.openControl(w, stream); err != nil {
		return d.cannotStart(w, replica.ControlFile, err)
	}
	d.refused = ""
	for s := range d.settings.Shards {
		// All shards of a process draw from one stream's start, so that they
		// count under one incarnation, as messages want it.
		rng := rand.New(rand.NewPCG(w.cfg.Seed, streamNode+uint64(d.Index)<<32+stream))
		cfg := w.nodeConfig(d, s)
		cfg.Allotments = rights
		if w.owners {
			strict := &w.cfg.Strict
			cfg.Owners, cfg.Strict = d.parts, lease.Config{Headroom: strict.Headroom, Prefetch: strict.Prefetch, MaxQueued: strict.Queue}
		}
		n, err := node.New(cfg, rng)
		if err != nil {
			return fmt.Errorf("sim: %s: %w", d.Name, err)
		}
		if d.left != nil {
			if n.TakeUp(&d.left.Accounts, d.left.Until); d.resumed {
				n.Resume()
			}
		}
		d.Nodes = append(d.Nodes, n)
		d.incarnations = append(d.incarnations, n.Incarnation())
	}
	if w.owners {
		d.process = d.newProcess(w)
	}
	d.newTokens(w, stream)
	d.starts++
	d.Up, d.Paused, d.started = true, false, w.now
	d.wakes = slices.Repeat([]time.Duration{never}, d.settings.Shards+otherWakes)
	d.waking = never
	d.known, d.ready, d.inbox, d.leaving, d.rechecks = nil, nil, nil, nil, false
	d.stamp, d.stampAt = 0, w.now
	d.setRules(w, w.newest())
	w.auditors.restarted(d)
	if w.traced(d) {
		w.lines.add(d, "start", "process=%d disk=%d incarnation=%v", len(w.membership.all), d.disks, d.incarnations[0])
	}
	w.met.starts(w, d)
	w.met.scaled(w, d)
	w.met.adopted(w, d, w.sets[d.Set].set.Hash())
	w.membership.join(w, d)
	d.saw(w, started)
	beginLayouts(w)
	return nil
}

// newTokens lets a process issue refund tokens that no other one accepts.
func (d *Daemon) newTokens(w *World, stream uint64) {
	rng := rand.New(rand.NewPCG(w.cfg.Seed, streamTokens+uint64(d.Index)<<32+stream))
	var key [16]byte
	for i := range key {
		key[i] = byte(rng.Uint32())
	}
	d.sealer = replica.NewTokenSealer(key)
}

// setRules puts a rule set in force at all parts of a process.
func (d *Daemon) setRules(w *World, set int) {
	d.Set = set
	at := d.Instant(w.now)
	for _, n := range d.Nodes {
		n.SetRules(at, w.sets[set].set)
	}
	d.agentRules(w)
}

// nodeConfig is the configuration of one shard of a daemon, whose bounds are
// split evenly.
func (w *World) nodeConfig(d *Daemon, shard int) node.Config {
	c, n := d.settings, d.settings.Shards
	c.Shard, c.Region, c.Name = shard, d.Region, d.Name
	c.Naive = c.Naive || w.cfg.Policy == Naive
	c.Ablation = w.cfg.Policy.gates()
	c.Ablation.NoEstimate = w.cfg.Node.Ablation.NoEstimate
	c.MaxKeys = max(1, (c.MaxKeys+n-1-shard)/n)
	c.Gossip.MaxCells = max(1, (c.Gossip.MaxCells+n-1-shard)/n)
	return c
}

// crash ends a process; everything in its memory is gone.
func (w *World) crash(d *Daemon) {
	if !d.Up {
		return
	}
	w.auditors.down(d)
	w.met.ends(w, d)
	if w.traced(d) {
		w.lines.add(d, "crash", "process=%d", d.member)
	}
	for _, n := range d.Nodes {
		w.ended.Add(n.Stats())
		w.endedStrict.Add(n.LeaseStats())
	}
	for _, i := range d.inbox {
		w.network.drop(w.network.flights.take(i))
	}
	if d.process != nil {
		w.load.Unanswered += uint64(d.process.Waiters.Len()) // the connections end with it
	}
	d.Up, d.Paused, d.Nodes, d.inbox = false, false, nil, nil
	w.undefer(d)
	d.tear(w)
	d.agent, d.process, d.acceptor, d.control = nil, nil, nil, nil
	w.met.scaled(w, d)
	w.membership.leave(w, d)
}

// time returns the hybrid logical clock of a process.
func (d *Daemon) time(now time.Duration) hlc.Timestamp { return d.Nodes[0].Time(d.Instant(now)) }

// defers keeps an event for the time after the pause of a process.
func (d *Daemon) defers(kind eventKind, arg int32) {
	d.deferred = append(d.deferred, event{kind: kind, arg: arg})
}

// undefer schedules the events that a pause deferred.
func (w *World) undefer(d *Daemon) {
	for _, e := range d.deferred {
		w.events.push(w.now, e.kind, e.arg)
	}
	d.deferred = nil
}

// resume lets a paused process go on: first with what waits for it.
func (w *World) resume(d *Daemon) {
	if !d.Up || !d.Paused || d.pauses > 0 {
		return
	}
	d.Paused, w.acting = false, d
	w.met.resumed(w, d)
	if w.traced(d) {
		w.lines.add(d, "resume", "frames=%d", len(d.inbox))
	}
	w.undefer(d)
	waiting := d.inbox
	d.inbox = nil
	for _, i := range waiting {
		_ = w.receive(d, w.network.flights.take(i))
	}
	d.waking = w.now
	w.events.push(w.now, evWake, int32(d.Index))
}

// epoch is the default wall time of virtual time 0, in Unix nanoseconds:
// 2026-01-01.
const epoch = int64(1_767_225_600) * int64(time.Second)

// wallClock is the wall clock of a machine over virtual time. It runs from a
// point at a rate, and a fault moves either. It outlives the processes of its
// machine.
type wallClock struct {
	from  time.Duration // where it was last bent
	shown int64         // reading there, Unix ns
	ppm   int64         // how much faster than time it runs, parts per million
}

// read returns the reading at a time not before the last bend, in Unix ns.
func (c *wallClock) read(now time.Duration) int64 {
	ran := int64(now - c.from)
	// In two parts: ran * ppm overflows after some hours of great drifts.
	drift := ran/1_000_000*c.ppm + ran%1_000_000*c.ppm/1_000_000
	return c.shown + ran + drift
}

// step moves the clock by an offset.
func (c *wallClock) step(now, by time.Duration) {
	c.shown = c.read(now) + int64(by)
	c.from = now
}

// drift lets the clock run at another rate from now on.
func (c *wallClock) drift(now time.Duration, ppm int64) {
	c.step(now, 0)
	c.ppm = ppm
}

// right sets the clock to the true time and lets it run at the true rate.
func (c *wallClock) right(now time.Duration, base int64) {
	*c = wallClock{from: now, shown: base + int64(now)}
}

// union returns the cells that daemons of a region have in a shard, in their
// order: those that each one counted, and those that it keeps of others.
func union(local []*Daemon, all [][]gossip.Cell, shard int) []gossip.Cell {
	var out []gossip.Cell
	for _, own := range []bool{true, false} { // a writer has the latest value
		for i, d := range local {
			for _, c := range all[i] {
				wrote := c.Kind == gossip.Daemon && c.Incarnation == d.incarnations[shard]
				if wrote == own && (own || node.Keeps(d.Nodes[shard], c.CellID)) {
					out = append(out, c)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
	return slices.CompactFunc(out, func(a, b gossip.Cell) bool { return a.CellID == b.CellID })
}

// sentSums is ownSums without the sums that aggregators do not send to other
// regions yet. These windows count as mixed, with what all regions were sent.
func sentSums(local []*Daemon, shard int, cells []gossip.Cell, moved map[uint64]bool) (sums map[windowOf]crdt.PN, mixed map[windowOf]uint64) {
	sums, mixed = ownSums(cells, moved)
	for w := range sums {
		for _, d := range local {
			if sent, withheld := node.Withholds(d.Nodes[shard], w.key, w.window); withheld {
				mixed[w] = sent
				delete(sums, w)
			}
		}
	}
	return sums, mixed
}

// missingSum compares the sums of a region with what another one holds of it,
// and those that are withheld with what was sent.
func missingSum(
	cells []gossip.Cell, sums map[windowOf]crdt.PN, mixed map[windowOf]uint64, moved map[uint64]bool, region crdt.Incarnation,
) string {
	found, lacks := 0, maps.Clone(mixed)
	maps.DeleteFunc(lacks, func(_ windowOf, sent uint64) bool { return sent == 0 })
	for i := range cells {
		c := &cells[i]
		if c.Kind != gossip.RegionSum || c.Incarnation != region || moved[c.Rule] {
			continue
		}
		if sent, is := mixed[windowOf{c.Key, c.Window}]; is {
			delete(lacks, windowOf{c.Key, c.Window})
			if sat.Add(c.Value.P, c.Value.N) < sent {
				return fmt.Sprintf("%v where it sent %d hits and refunds, in %v", c.Value, sent, c)
			}
			continue
		}
		found++
		if want := sums[windowOf{c.Key, c.Window}]; want != c.Value {
			return fmt.Sprintf("%v where it counted %v, in %v", c.Value, want, c)
		}
	}
	if found < len(sums) {
		return fmt.Sprintf("%d sums of %d", found, len(sums))
	}
	if len(lacks) > 0 {
		return fmt.Sprintf("none of %d sums that were sent", len(lacks))
	}
	return ""
}
