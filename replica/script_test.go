package replica

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// TestScripts replays testdata/machine: a process us-0 that asks the owners of
// strict keys, with a network and nodes that the script plays. The commands:
//
//	peers NAME...             the live daemons; incarnations ascend by first use
//	rtt NAME D                the round trip to a daemon is measured
//	call C OWNER[/RESERVE]... a call with a descriptor each, of which the owner
//	                          and the one of the regional reserve are given
//	now C OWNER...            likewise, but the call does not wait
//	grant C, deny C, fail C,  all shards answer: the owners grant, deny, cannot
//	full C                    answer, or have no room for the key
//	half C                    the shard of the first descriptor answers
//	again C                   all shards answer, but the call must ask again: its
//	                          window has ended
//	gone C                    the caller of a call goes away
//	answer NAME ok|failed     a call of another key was answered, or not
//	at D                      time passes, and timers run
//	stream NAME shut|open     a stream has no room for frames, or has again
//	post NAME ID...           a message with requests of these numbers
//	show                      the paths and the calls that wait
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		x := newRig(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return x.command(t, d) })
	})
}

// rig is a driver whose calls, nodes and network a script plays.
type rig struct {
	p     *Process
	at    time.Duration
	ids   map[string]crdt.Incarnation
	shut  map[crdt.Incarnation]bool
	links []node.Link
	calls map[string]*rigCall
	front *node.Matcher
	out   strings.Builder
}

// rigCall is a call of a script.
type rigCall struct {
	StrictCall
	name   string
	call   *node.Call
	owners [][2]crdt.Incarnation // of each descriptor: the owner and that of the reserve
	answer []string              // of each descriptor, "" before there is one
}

func newRig(t *testing.T) *rig {
	limit := rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 5}
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{{Key: "key", Limit: &limit}}}})
	if err != nil {
		t.Fatal(err)
	}
	x := &rig{
		ids: map[string]crdt.Incarnation{}, shut: map[crdt.Incarnation]bool{}, calls: map[string]*rigCall{},
		front: node.NewMatcher(set, rules.NewHasher([rules.SecretBytes]byte{}), node.MatcherOptions{}),
	}
	x.p = New(Config{
		Self: x.id("us-0"), Region: "us", Shards: 64, ForwardTimeout: 50 * time.Millisecond, ForwardMargin: 100 * time.Millisecond,
		Breaker: breaker.Config{Calls: 4, Window: 10 * time.Second, Open: time.Minute},
	})
	return x
}

func (x *rig) id(name string) crdt.Incarnation {
	if x.ids[name] == 0 {
		x.ids[name] = crdt.Incarnation(len(x.ids) + 1)
	}
	return x.ids[name]
}

func (x *rig) name(id crdt.Incarnation) string {
	for name, i := range x.ids {
		if i == id {
			return name
		}
	}
	return "none"
}

func (x *rig) printf(format string, args ...any) { fmt.Fprintf(&x.out, format+"\n", args...) }

func (x *rig) command(t *testing.T, d *datadriven.TestData) string {
	var words []string
	for _, a := range d.CmdArgs {
		words = append(words, a.Key)
	}
	x.out.Reset()
	switch d.Cmd {
	case "peers":
		var live []gossip.Peer
		for _, name := range words {
			live = append(live, gossip.Peer{ID: x.id(name), Name: name, Region: name[:2], Ready: true})
		}
		x.p.Reach.Peers(x.at, live)
	case "rtt":
		rtt := x.duration(t, d, words[1])
		x.links = append(x.links, node.Link{Peer: gossip.Peer{ID: x.id(words[0]), Region: words[0][:2]}, RTT: rtt})
	case "call", "now":
		x.start(words[0], words[1:], d.Cmd == "now")
	case "grant", "deny", "fail", "full", "half", "again":
		x.answered(x.calls[words[0]], d.Cmd)
	case "gone":
		c := x.calls[words[0]]
		x.p.Waiters.Abandon(x.at, &c.StrictCall)
		x.end(c)
	case "answer":
		x.p.Reach.claim(x.at, x.id(words[0]))
		x.p.Reach.done(x.at, x.id(words[0]), words[1] == "ok")
	case "at":
		x.pass(x.duration(t, d, words[0]))
	case "stream":
		x.shut[x.id(words[0])] = words[1] == "shut"
	case "post":
		m := sticky.Message{From: x.id("us-0"), To: x.id(words[0]), Number: 1}
		for _, id := range words[1:] {
			n, err := strconv.ParseUint(id, 10, 64)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			m.Requests = append(m.Requests, sticky.LeaseRequest{ID: n, Lessee: m.From})
		}
		if x.p.Outbox.Post(m) {
			x.flush(m.To)
		}
	case "show":
		x.show()
	default:
		d.Fatalf(t, "no command %s", d.Cmd)
	}
	for _, c := range x.p.Reach.Changes() {
		x.printf("breaker of %s/%s: %v, was %v, %d of %d calls failed", c.Region, c.Name, c.To, c.From, c.Failures, c.Calls)
	}
	if x.out.Len() == 0 {
		return "ok"
	}
	return x.out.String()
}

func (x *rig) duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	v, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return v
}

// start begins a call.
func (x *rig) start(name string, owners []string, noWait bool) {
	c := &rigCall{name: name, call: &node.Call{Domain: "edge"}, answer: make([]string, len(owners))}
	for i, text := range owners {
		owner, reserve, _ := strings.Cut(text, "/")
		ids := [2]crdt.Incarnation{x.id(owner)}
		if reserve != "" {
			ids[1] = x.id(reserve)
		}
		c.owners = append(c.owners, ids)
		c.call.Descriptors = append(c.call.Descriptors, rules.Descriptor{
			Entries: []rules.Entry{{Key: "key", Value: fmt.Sprint(name, i)}},
		})
	}
	if err := x.front.Resolve(c.call); err != nil {
		panic(err)
	}
	c.Tag = c
	c.Start(c.call)
	c.NoWait = noWait
	x.calls[name] = c
	x.round(c)
}

// round drives a call as far as it goes.
func (x *rig) round(c *rigCall) {
	for {
		x.probe(c)
		switch do, shards := x.p.Waiters.Next(x.at, &c.StrictCall); do {
		case Charge:
			st := &c.call.Statuses[0]
			x.printf("%s: allowed %v, degraded %q", c.name, c.call.Decision.Allowed, st.Degraded)
			x.end(c)
			return
		case Request:
			var asked []string
			for i := range c.call.Statuses {
				if st := &c.call.Statuses[i]; st.Wait {
					if ticket := c.call.Hits()[i].Ticket; ticket != c.Ticket() || ticket == 0 {
						x.printf("%s: a hit has ticket %d of %d", c.name, ticket, c.Ticket())
					}
					c.answer[i] = ""
					asked = append(asked, x.name(st.Owner))
				}
			}
			n := 0
			each(shards, func(int) { n++ })
			x.printf("%s: asks %s at %d shards, until %v", c.name, strings.Join(asked, " and "), n, c.until)
			x.p.Waiters.Requested(x.at, &c.StrictCall)
			return
		}
	}
}

// probe fills in the statuses of a call as nodes do.
func (x *rig) probe(c *rigCall) {
	c.call.Decision.Allowed = true
	for i := range c.call.Statuses {
		st := &c.call.Statuses[i]
		st.Wait, st.Over, st.Gate, st.Degraded = false, false, node.NoGate, node.NotDegraded
		x.probeOne(&c.call.Hits()[i], st, c.owners[i], c.answer[i])
		if st.Over {
			c.call.Decision.Allowed = false
		}
	}
}

func (x *rig) probeOne(h *node.Hit, st *node.Status, owners [2]crdt.Incarnation, answer string) {
	for step := range owners {
		switch {
		case owners[step] == 0 || int(h.Failed) > step:
		case answer == "grant":
			return
		case answer == "deny":
			st.Over, st.Gate = true, node.OwnerGate
			return
		case answer == "full" && step == 0:
			st.Degraded = node.KeysFull
		case answer != "fail":
			st.Owner = owners[step]
			var open bool
			if st.Within, open = x.p.Reach.Routes().Reach(func() time.Duration { return x.at }, st.Owner); open {
				st.Wait = true
				return
			}
			st.Degraded = node.CircuitOpen
		}
		if st.Degraded == node.NotDegraded {
			st.Degraded = node.OwnerUnreachable
		}
	}
	st.Over, st.Gate = true, node.FailureGate
}

// answered plays the answer of the shards of a call.
func (x *rig) answered(c *rigCall, answer string) {
	hits := c.call.Hits()
	woken := false
	for i := range c.answer {
		if answer == "half" && i > 0 {
			break
		}
		c.answer[i] = answer
		switch answer {
		case "half":
			c.answer[i] = "grant"
		case "again":
			c.answer[i] = ""
		}
		woken = x.p.Waiters.Answered(c.Ticket(), node.ShardOf(hits[i].Key, 64)) == &c.StrictCall || woken
	}
	if !woken {
		x.printf("%s: waits on", c.name)
		return
	}
	x.round(c)
}

func (x *rig) end(c *rigCall) {
	x.p.Waiters.End(&c.StrictCall)
	delete(x.calls, c.name)
}

// pass lets time pass.
func (x *rig) pass(until time.Duration) {
	for x.at < until {
		x.at = min(until, max(x.at+time.Microsecond, x.p.Wake()))
		if x.p.Wake() > x.at {
			continue
		}
		r := x.p.Tick(x.at)
		for _, c := range r.Late {
			x.printf("%s: late at %v", c.Tag.(*rigCall).name, x.at)
			x.round(c.Tag.(*rigCall))
		}
		for _, to := range r.Flush {
			x.flush(to)
		}
		if r.Measure {
			x.p.Reach.Measure(x.links)
		}
	}
}

// flush sends what waits for a peer.
func (x *rig) flush(to crdt.Incarnation) {
	for m, ok := x.p.Outbox.Next(x.at, to); ok; m, ok = x.p.Outbox.Next(x.at, to) {
		var ids []uint64
		for _, r := range m.Requests {
			ids = append(ids, r.ID)
		}
		if x.shut[to] {
			x.p.Outbox.Done(x.at, &m, false, nil)
			continue
		}
		x.printf("frame to %s at %v: %v", x.name(to), x.at, ids)
		x.p.Outbox.Done(x.at, &m, true, nil)
	}
}

func (x *rig) show() {
	for _, c := range x.p.Reach.Circuits(x.at) {
		x.printf("%s/%s: %v, %d of %d calls failed, wait %v", c.Region, c.Name, c.State, c.Failed, c.Calls, c.Wait)
	}
	names := make([]string, 0, len(x.calls))
	for name := range x.calls {
		names = append(names, name)
	}
	slices.Sort(names)
	x.printf("%d calls wait: %v; %d frames sent, %d items dropped", x.p.Waiters.Len(), names, x.p.Outbox.Sent(), x.p.Outbox.Dropped())
}

// each visits the shards of a bit set.
func each(set uint64, visit func(int)) {
	for i := range 64 {
		if set&(1<<i) != 0 {
			visit(i)
		}
	}
}
