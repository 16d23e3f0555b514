package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
	"github.com/georld/rld/wire"
)

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
			w.network.send(w, d.Index, is.daemon, is.name, frame)
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
	cfg := quorum.Config{Region: d.Region, Name: d.Name, Genesis: w.steps.genesis(d), MaxKeys: w.cfg.Strict.VoterKeys}
	var err error
	var found replica.Recovery
	if d.acceptor, d.log, found, err = d.storage.OpenAcceptor(cfg); err != nil {
		return fmt.Errorf("sim: the disk of %s: %w", d.Name, err)
	}
	w.opened(d, found.File, found.Damage)
	if found.Found != replica.Intact && found.Found != replica.NeverRan {
		d.lostLog = true
		w.storage.check(d.damaged || d.logDisk != d.disks, "at %v: %s does not find the entries of %s", w.now, d.Name, found.File)
	}
	return nil
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
	}
	for _, c := range d.process.Reach.Changes() {
		w.steps.transition(d, c)
	}
	w.sleep(d)
}

// turnAcceptor does the work of an acceptor that is due.
func (d *Daemon) turnAcceptor(w *World) {
	if d.compacting {
		return // compact lets it take the turn
	}
	w.auditors.stepped(d, nil, nil) // it reads the clocks
	d.serveAcceptor(w, d.acceptor.Turn(d.Instant(w.now).Mono, d.time(w.now)))
}

// serveAcceptor does what an acceptor returned.
func (d *Daemon) serveAcceptor(w *World, r quorum.Ready) {
	for i := range r.Events {
		w.acceptors[r.Events[i].Kind]++
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
