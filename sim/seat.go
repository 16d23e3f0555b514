package sim

import (
	"fmt"
	"time"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// seat is a process's part in strict keys above its nodes: its replica, with the
// journal of it, and what it knows of how homes answer.
type seat struct {
	replica *quorum.Acceptor
	clock   *hlc.Clock
	circuit circuits

	waiting [][]byte         // entries for the next sync of the journal
	syncing [][]byte         // those of the sync under way
	synced  bool             // during a pause
	own     []sticky.Message // to itself, not heard yet
	busy    bool             // hearing them
}

var _ node.Owners = (*owners)(nil)

// owners is what the nodes of a process ask about homes.
type owners struct {
	world  *World
	daemon *Daemon
}

// Routing implements node.Owners.
func (h *owners) Routing() *route.Routing { return h.daemon.seat.replica.Routing() }

// Reach implements node.Owners: the time to a daemon's region and back and
// something more, or less in one's own.
func (h *owners) Reach(of crdt.Incarnation) (time.Duration, bool) {
	w, d := h.world, h.daemon
	s := w.cfg.Strict.withDefaults()
	i, known := w.addressOf[of]
	if !known {
		return s.Forward, true
	}
	to := w.daemons[w.members[i].daemon]
	open := d.seat.circuit.passes(w.now-d.started, of)
	if to.Region == d.Region {
		return s.Forward, open
	}
	trip := w.link(d.Index, to.Index).Delay + w.link(to.Index, d.Index).Delay
	return min(trip, time.Minute) + s.Margin, open
}

// claim and release account for a call that waits for a home.
func (d *Daemon) claim(now time.Duration, owner crdt.Incarnation) {
	d.seat.circuit.claim(now-d.started, owner)
}

func (d *Daemon) release(now time.Duration, owner crdt.Incarnation, answered bool) {
	d.seat.circuit.release(now-d.started, owner, answered)
}

// takeSeat gives a process that starts its replica, where keys have homes.
func (w *World) takeSeat(d *Daemon) error {
	d.seat = nil
	if !w.owners {
		return nil
	}
	cfg := quorum.Config{Region: d.Region, Name: d.Name, Genesis: w.cfg.firstLayout()}
	if w.cfg.mutation.genesis != nil {
		w.cfg.mutation.genesis(d, &cfg.Genesis)
	}
	start := w.startOf(d)
	if start.Stored != nil && w.cfg.mutation.reconfigured {
		start.Stored.Layout = cfg.Genesis
	}
	replica, err := quorum.NewAcceptor(cfg, start)
	if err != nil {
		return fmt.Errorf("sim: %s: %w", d.Name, err)
	}
	d.satAs = d.Name
	d.seat = &seat{replica: replica, clock: hlc.NewClock(w.cfg.Node.Clock), circuit: newCircuits(w.cfg.Strict.Breaker)}
	d.seat.clock.HoldJumps(true)
	return nil
}

// startOf reads the journal of a machine. One that was cut short before it said
// anything is as good as lost, and so is one that was never written by a daemon
// that ran before.
func (w *World) startOf(d *Daemon) quorum.Start {
	if len(d.disk.journal) == 0 && d.satAs != d.Name {
		return quorum.Start{First: true}
	}
	lost := quorum.Start{Generation: uint64(d.starts) + 1}
	if w.cfg.mutation.forgetful {
		lost = quorum.Start{First: true}
	}
	if len(d.disk.journal) == 0 {
		return lost
	}
	stored := &quorum.Stored{}
	for _, record := range d.disk.journal {
		entry, err := wire.DecodeEntry(record)
		if err != nil || stored.Apply(entry) != nil {
			return lost
		}
	}
	if stored.Validate() != nil {
		return lost
	}
	return quorum.Start{Stored: stored}
}

// atOwner has a node count at homes.
func (w *World) atOwner(d *Daemon, c *node.Config) {
	if d.seat != nil {
		c.Owners, c.Strict = &owners{w, d}, w.cfg.ownersConfig()
	}
}

// seatPeers tells a replica who is there.
func (w *World) seatPeers(d *Daemon, list []gossip.Peer) {
	if d.seat == nil {
		return
	}
	peers := make([]route.Peer, 0, len(list))
	for _, p := range list {
		peers = append(peers, route.Peer{ID: p.ID, Name: p.Name, Region: p.Region, Ready: p.Ready})
	}
	d.seat.replica.Peers(d.Instant(w.now).Mono, d.incarnations[0], peers)
	w.sit(d)
}

// sit lets a replica do what is due.
func (w *World) sit(d *Daemon) {
	at := d.Instant(w.now)
	d.seat.replica.Tick(at.Mono, d.seat.clock.Millis(at))
	w.serve(d)
}

// serve does what a replica wants done.
func (w *World) serve(d *Daemon) {
	s, at := d.seat, d.Instant(w.now)
	r := s.replica.Ready(at.Mono)
	for i := range r.Events {
		w.seated(d, &r.Events[i])
	}
	unstored := w.cfg.mutation.early && len(d.disk.journal) > 0
	if len(r.Store) > 0 && !unstored {
		for i := range r.Store {
			s.waiting = append(s.waiting, wire.EncodeEntry(nil, &r.Store[i]))
		}
		w.sync(d)
	}
	d.wakes[len(d.Nodes)+1] = r.Wake
	for i := range r.Messages {
		w.postStrict(d, &r.Messages[i])
	}
	w.sleep(d)
	if len(r.Store) > 0 && unstored {
		s.replica.Stored()
		w.serve(d)
	}
	w.converse(d)
}

// seated takes note of an event of a replica.
func (w *World) seated(d *Daemon, e *quorum.Event) {
	w.seats[e.Kind]++
	w.trace.word(uint64(d.Index)<<32 | uint64(e.Kind))
	w.trace.maybeFlush()
}

// sync writes what waits to the journal, which takes a while.
func (w *World) sync(d *Daemon) {
	s := d.seat
	if s.syncing != nil || len(s.waiting) == 0 {
		return
	}
	s.syncing, s.waiting = s.waiting, nil
	w.strict.out.Syncs++
	w.events.push(w.now+w.between(0, w.cfg.Strict.withDefaults().Sync), evSynced, d.member)
}

// synced lets a process know that its journal is on the disk.
func (w *World) synced(member int32) {
	d := w.daemons[w.members[member].daemon]
	if !d.Up || d.member != member || d.seat == nil {
		return
	}
	s := d.seat
	d.disk.journal = append(d.disk.journal, s.syncing...)
	s.syncing = nil
	w.compact(d)
	if d.Paused {
		s.synced = true
		return
	}
	s.replica.Stored()
	w.serve(d)
}

// maxJournal is how many entries a journal has before it is written anew.
const maxJournal = 5_000

// compact writes a journal anew that has grown long.
func (w *World) compact(d *Daemon) {
	if len(d.disk.journal) < maxJournal {
		return
	}
	// Of the entries themselves: what a replica holds now may not be stored yet.
	stored := &quorum.Stored{}
	for _, record := range d.disk.journal {
		entry, err := wire.DecodeEntry(record)
		if err != nil || stored.Apply(entry) != nil {
			w.failed = fmt.Errorf("sim: the journal of %s cannot be read", d.Name)
			return
		}
	}
	var journal [][]byte
	put := func(e quorum.Entry) { journal = append(journal, wire.EncodeEntry(nil, &e)) }
	put(quorum.Entry{Layout: &stored.Layout})
	if stored.Next != nil {
		put(quorum.Entry{Next: stored.Next})
	}
	put(quorum.Entry{Meta: &stored.Meta})
	for i := range stored.Records {
		put(quorum.Entry{Record: &stored.Records[i]})
	}
	d.disk.journal = journal
}

// tear ends a seat with its process. Of the entries on their way to the disk
// some, the first ones, arrive.
func (w *World) tear(d *Daemon) {
	if d.seat == nil {
		return
	}
	if n := len(d.seat.syncing); n > 0 {
		d.disk.journal = append(d.disk.journal, d.seat.syncing[:w.chaos.IntN(n+1)]...)
	}
	d.seat = nil
}

// errands does what the touched nodes of a daemon want done about strict keys.
func (w *World) errands(d *Daemon, touched uint64) {
	at := d.Instant(w.now)
	for s, n := range d.Nodes {
		if touched&(1<<s) == 0 {
			continue
		}
		e := n.LeaseReady(at)
		for _, ticket := range e.Answered {
			w.answered(ticket, s)
		}
		for i := range e.Messages {
			w.postStrict(d, &e.Messages[i])
		}
	}
	w.converse(d)
}

// postStrict sends a message about strict keys, or keeps it for the daemon itself.
func (w *World) postStrict(d *Daemon, m *sticky.Message) {
	if m.Stamp == 0 {
		m.Stamp = d.seat.clock.Now(d.Instant(w.now))
	}
	for _, a := range w.auditors {
		if l, ok := a.(Listener); ok {
			l.Said(w, d, m)
		}
	}
	if m.To == d.incarnations[0] {
		d.seat.own = append(d.seat.own, *m)
		return
	}
	to, known := w.addressOf[m.To]
	if !known {
		return // as those of nodes
	}
	frame, err := wire.EncodeStrict(w.buffer(), m)
	if err != nil || len(frame) > wire.MaxFrameBytes {
		w.traffic.Unsendable++
		return
	}
	if is := &w.members[to]; is.daemon != d.Index {
		w.traffic.Strict++
		w.traffic.StrictBytes += uint64(len(frame))
		w.strict.sent(w.now, is.daemon, m)
		w.send(d.Index, is.daemon, is.name, frame)
	}
}

// converse hands a daemon what it said to itself, until it has no more to say.
func (w *World) converse(d *Daemon) {
	s := d.seat
	if s == nil || len(s.own) == 0 || s.busy {
		return
	}
	s.busy = true
	for turns := 0; len(s.own) > 0; turns++ {
		if turns == maxTurns {
			w.failed = fmt.Errorf("sim: %s goes on and on about strict keys with itself", d.Name)
			break
		}
		m := s.own[0]
		s.own = s.own[1:]
		w.heed(d, &m)
	}
	s.busy = false
}

// maxTurns bounds what a daemon has to say to itself at one instant.
const maxTurns = 100_000

// receiveStrict hands a frame to the nodes and the replica of a daemon that runs.
func (w *World) receiveStrict(d *Daemon, f flight) {
	m, err := wire.DecodeStrict(f.frame)
	w.drop(f)
	switch {
	case f.mangled:
		w.mangled(err)
		return
	case err != nil:
		w.traffic.Unreadable++
		return
	case d.seat == nil || m.To != d.incarnations[0]:
		return // for the process before
	}
	_ = d.seat.clock.Observe(d.Instant(w.now), m.Stamp) // a clock that is off is not followed
	w.heed(d, m)
}

// heed hands a message to its daemon, or what a planted bug makes of it.
func (w *World) heed(d *Daemon, m *sticky.Message) {
	if w.cfg.mutation.strict == nil {
		w.take(d, m)
		return
	}
	for _, m := range w.cfg.mutation.strict(w, d, m) {
		w.take(d, m)
	}
}

// take hands a message to the nodes and the replica of its daemon.
func (w *World) take(d *Daemon, m *sticky.Message) {
	at := d.Instant(w.now)
	parts := make([]sticky.Message, len(d.Nodes))
	touched := uint64(0)
	part := func(k crdt.Key) *sticky.Message {
		s := node.ShardOf(k, len(d.Nodes))
		touched |= 1 << s
		return &parts[s]
	}
	for i := range m.Requests {
		p := part(m.Requests[i].Key)
		p.Requests = append(p.Requests, m.Requests[i])
	}
	for i := range m.Grants {
		p := part(m.Grants[i].Key)
		p.Grants = append(p.Grants, m.Grants[i])
	}
	for i := range m.Accepted {
		p := part(m.Accepted[i].Key)
		p.Accepted = append(p.Accepted, m.Accepted[i])
	}
	for s := range parts {
		if touched&(1<<s) == 0 {
			continue
		}
		p := &parts[s]
		p.From, p.To, p.Stamp, p.Number = m.From, m.To, m.Stamp, m.Number
		w.rejected += uint64(d.Nodes[s].StepLease(at, p))
		w.heeded(d, s, p)
	}
	if len(m.Accepts)+len(m.SnapshotRequests)+len(m.SnapshotChunks)+len(m.Layouts) > 0 {
		rest := *m
		rest.Requests, rest.Grants, rest.Accepted = nil, nil, nil
		// What is wrong with a message is an event of the replica.
		_ = d.seat.replica.Receive(at.Mono, d.seat.clock.Millis(at), &rest)
		w.serve(d)
	}
	if touched != 0 {
		w.drain(d, touched)
	}
}

// heeded tells the auditors what a node took in about strict keys.
func (w *World) heeded(d *Daemon, shard int, m *sticky.Message) {
	for _, a := range w.auditors {
		if h, ok := a.(Heeder); ok {
			h.Heeded(w, d, shard, m)
		}
	}
}
