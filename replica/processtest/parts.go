package processtest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/wire"
)

// partCommand gives a command to a part of the process itself, or to a new part
// like it. It reports whether there is such a command.
func (x *Script) partCommand(name string, args []string) bool {
	switch name {
	case "asks":
		x.driver.Process(x.asks)
	case "late":
		x.driver.Process(func(p *replica.Process) { x.late(p, x.int(args[0])) })
	case "again":
		x.driver.Process(func(p *replica.Process) { x.again(p, x.peer(args[0])) })
	case "order":
		x.driver.Process(x.order)
	case "probe":
		x.driver.Process(func(p *replica.Process) { x.probe(p, x.peer(args[0])) })
	case "twins":
		x.driver.Process(func(p *replica.Process) { x.twins(p, x.peer(args[0])) })
	case "forget":
		x.driver.Process(func(p *replica.Process) { x.forget(p, args[0]) })
	case "route":
		m := sticky.Message{From: x.peer(args[0]).ID, To: x.driver.Self(), Number: 1, Stamp: x.stamp()}
		x.ask(m.From, args[1:], &m)
		x.driver.Post(m)
	case "encode":
		x.encode(args)
	case "strictless":
		err := (&replica.Inbound{Strict: &sticky.Message{}}).Deliver(strictless{})
		x.printf("delivered, error %v", err)
	case "unknown":
		x.driver.Acceptor(func(a *quorum.Acceptor) {
			l := replica.AcceptorLoop{Acceptor: a}
			err := l.Receive(x.driver.Mono(), x.stamp(), &sticky.Message{From: 4_711, To: x.driver.Self()})
			x.printf("rejected: %s", hexadecimal.ReplaceAllString(err.Error(), "#"))
		})
	case "rules":
		x.rights()
	case "agent":
		x.agent()
	default:
		return false
	}
	return true
}

// strictless is a process without strict keys.
type strictless struct{ replica.Receiver }

func (strictless) Strict() replica.Parts { return nil }

// waiting returns a call that waits for the owner of a key for no time.
func (x *Script) waiting(owner crdt.Incarnation) (c *node.Call, shard int) {
	c, hits := x.resolve([]string{"far=1"})
	c.Decision.Allowed = true
	c.Statuses[0].Wait, c.Statuses[0].Owner = true, owner
	return c, node.ShardOf(hits[0].Key, Shards)
}

// asks has a call request leases until it may no more, and prints how often it
// did. Its owner answers, but leaves it waiting.
func (x *Script) asks(p *replica.Process) {
	at, n := x.driver.Mono(), 0
	call, shard := x.waiting(0)
	c := &replica.StrictCall{}
	c.Start(call)
	for ; n < 100; n++ {
		if do, _ := p.Waiters.Next(at, c); do != replica.Request {
			break
		}
		p.Waiters.Requested(at, c)
		p.Waiters.Answered(c.Ticket(), shard)
	}
	x.printf("%d requests, %d owners failed", n, call.Hits()[0].Failed)
	p.Waiters.End(c)
}

// probe has a call wait for two keys of one owner, which answers for the second
// one only.
func (x *Script) probe(p *replica.Process, owner gossip.Peer) {
	at := x.driver.Mono()
	call, hits := x.resolve([]string{"far=1", "far=2"})
	call.Decision.Allowed = true
	for i := range call.Statuses {
		call.Statuses[i].Wait, call.Statuses[i].Owner = true, owner.ID
	}
	c := &replica.StrictCall{}
	c.Start(call)
	for range 4 {
		p.Waiters.Next(at, c)
		p.Waiters.Requested(at, c)
		for i := range hits {
			p.Waiters.Answered(c.Ticket(), node.ShardOf(hits[i].Key, Shards))
		}
		call.Statuses[1].Wait = false
	}
	p.Waiters.End(c)
}

// twins has a peer live in many incarnations, and prints whether their paths
// are in order.
func (x *Script) twins(p *replica.Process, of gossip.Peer) {
	at := x.driver.Mono()
	live := x.known()
	for i := range crdt.Incarnation(8) {
		of.ID = 9_000 + i
		live = append(live, of)
	}
	p.Reach.Peers(at, live)
	x.printf("paths in order: %v", inOrder(p.Reach.Circuits(at)))
	x.forget(p, "")
}

// inOrder reports whether paths are sorted by region, name and owner.
func inOrder(all []replica.Circuit) bool {
	return slices.IsSortedFunc(all, func(a, b replica.Circuit) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
}

// known returns all daemons.
func (x *Script) known() []gossip.Peer {
	return append([]gossip.Peer{{ID: x.driver.Self(), Name: "us-0", Region: "us", Ready: true}}, x.peers...)
}

// late has calls wait for no time, of which the first one is answered, and
// prints those that a tick returns. No other call may be late.
func (x *Script) late(p *replica.Process, n int) {
	at := x.driver.Mono()
	call, shard := x.waiting(0)
	calls := make([]replica.StrictCall, n)
	for i := range calls {
		calls[i].Start(call)
		p.Waiters.Next(at, &calls[i])
	}
	first := calls[0].Ticket()
	woken := p.Waiters.Answered(first, shard) == &calls[0]
	stray := p.Waiters.Answered(first, shard) != nil || p.Waiters.Answered(first+1<<32, shard) != nil
	var late []uint64
	for _, c := range p.Tick(at).Late {
		late = append(late, c.Ticket()-first)
	}
	x.printf("woken %v, stray %v, late %v", woken, stray, late)
	for i := range calls {
		p.Waiters.End(&calls[i])
	}
}

// again uses a StrictCall twice. The second call is abandoned before it
// requests leases.
func (x *Script) again(p *replica.Process, owner gossip.Peer) {
	at := x.driver.Mono()
	call, _ := x.waiting(owner.ID)
	c := &replica.StrictCall{Tag: "tag"}
	c.Start(call)
	p.Waiters.Next(at, c)
	p.Waiters.Requested(at, c)
	first := c.Ticket()
	p.Waiters.End(c)
	x.printf("ticket %d, %d calls wait", c.Ticket(), p.Waiters.Len())
	c.Start(call)
	p.Waiters.Next(at, c)
	x.printf("%d tickets later, %d calls wait", c.Ticket()-first, p.Waiters.Len())
	p.Waiters.Abandon(at, c)
	p.Waiters.End(c)
	x.printf("ticket %d, %d calls wait, %v", c.Ticket(), p.Waiters.Len(), c.Tag)
}

// order has messages to many daemons wait for room, and prints in which order
// they go on.
func (x *Script) order(p *replica.Process) {
	at := x.driver.Mono()
	for to := range crdt.Incarnation(8) {
		p.Outbox.Post(sticky.Message{From: x.driver.Self(), To: 9_000 + to, Number: 1, Requests: make([]sticky.LeaseRequest, 1)})
		m, _ := p.Outbox.Next(at, 9_000+to)
		p.Outbox.Done(at, &m, false, nil)
	}
	x.printf("go on at once: %v", p.Tick(at).Flush)
	later := p.Tick(at + time.Millisecond).Flush
	var order []uint64
	for _, to := range later {
		order = append(order, uint64(to))
		m, _ := p.Outbox.Next(at+time.Millisecond, to)
		p.Outbox.Done(at+time.Millisecond, &m, true, nil)
		p.Outbox.Next(at+time.Millisecond, to)
	}
	x.printf("go on: %v", order)
}

// forget removes the path to a peer that the shards still have.
func (x *Script) forget(p *replica.Process, name string) {
	at := x.driver.Mono()
	live := slices.DeleteFunc(x.known(), func(l gossip.Peer) bool { return l.Name == name })
	p.Reach.Peers(at, live)
	p.Reach.Peers(at+time.Hour, live)
}

// encode prints the frames of messages of counts, each described by its
// receiver, shard and number of cells.
func (x *Script) encode(args []string) {
	var out []gossip.Message
	for _, arg := range args {
		parts := strings.Split(arg, ":")
		out = append(out, x.countsMessage(x.driver.Self(), x.peer(parts[0]).ID, x.int(parts[1]), 64, x.int(parts[2])))
	}
	memory := make([]byte, 0, wire.MaxFrameBytes)
	buffer := func() []byte { return memory }
	replica.CountFrames(new(wire.Encoder), out, buffer, func(msgs []gossip.Message, frame []byte, err error) {
		x.Must(err)
		text := fmt.Sprintf("frame to %s, in its memory %v:", x.name(msgs[0].To), &frame[0] == &memory[:1][0])
		all, err := new(wire.Decoder).Decode(msgs[0].From, msgs[0].To, frame)
		x.Must(err)
		for i := range all {
			text += fmt.Sprintf(" %d cells of %d", len(all[i].Cells), msgs[i].Shard)
		}
		x.printf("%s", text)
	})
}

// rights prints the rules with rights, and when their hits are counted.
func (x *Script) rights() {
	for _, rule := range replica.RightsRules(Rules()) {
		for _, r := range Rules().Rules() {
			if r.Limit != nil && r.Shared() == rule.ID {
				x.printf("rule %s: %v, window %v, lookback %v", r.Path, rule.Pins, rule.Window, rule.Lookback)
			}
		}
	}
	var due []bool
	a, err := agent.New(x.AgentConfig(), agent.Start{Found: true})
	x.Must(err)
	l := replica.RightsLoop{Agent: a}
	for _, at := range []time.Duration{0, 999, 1_000, 1_999, 2_000} {
		due = append(due, l.CountDue(at*time.Millisecond))
	}
	x.printf("counts due %v", due)
}

// AgentConfig returns the configuration of the agent of us-0.
func (x *Script) AgentConfig() agent.Config {
	c := agent.Config{
		Region: "us", Name: "us-0", Self: rendezvous.Hash("daemon", "us-0"), Generation: rendezvous.Hash("region", "us"),
		DaemonHorizon: agent.DefaultDaemonHorizon, Horizon: agent.DefaultDaemonHorizon.Milliseconds(),
	}
	for _, name := range x.Daemons() {
		c.Founders = append(c.Founders, rendezvous.Hash("daemon", name))
	}
	for _, name := range regions {
		c.Genesis = append(c.Genesis, agent.Region{Name: name, ID: rendezvous.Hash("region", name)})
	}
	return c
}

// agent prints the work of a new rights agent, which sends once its record is
// stored.
func (x *Script) agent() {
	a, err := agent.New(x.AgentConfig(), agent.Start{Found: true})
	x.Must(err)
	l := replica.RightsLoop{Agent: a}
	at := x.driver.Mono()
	a.Peers(at, x.driver.Self(), slices.Clone(x.peers))
	ready := func(r agent.Ready) {
		x.printf("stores %v, sends %d messages, wakes after %v", r.Store != nil, len(r.Messages), r.Wake-at)
	}
	for _, err := range []error{errNoRoom, nil, nil} {
		at += 10 * time.Second
		l.CountDue(at - 990*time.Millisecond)
		ready(l.Turn(at, x.stamp(), false))
		ready(l.Stored(at, err))
	}
}

var errNoRoom = errors.New("no room")

// disk breaks or mends the disk, or changes the log of the acceptor.
func (x *Script) disk(how string) {
	switch how {
	case "broken", "whole":
		x.driver.Disk(how == "broken")
	case "held", "released":
		x.driver.Hold(how == "held")
	case "compact":
		x.driver.Compact()
	case "lost":
		x.driver.Log(func([][]byte) [][]byte { return nil })
	case "damaged":
		x.driver.Log(func(all [][]byte) [][]byte { return append(all, []byte{1, 2, 3}) })
	case "old":
		x.driver.Log(func(all [][]byte) [][]byte {
			return append(all, wire.EncodeEntry(nil, &quorum.Entry{Next: x.Layout()}))
		})
	case "headless":
		x.driver.Log(func(all [][]byte) [][]byte { return all[1:] })
	default:
		x.t.Fatalf("no disk is %s", how)
	}
}

// state prints the acceptor and the rights.
func (x *Script) state() {
	x.driver.Acceptor(func(a *quorum.Acceptor) {
		s := a.Status()
		why, _, _ := strings.Cut(s.Reason, ":")
		x.printf("layout %d, voting %v %s, %d keys", s.Layout.Number, s.Voting, why, s.Keys)
	})
	x.driver.Agent(func(a *agent.Agent) {
		s := a.Status()
		x.printf("rights: holds %v %v, failing %v", s.Holds, s.Reason, s.Failing != "")
		for _, r := range Rules().Rules() {
			if r.Limit != nil && r.Limit.HasRights() {
				n, why := a.Allotment(r.Shared(), 1_000, x.window(), 0, false)
				x.printf("rights of %s: %v, allotment %d %v", r.Path, a.Weights(r.Shared()), n, why)
			}
		}
	})
}
