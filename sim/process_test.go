package sim

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/disk/simdisk"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/replica/processtest"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// TestProcess replays the scripts of replica/testdata/process.
func TestProcess(t *testing.T) { processtest.Run(t, playProcess) }

// playProcess calls play with the driver of the simulator.
func playProcess(_ *testing.T, play func(func(*processtest.Script) processtest.Driver)) {
	play(func(x *processtest.Script) processtest.Driver { return newVirtualProcess(x) })
}

// virtualProcess is a world of which only us-0 runs. The machines of its peers
// are there, and a script plays the processes on them.
type virtualProcess struct {
	script *processtest.Script
	world  *World
	daemon *Daemon
	peer   map[crdt.Incarnation]int32 // in World.membership
	calls  []virtualCall
	change func([][]byte) [][]byte // of the log, before the next start
	held   bool                    // no write is done
	waits  []int32                 // writes that are not
}

// virtualCall is a call without an answer yet.
type virtualCall struct {
	pending *pendingCall
	decided func()
}

var errVirtualDisk = errors.New("disk on fire")

func newVirtualProcess(x *processtest.Script) *virtualProcess {
	cfg := Default()
	cfg.Regions = []Region{{"us", len(x.Daemons())}, {"eu", 1}, {"ap", 1}}
	cfg.Shards, cfg.Rules, cfg.Duration = processtest.Shards, processtest.Rules(), MaxDuration
	cfg.Network = Network{}
	cfg.Node.Gossip.FrameCells = processtest.Cells
	cfg.Strict = Strict{Headroom: 20, Forward: processtest.ForwardTimeout, Margin: processtest.ForwardMargin, Sync: time.Nanosecond, Breaker: processtest.Breaker}
	v := &virtualProcess{script: x, world: newWorld(&cfg), peer: map[crdt.Incarnation]int32{}}
	w := v.world
	w.now, v.daemon = 0, w.daemons[0]
	for _, p := range processtest.Peers() {
		if i := slices.IndexFunc(w.daemons, func(d *Daemon) bool { return d.Name == p.Name }); i >= 0 {
			v.join(p, i)
		}
	}
	w.steps.layouts = func(*Daemon) (active, announced *route.Layout) { return x.Layout(), nil }
	w.steps.transition = func(_ *Daemon, c replica.PathChange) {
		x.Transition(c.Region+"/"+c.Name, c.To.String(), c.From.String(), uint64(c.Calls), uint64(c.Failures))
	}
	return v
}

// join makes a peer a member that takes frames and does nothing with them.
func (v *virtualProcess) join(p gossip.Peer, daemon int) {
	m := &v.world.membership
	shards := slices.Repeat([]crdt.Incarnation{p.ID}, processtest.Shards)
	v.peer[p.ID] = int32(len(m.all))
	m.byAddress[p.ID] = int32(len(m.all))
	m.all = append(m.all, incarnation{daemon: daemon, name: p.Name, incarnations: shards, up: true})
}

// others sets whether the machines of the peers are up.
func (v *virtualProcess) others(up bool) {
	for _, d := range v.world.daemons {
		if d != v.daemon {
			d.Up, d.Paused, d.inbox = up, up, nil
		}
	}
	for _, i := range v.peer {
		v.world.membership.all[i].up = up
	}
}

func (v *virtualProcess) Stop() {}

func (v *virtualProcess) Start() {
	v.others(false)
	v.world.crash(v.daemon)
	if v.calls = nil; v.change != nil {
		v.changeLog(v.change)
		v.change = nil
	}
	v.script.Must(v.world.start(v.daemon))
	v.daemon.known = []int32{v.daemon.member}
	v.world.membership.setPeers(v.world, v.daemon)
	v.others(true)
	v.Pass(0)
}

func (v *virtualProcess) Self() crdt.Incarnation { return v.daemon.incarnations[0] }

func (v *virtualProcess) Mono() time.Duration { return v.world.now }

func (v *virtualProcess) Wall() time.Time {
	return time.Unix(0, v.daemon.Instant(v.world.now).Wall).UTC()
}

func (v *virtualProcess) Pass(d time.Duration) {
	w := v.world
	until := w.now + d
	v.settle()
	for w.events.len() > 0 && w.events.events[0].at <= until {
		at := w.events.events[0].at
		if e := w.events.events[0]; v.held && e.kind == evStored && !w.writes.items[e.arg].done {
			w.now = at
			w.events.pop()
			v.waits = append(v.waits, e.arg)
		} else {
			w.runUntil(at + 1)
			w.now = at
		}
		if wake := v.daemon.process.Wake(); w.doing.kind == evWake && wake <= v.daemon.Instant(at).Mono {
			v.script.Errorf("at %v it is to be woken at %v", at, wake)
		}
		v.script.Must(w.failed)
		v.settle()
	}
	w.now = until
}

// settle hands the frames that arrived, the decisions and the transitions of
// breakers to the script.
func (v *virtualProcess) settle() {
	w := v.world
	w.sleep(v.daemon)
	for _, c := range v.daemon.process.Reach.Changes() {
		w.steps.transition(v.daemon, c)
	}
	for _, d := range w.daemons {
		if d == v.daemon {
			continue
		}
		arrived := d.inbox
		d.inbox = nil
		for _, i := range arrived {
			f := w.network.flights.take(i)
			v.script.Sent(f.origin.To, f.frame)
		}
	}
	v.calls = slices.DeleteFunc(v.calls, func(c virtualCall) bool {
		i := slices.Index(w.calls, c.pending.call)
		if i >= 0 {
			w.calls = slices.Delete(w.calls, i, i+1)
			c.decided()
		}
		return i >= 0
	})
}

// peers does what membership does with the news of peers.
func (v *virtualProcess) Peers(live []gossip.Peer) {
	w, d := v.world, v.daemon
	all := []gossip.Peer{{ID: v.Self(), Name: d.Name, Region: d.Region, Ready: true}}
	for _, p := range live {
		if _, ok := v.peer[p.ID]; !ok {
			v.join(p, len(w.daemons)-1)
		}
		all = append(all, p)
	}
	for _, n := range d.Nodes {
		n.Peers(d.Instant(w.now), all)
	}
	d.agentPeers(w, all)
	d.strictPeers(w, all)
	w.drain(d, allShards)
}

func (v *virtualProcess) Receive(from gossip.Peer, frame []byte) error {
	i := v.peer[from.ID]
	return v.world.receive(v.daemon, flight{
		from: int32(v.world.membership.all[i].daemon), to: int32(v.daemon.Index), sender: i, name: v.daemon.Name, frame: frame,
		origin: replica.Origin{Incarnation: v.world.membership.all[i].incarnations[0], To: v.Self()},
	})
}

func (v *virtualProcess) Call(c *node.Call, noWait bool, decided func()) (leave func()) {
	w, d := v.world, v.daemon
	v.script.Must(w.sets[d.Set].front.Resolve(c))
	a := &pendingCall{call: c, from: attempt{source: traceSource}, daemon: d, member: d.member, set: d.Set, since: w.now}
	a.Tag = a
	a.Start(c)
	a.NoWait = noWait
	v.calls = append(v.calls, virtualCall{a, decided})
	w.decide(a)
	return func() { v.leave(a) }
}

// leave ends a call whose caller has gone away.
func (v *virtualProcess) leave(a *pendingCall) {
	v.calls = slices.DeleteFunc(v.calls, func(c virtualCall) bool { return c.pending == a })
	v.world.abandon(a)
}

func (v *virtualProcess) Post(m sticky.Message) {
	replica.Route([]sticky.Message{m}, v.daemon.parts)
	v.world.sleep(v.daemon)
}

func (v *virtualProcess) Room(to crdt.Incarnation, yes bool) {
	w := v.world
	l := w.network.link(v.daemon.Index, w.membership.all[v.peer[to]].daemon)
	l.Link, l.busy = new(*l.Link), 0 // the links share theirs
	l.Bandwidth = 0
	if !yes {
		l.Bandwidth, l.busy = 1, MaxDuration
	}
}

func (v *virtualProcess) Disk(broken bool) {
	v.daemon.disk.Faults = simdisk.Faults{}
	if broken {
		v.daemon.disk.Faults.Write = errVirtualDisk
	}
}

func (v *virtualProcess) Hold(held bool) {
	for _, i := range v.waits {
		v.world.events.push(v.world.now, evStored, i)
	}
	v.held, v.waits = held, nil
}

func (v *virtualProcess) Log(change func([][]byte) [][]byte) { v.change = change }

// changeLog changes the log of the acceptor, while no process runs.
func (v *virtualProcess) changeLog(change func([][]byte) [][]byte) {
	d := v.daemon
	m := d.disk.Mount()
	defer m.End()
	j, kept, err := journal.Open(journal.Config{Folder: m, Name: replica.JournalFile, Owner: d.storage.Owner})
	v.script.Must(err)
	if all := change(kept.Records); len(all) > 0 {
		v.script.Must(j.Rewrite(slices.Values(all)))
		return
	}
	v.script.Must(m.Remove(replica.JournalFile))
}

func (v *virtualProcess) Compact() { v.script.Must(v.daemon.log.Rewrite(v.daemon.acceptor)) }

func (v *virtualProcess) Process(do func(*replica.Process)) { do(v.daemon.process) }

func (v *virtualProcess) Acceptor(do func(*quorum.Acceptor)) { do(v.daemon.acceptor.Acceptor) }

func (v *virtualProcess) Agent(do func(*agent.Agent)) { do(v.daemon.agent.Agent) }
