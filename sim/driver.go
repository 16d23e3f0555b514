package sim

import (
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// allShards names the nodes of a daemon as a bit set.
const allShards = ^uint64(0)

// leastSleep keeps a replica that asks to be woken at once from stopping time.
const leastSleep = 100 * time.Microsecond

// The places of Daemon.wakes behind those of its nodes.
const (
	agentWake = iota
	acceptorWake
	processWake
	controlWake
	otherWakes
)

// steps are the ways between a process and its machine: start values, and
// messages and writes on their way. A rig may wrap them before a run starts.
type steps struct {
	// layouts returns the layouts that a daemon knows.
	layouts func(d *Daemon) (active, announced *route.Layout)
	// allotments returns the allotments that the nodes of a process see.
	allotments func(d *Daemon, a node.Allotments) node.Allotments
	agentRules func([]agent.Rule) []agent.Rule
	// post sends the messages of the nodes of a daemon.
	post func(d *Daemon, out []gossip.Message)
	// strict delivers a message about strict keys and returns the answers.
	strict func(d *Daemon, m *sticky.Message) []sticky.Message
	// writeRecord replaces the record of a rights agent, writeLog appends
	// entries to the log of an acceptor.
	writeRecord func(d *Daemon, s *agent.Stored)
	writeLog    func(d *Daemon, entries []quorum.Entry)
	// handOn changes the accounts that a process leaves to the next one.
	handOn func(l *replica.Leftover)
	// transition notes that the breaker of an owner changed its state.
	transition func(d *Daemon, c replica.PathChange)
}

// plainSteps returns the steps of a run without a rig.
func (w *World) plainSteps() steps {
	return steps{
		layouts:     func(d *Daemon) (active, announced *route.Layout) { return layoutsOf(w, d) },
		allotments:  func(_ *Daemon, a node.Allotments) node.Allotments { return a },
		agentRules:  func(list []agent.Rule) []agent.Rule { return list },
		post:        w.post,
		strict:      func(d *Daemon, m *sticky.Message) []sticky.Message { return d.stepStrict(w, m) },
		writeRecord: func(d *Daemon, s *agent.Stored) { d.writeRecord(w, s) },
		writeLog:    func(d *Daemon, entries []quorum.Entry) { d.writeLog(w, entries) },
		handOn:      func(*replica.Leftover) {},
		transition: func(d *Daemon, c replica.PathChange) {
			w.breakers[c.To]++
			if d.sawKind(w, ofBreakers, c.To); w.traced(d) {
				w.lines.add(d, "event", "breaker of %s %v", c.Name, c.To)
			}
		},
	}
}

// drain does the work of the touched nodes of a daemon: it notes their events,
// sends their messages, and schedules when to wake them.
func (w *World) drain(d *Daemon, touched uint64) {
	out := w.outbox[:0]
	for s, n := range d.Nodes {
		if touched&(1<<s) == 0 {
			continue
		}
		r := n.Ready()
		for _, e := range r.Events {
			w.happened(d, e)
		}
		out = append(out, r.Messages...)
		d.wakes[s] = r.Wake
		if every := d.settings.Gossip.Interval; w.owners && every > 0 { // as the shards of a daemon do
			d.wakes[s] = min(r.Wake, (d.Instant(w.now).Mono/every+1)*every)
		}
	}
	w.sleep(d)
	if len(out) > 0 {
		w.steps.post(d, out)
		clear(out)
		w.outbox = out[:0]
	}
	if !w.owners {
		return
	}
	var strict []sticky.Message
	for s := range d.Nodes {
		if touched&(1<<s) != 0 {
			strict = append(strict, d.collect(w, s)...)
		}
	}
	replica.Route(strict, d.parts)
}

// sleep schedules the next wake of a daemon, unless an earlier one is scheduled
// anyway: that one then finds no work and schedules again.
func (w *World) sleep(d *Daemon) {
	if d.process != nil {
		d.wakes[len(d.Nodes)+processWake] = d.process.Wake()
	}
	next := slices.Min(d.wakes)
	if next >= never-w.cfg.Duration || next > MaxDuration*2 {
		return
	}
	at := max(d.started+next, w.now+leastSleep)
	if d.waking <= at && d.waking > w.now {
		return
	}
	d.waking = at
	w.events.push(at, evWake, int32(d.Index))
}

// wake runs the timers of a daemon that are due.
func (w *World) wake(d *Daemon, at time.Duration) {
	if !d.Up || d.Paused || d.waking != at {
		return
	}
	d.waking, w.acting = never, d
	if w.traced(d) {
		w.lines.wake(d)
	}
	now := d.Instant(w.now)
	touched := uint64(0)
	for s, n := range d.Nodes {
		if d.wakes[s] <= now.Mono {
			n.Tick(now)
			touched |= 1 << s
			w.auditors.stepped(d, nil, nil)
		}
	}
	for i, turn := range [otherWakes]func(*World){d.turnAgent, d.turnAcceptor, d.turnProcess, d.turnControl} {
		if d.wakes[len(d.Nodes)+i] <= now.Mono {
			turn(w)
		}
	}
	if touched == 0 {
		w.sleep(d)
		return
	}
	w.drain(d, touched)
}

// post sends the counts of a daemon's shards.
func (w *World) post(d *Daemon, out []gossip.Message) {
	replica.CountFrames(&w.encoder, out, w.network.buffer, func(msgs []gossip.Message, frame []byte, err error) {
		if s := msgs[0].Stamp; s > d.stamp {
			d.stamp, d.stampAt = s, w.now
		}
		to, known := w.membership.byAddress[msgs[0].To]
		switch {
		case !known: // a peer that a fault made up has no address
			return
		case err != nil:
			w.network.traffic.Unsendable++
			return
		case slices.ContainsFunc(msgs, func(m gossip.Message) bool { return transfers(&m) }):
			w.transfers++
		}
		for i := range msgs {
			d.sawCounts(w, ofSent, &msgs[i])
		}
		if m := &w.membership.all[to]; m.daemon != d.Index {
			w.network.send(w, d.Index, m, frame)
		}
	})
}

// receive passes a frame to a running daemon. It returns the error if a part of
// the process rejects the frame; the parts count rejected frames.
func (w *World) receive(d *Daemon, f flight) error {
	w.acting = d
	w.met.received(w, &f)
	w.trace.bytes(f.frame)
	if w.traced(d) {
		w.lines.frame(d, "receive", "from="+w.membership.all[f.sender].name, f.origin, f.frame, "")
	}
	in, err := replica.Decode(&w.decoder, f.origin, f.frame)
	if err == nil && w.daemons[f.from].newer && w.count%newerEvery == 0 {
		err = sameWithoutUnknown(&in, f.origin, f.frame)
	}
	w.network.drop(f)
	switch {
	case f.mangled && err != nil:
		w.network.traffic.Refused++
	case f.mangled: // it must have been rejected
		w.network.traffic.Accepted++
	case err != nil:
		w.network.traffic.Unreadable++
	default:
		r := receiver{world: w, daemon: d}
		err = in.Deliver(&r)
		if r.touched != 0 {
			w.drain(d, r.touched)
		}
	}
	return err
}

// newerEvery is the part of the frames of a later version that are decoded
// without its fields, too.
const newerEvery = 8

// receiver is the parts of a process that receive the messages of a frame.
type receiver struct {
	world   *World
	daemon  *Daemon
	touched uint64 // shards
}

var _ replica.Receiver = (*receiver)(nil)

// StepCounts implements replica.Receiver.
func (r *receiver) StepCounts(m *gossip.Message) error {
	w, d := r.world, r.daemon
	if m.Shards != len(d.Nodes) || m.Shard < 0 || m.Shard >= len(d.Nodes) {
		w.network.traffic.Unreadable++
		return &gossip.ShardsError{Theirs: m.Shards, Ours: len(d.Nodes)}
	}
	err := d.Nodes[m.Shard].Step(d.Instant(w.now), m)
	r.touched |= 1 << m.Shard
	w.auditors.stepped(d, m, err)
	d.sawCounts(w, ofReceived, m)
	return err
}

// StepRights implements replica.Receiver.
func (r *receiver) StepRights(m *agent.Message) error {
	w, d := r.world, r.daemon
	if d.agent == nil {
		return nil
	}
	d.sawRights(w, ofReceived, m)
	err := d.agent.Agent.Receive(d.Instant(w.now).Mono, d.time(w.now).Millis(), m)
	if err == nil && w.network.traffic.ProtocolErrors > 0 && m.Validate() != nil {
		w.network.traffic.Accepted++
	}
	d.turnAgent(w)
	return err
}

// Strict implements replica.Receiver.
func (r *receiver) Strict() replica.Parts {
	if !r.world.owners {
		return nil
	}
	return r.daemon.parts
}

// happened notes an event of a node.
func (w *World) happened(d *Daemon, e gossip.Event) {
	w.seen[e.Kind]++
	d.sawKind(w, "", e.Kind)
	w.trace.happened(d, e)
	if w.traced(d) {
		w.lines.happened(d, e)
	}
	w.auditors.happened(d, e)
	if e.Kind == gossip.BecameReady && d.Synced() {
		w.membership.announceReady(w, d)
	}
}
