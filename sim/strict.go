package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

// Strict is how keys are counted at owners.
type Strict struct {
	// Headroom is how many hits owners have held ahead of need.
	Headroom uint64
	// Prefetch is how many rights to a key daemons keep that are asked for it
	// now and then, 0 for none.
	Prefetch uint64
	// Forward is how long a call waits for an owner in its region, and Margin
	// how much longer than a round trip for one elsewhere.
	Forward, Margin time.Duration
	// Sync is the longest that a disk takes to sync a journal.
	Sync time.Duration
	// Breaker is when a daemon stops asking an owner that does not answer. A
	// field of 0 is its default.
	Breaker breaker.Config
	// Waiters bounds the calls of a daemon that wait at one time, Queue the
	// requests for one key and the items to one daemon, and VoterKeys the keys
	// of a voter. 0 is the default.
	Waiters, Queue, VoterKeys int
}

// defaultStrict is the Strict of Default.
var defaultStrict = Strict{
	Headroom: 20, Prefetch: 16,
	Forward: 50 * time.Millisecond, Margin: 100 * time.Millisecond, Sync: maxSync,
}

func (s *Strict) validate() error {
	switch {
	case s.Headroom < 1 || s.Headroom > 1_000_000:
		return fmt.Errorf("sim: headroom of %d hits: want 1 to 1,000,000", s.Headroom)
	case s.Prefetch > 1_000_000:
		return fmt.Errorf("sim: prefetch of %d rights: want at most 1,000,000", s.Prefetch)
	case s.Waiters < 0 || s.Queue < 0 || s.VoterKeys < 0:
		return fmt.Errorf("sim: bounds of %d waiters, %d in a queue and %d keys: want 0 or more", s.Waiters, s.Queue, s.VoterKeys)
	case s.Forward < 0 || s.Margin < 0 || s.Sync < 0 || max(s.Forward, s.Margin, s.Sync) > time.Minute:
		return fmt.Errorf("sim: waits of %v and %v, syncs of %v: want 0 to a minute", s.Forward, s.Margin, s.Sync)
	}
	return nil
}

// FirstLayout returns the layout that a run without a control log begins with.
func (c *Config) FirstLayout() route.Layout {
	l := route.Layout{Number: 1}
	for i := range c.Regions {
		r := &c.Regions[i]
		weight, voters := uint64(1), c.firstVoters(r)
		if i < len(c.Rights.Weights) {
			weight = max(1, c.Rights.Weights[i]) // as a daemon reads them
		}
		if len(voters) == 0 { // a region without a disk owns no keys
			weight = 0
		}
		l.Regions = append(l.Regions, route.Region{Name: r.Name, Weight: uint32(weight), Replicas: voters})
	}
	slices.SortFunc(l.Regions, func(a, b route.Region) int { return cmp.Compare(a.Name, b.Name) })
	l.Pins = slices.DeleteFunc(replica.Pins(c.Rules), func(p route.Pin) bool { return l.Region(p.Region).Retired() })
	return l
}

// firstVoters returns the strict voters of a region at first: some of its
// daemons with a disk.
func (c *Config) firstVoters(r *Region) []string {
	var names []string
	for i := range r.Daemons {
		if name := r.Daemon(i); !c.diskless(&Daemon{Name: name, Region: r.Name, owner: name}) {
			names = append(names, name)
		}
	}
	names = names[:votersOf(min(mostVoters, len(names)))]
	slices.Sort(names)
	return names
}

// mostVoters is how many daemons of a region are strict voters at most, as the
// control log chooses them.
const mostVoters = 5

// votersOf returns how many of n daemons can vote: an odd number, or two.
func votersOf(n int) int {
	if n > 2 && n%2 == 0 {
		return n - 1
	}
	return n
}

// ParseLimits compiles limits for the cluster. If some of them place their
// rights at owners or regions, the rights of all are placed by the size of the
// cluster. Else every daemon holds a part of all of them.
func (c *Config) ParseLimits(file limits.File) (*rules.Set, yamlpos.Diagnostics) {
	files, o := []limits.File{file}, limits.Options{}
	set, diags := limits.Parse(files, o)
	placed := func(r *rules.Rule) bool {
		return r.Limit != nil && (r.Limit.Placement == rules.PerRegion || r.Limit.Placement == rules.Owner)
	}
	if set == nil || !slices.ContainsFunc(set.Rules(), placed) {
		return set, diags
	}
	for i := range c.Regions {
		o.Regions = append(o.Regions, c.Regions[i].Name)
		o.DaemonsOfRegion = max(o.DaemonsOfRegion, c.Regions[i].Daemons)
	}
	o.Daemons = c.Daemons()
	return limits.Parse(files, o)
}

// parts is what serves strict keys in a process: its nodes, its acceptor and
// its machine.
type parts struct {
	world  *World
	daemon *Daemon
}

var (
	_ lease.Owners  = (*parts)(nil)
	_ replica.Parts = (*parts)(nil)
)

// Routing implements lease.Owners.
func (p *parts) Routing() *route.Routing { return p.daemon.acceptor.Acceptor.Routing() }

// Reach implements lease.Owners.
func (p *parts) Reach(of crdt.Incarnation) (time.Duration, bool) {
	return p.Routes().Reach(p.mono, of)
}

func (p *parts) mono() time.Duration { return p.world.now - p.daemon.started }

// Routes implements replica.Parts.
func (p *parts) Routes() *replica.Routes { return p.daemon.process.Reach.Routes() }

// With implements replica.Parts.
func (p *parts) With(do func(*replica.Process)) { do(p.daemon.process) }

// StepStrict implements replica.Parts.
func (p *parts) StepStrict(m *sticky.Message) []sticky.Message {
	return p.world.steps.strict(p.daemon, m)
}

// Flush implements replica.Parts. Messages to an unknown address or to an
// earlier process of the daemon itself are lost.
func (p *parts) Flush(to crdt.Incarnation) {
	w, d := p.world, p.daemon
	at, o := d.Instant(w.now).Mono, d.process.Outbox
	i, known := w.membership.byAddress[to]
	for m, ok := o.Next(at, to); ok; m, ok = o.Next(at, to) {
		frame, err := wire.EncodeStrict(w.network.buffer(), &m)
		is := &w.membership.all[i]
		lost := !known || is.daemon == d.Index
		sent := err == nil && (lost || w.network.room(w.now, d.Index, is.daemon))
		o.Done(at, &m, sent, err)
		switch {
		case err != nil:
			w.network.traffic.Unsendable++
		case sent && !lost:
			w.network.traffic.Strict++
			w.network.traffic.StrictBytes += uint64(len(frame))
			d.sawStrict(w, ofSent, &m)
			w.strict.sent(w.now, is.daemon, &m)
			w.network.send(w, d.Index, is, frame)
			if d.breaksProtocol(w) {
				d.sendBadStrict(w, &m, is)
			}
		}
	}
}

// openAcceptor recovers the acceptor of a process that starts, where keys have
// owners.
func (d *Daemon) openAcceptor(w *World) error {
	if !w.owners {
		return nil
	}
	d.logConfig = quorum.Config{Region: d.Region, Name: d.Name, MaxKeys: w.cfg.Strict.VoterKeys}
	d.opened = false
	loop, found, err := openLog(w, d)
	if err != nil {
		return err
	}
	if d.acceptor = loop; found.Fault != nil {
		d.logFailed = true // until reopenLog
		return nil
	}
	recovered(w, d, &found)
	return nil
}

// openLog opens the log of the acceptor.
func openLog(w *World, d *Daemon) (*replica.AcceptorLoop, replica.Recovery, error) {
	s := d.storage
	s.Fence = d.clock.read(w.now)/int64(time.Millisecond) + 2*w.cfg.maxOffset().Milliseconds()
	loop, log, found, err := s.OpenAcceptor(d.logConfig)
	if d.log = log; err != nil {
		err = fmt.Errorf("sim: the disk of %s: %w", d.Name, err)
	}
	return loop, found, err
}

// reopenLog opens the log of an acceptor again that has failed, when that is
// due.
func reopenLog(w *World, d *Daemon) {
	at := d.Instant(w.now).Mono
	if d.writing[journalFile] != nil || !d.acceptor.ReopenDue(at) {
		return
	}
	_ = d.log.Close()
	loop, found, err := openLog(w, d)
	if err != nil || found.Fault != nil {
		return
	}
	recovered(w, d, &found)
	d.acceptor.Reopened(at, loop)
}

// recovered notes how the log of an acceptor was found.
func recovered(w *World, d *Daemon, found *replica.Recovery) {
	d.logFailed, d.opened = false, true
	w.opened(d, found.File, found.Damage)
	if found.Found != replica.Intact && !d.first {
		d.lostLog = true
		w.storage.check(d.damaged || d.logDisk != d.disks, "at %v: %s does not find the entries of %s", w.now, d.Name, found.File)
	}
}

// newProcess returns the process machine of a daemon whose nodes are made.
func (d *Daemon) newProcess(w *World) *replica.Process {
	s := &w.cfg.Strict
	return replica.New(replica.Config{
		Self: d.incarnations[0], Region: d.Region, Shards: len(d.Nodes),
		ForwardTimeout: s.Forward, ForwardMargin: s.Margin, Breaker: s.Breaker, MaxWaiters: s.Waiters, MaxQueued: s.Queue,
	})
}

// strictPeers sets the live daemons, as a process knows them, where keys have
// owners.
func (d *Daemon) strictPeers(w *World, list []gossip.Peer) {
	if !w.owners {
		return
	}
	at := d.Instant(w.now).Mono
	d.process.Reach.Peers(at, list)
	d.acceptor.Peers(at, d.incarnations[0], list)
	d.turnAcceptor(w)
}

// turnProcess runs the timers of the process machine that are due.
func (d *Daemon) turnProcess(w *World) {
	at := d.Instant(w.now)
	r := d.process.Tick(at.Mono)
	for _, c := range r.Late {
		w.goOn(c.Tag.(*pendingCall))
	}
	for _, to := range r.Flush {
		d.parts.Flush(to)
	}
	if r.Measure {
		d.process.Reach.Measure(slices.Collect(d.Nodes[0].Links(at)))
		d.acceptor.Clocks(at.Mono, d.time(w.now), d.Nodes[0].Offsets())
	}
	for _, c := range d.process.Reach.Changes() {
		w.steps.transition(d, c)
	}
	w.sleep(d)
}

// followLayouts gives an acceptor the layouts that the daemon knows, and the
// control log the state of the acceptor.
func followLayouts(d *Daemon, w *World) {
	active, announced := w.steps.layouts(d)
	d.acceptor.Follow(d.Instant(w.now).Mono, active, announced)
	d.acceptor.Confirmed(d.control == nil || !d.control.Starting())
	if d.control != nil {
		d.control.Layouts().Report(replica.ReportOf(d.acceptor.Acceptor.Report()), replica.Pins(w.sets[d.Set].set))
	}
}

// layoutsOf returns the layouts that a daemon knows.
func layoutsOf(w *World, d *Daemon) (active, announced *route.Layout) {
	if d.control == nil {
		return w.layouts.Active, w.layouts.Announced
	}
	if r := d.control.Record(); r != nil {
		return r.Layouts.Active, r.Layouts.Announced
	}
	return nil, nil
}

// reportsOf returns the state of the acceptors of daemons that run.
func reportsOf(w *World) quorum.Reports {
	return func(region, name string) (quorum.Report, bool) {
		for _, d := range w.daemons {
			if d.Region == region && d.Name == name && d.Up && !d.Paused && d.acceptor != nil {
				return d.acceptor.Acceptor.Report(), true
			}
		}
		return quorum.Report{}, false
	}
}

// beginLayouts makes the first layout active in a run without a control log,
// once all daemons have started.
func beginLayouts(w *World) {
	waits := slices.ContainsFunc(w.daemons, func(d *Daemon) bool { return d.starts == 0 })
	if w.owners && w.cfg.Control == nil && w.layouts.Active == nil && !waits {
		w.layouts.Begin(w.cfg.FirstLayout(), reportsOf(w))
		spreadLayouts(w)
	}
}

// turnLayouts makes an announced layout active in a run without a control log,
// as soon as that can be. All daemons learn it at once.
func turnLayouts(w *World) {
	if w.layouts.Announced == nil {
		return
	}
	from := int64(0)
	for _, d := range w.daemons {
		from = max(from, d.clock.read(w.now)/int64(time.Millisecond)+2*w.cfg.maxOffset().Milliseconds())
	}
	if w.layouts.Turn(from, reportsOf(w)) {
		spreadLayouts(w)
	}
}

// spreadLayouts lets all daemons that run learn the layouts.
func spreadLayouts(w *World) {
	for _, d := range w.daemons {
		if d.Up && !d.Paused && d.acceptor != nil {
			d.turnAcceptor(w)
		}
	}
}

// turnAcceptor does the work of an acceptor that is due.
func (d *Daemon) turnAcceptor(w *World) {
	if d.compacting {
		return // compact lets it take the turn
	}
	w.auditors.stepped(d, nil, nil) // it reads the clocks
	reopenLog(w, d)
	followLayouts(d, w)
	d.serveAcceptor(w, d.acceptor.Turn(d.Instant(w.now).Mono, d.time(w.now)))
}

// serveAcceptor does what an acceptor returned.
func (d *Daemon) serveAcceptor(w *World, r quorum.Ready) {
	for i := range r.Events {
		w.acceptors[r.Events[i].Kind]++
		if r.Events[i].Kind == quorum.EndedAhead {
			d.EndedAhead++
		}
		d.sawKind(w, ofStrict, r.Events[i].Kind)
		w.trace.word(uint64(d.Index)<<32 | uint64(r.Events[i].Kind))
		if e := &r.Events[i]; w.traced(d) {
			w.lines.add(d, "event", "acceptor %v peer=%s %s", e.Kind, e.Peer, e.Text)
		}
	}
	d.wakes[len(d.Nodes)+acceptorWake] = r.Wake
	d.passSent(w, r.Messages)
	replica.Route(r.Messages, d.parts)
	if len(r.Store) > 0 {
		w.steps.writeLog(d, r.Store)
	}
	w.sleep(d)
}

// collect returns the messages of a node about strict keys, and wakes the calls
// that it has answered.
func (d *Daemon) collect(w *World, shard int) []sticky.Message {
	ready := d.Nodes[shard].LeaseReady(d.Instant(w.now))
	for _, ticket := range ready.Answered {
		if c := d.process.Waiters.Answered(ticket, shard); c != nil {
			w.events.push(w.now, evCall, w.woken.put(c.Tag.(*pendingCall)))
		}
	}
	d.passSent(w, ready.Messages)
	return ready.Messages
}

// passSent passes messages to the auditors before they are sent.
func (d *Daemon) passSent(w *World, out []sticky.Message) {
	for i := range out {
		w.auditors.sent(d, &out[i])
	}
}

// stepStrict hands a message about strict keys to its recipients. It returns
// the answers of the nodes.
func (d *Daemon) stepStrict(w *World, m *sticky.Message) []sticky.Message {
	d.sawStrict(w, ofReceived, m)
	var answers []sticky.Message
	at := d.Instant(w.now)
	set, acceptor := replica.Recipients(m, len(d.Nodes))
	each(set, func(s int) {
		d.Nodes[s].StepLease(at, m) // drops messages that it rejects
		answers = append(answers, d.collect(w, s)...)
	})
	if acceptor { // a rejected message is an event of the acceptor
		_ = d.acceptor.Receive(at.Mono, d.time(w.now), m)
		d.turnAcceptor(w)
	}
	if set != 0 {
		w.drain(d, set)
	}
	return answers
}

// reachesOwners reports whether in every region a majority of the voters can
// vote and does not refuse a daemon, and so none of each other. All owners that
// the daemon asks are such voters.
func (w *World) reachesOwners(d *Daemon) bool {
	layout := d.acceptor.Acceptor.Layout()
	return !slices.ContainsFunc(layout.Regions, func(region route.Region) bool {
		able, lost := 0, 0
		for _, o := range w.daemons {
			switch {
			case !slices.Contains(region.Replicas, o.Name) || d.refuses(o):
			case o.lostVotes():
				lost++
			default:
				able++
			}
		}
		if others := len(region.Replicas) - 1; lost == 1 && able == others && others > 0 {
			able++ // it copies from all others
		}
		return !region.Retired() && able < route.Majority(len(region.Replicas))
	})
}

// hardlyLent reports whether owners have little to grant of a bucket: without
// the reserves of regions it holds few tokens, or refills while a grant is on
// its way.
func hardlyLent(w *World, l *rules.Limit) bool {
	owner := l.OwnerLimit(len(w.regions))
	f, net := quota.Of(&owner), &w.cfg.Network
	trip := 2 * max(net.Across.Delay+net.Across.Jitter, net.Region.Delay+net.Region.Jitter)
	return f.Drains() && (f.Capacity() < uint64(4*len(w.daemons)) || f.RefillTime() < 4*trip.Milliseconds())
}
