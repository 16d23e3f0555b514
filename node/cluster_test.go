package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// TestClusterScripts replays testdata/cluster. Daemons are named a1, a2, b1,
// ... by region and number, messages take delay, and nothing is random. The
// commands:
//
//	cluster a=2 b=1 [delay=1ms] [wan=40ms] [rights]   starts daemons; with rights in equal shares
//	limits                       puts the rules of the YAML below in force
//	run D                        lets time pass
//	ask DAEMON k=v [times=N]     asks; prints how many of N are allowed and how many remain
//	cut X Y, heal                stops messages from X to Y, both daemons or regions; lets all pass
//	crash X, restart X           X forgets everything, and has a new incarnation
//	step X D                     bends the wall clock of X
//	rights X k=v                 prints the rights that X has left, gave and received
//	cells X                      prints the cells of X
//	links X                      prints how old the views of X are
//	events X                     prints and forgets the events of X
func TestClusterScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/cluster", func(t *testing.T, path string) {
		c := &cluster{delay: time.Millisecond, wan: 40 * time.Millisecond}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return c.run(t, d)
		})
	})
}

// cluster is daemons of one node each and the messages on their way.
type cluster struct {
	now        time.Duration
	delay, wan time.Duration
	daemons    []*daemon
	flight     []flight
	cuts       map[[2]string]bool
	set        *rules.Set
	front      *Matcher
	born       uint64
	naive      bool
	rights     bool
}

type daemon struct {
	name, region string
	node         *Node // nil when down
	starts       int
	left         *Accounts // by a stopped run for the next one
	// unknown and until are the last windows of runs of unknown use, and of all
	// runs before.
	unknown, until int64
	start          time.Duration
	bend           time.Duration
	wake           time.Duration
	events         []gossip.Event
}

type flight struct {
	at       time.Duration
	from, to *daemon
	m        gossip.Message
}

func (d *daemon) instant(now time.Duration) Instant {
	return Instant{Mono: now - d.start, Wall: scriptEpoch*int64(time.Millisecond) + int64(now+d.bend)}
}

func (c *cluster) start(t testing.TB, d *daemon) {
	t.Helper()
	cfg := Default()
	cfg.Region, cfg.Name, cfg.Naive = d.region, d.name, c.naive
	if c.rights {
		cfg.Allotments = c.shares(d)
	}
	c.born++
	n, err := New(cfg, rand.New(rand.NewPCG(c.born, 9)))
	if err != nil {
		t.Fatal(err)
	}
	d.node, d.start, d.wake = n, c.now, 0
	d.takeUp()
	if c.set != nil {
		n.SetRules(d.instant(c.now), c.set)
	}
	c.members()
}

// takeUp lets a run that starts take up the accounts of the stopped one.
func (d *daemon) takeUp() {
	if d.left != nil {
		d.node.TakeUp(d.left, d.until)
		d.node.Resume()
		d.left = nil
	}
}

// stop ends the run of a daemon, which leaves its accounts to the next one.
func (c *cluster) stop(t testing.TB, d *daemon) {
	t.Helper()
	d.left = &Accounts{}
	if !d.node.HandOn(d.instant(c.now), d.left) {
		t.Fatal("no room for the accounts")
	}
	d.node = nil
	c.members()
}

// members sets the daemons that are up at all daemons.
func (c *cluster) members() {
	var peers []gossip.Peer
	for _, d := range c.daemons {
		if d.node != nil {
			peers = append(peers, gossip.Peer{ID: d.node.Incarnation(), Name: d.name, Region: d.region})
		}
	}
	for _, d := range c.daemons {
		if d.node != nil {
			d.node.Peers(d.instant(c.now), peers)
			c.drain(d)
		}
	}
}

func (c *cluster) drain(d *daemon) {
	r := d.node.Ready()
	d.wake = r.Wake
	d.events = append(d.events, r.Events...)
	for _, m := range r.Messages {
		i := slices.IndexFunc(c.daemons, func(o *daemon) bool { return o.node != nil && o.node.Incarnation() == m.To })
		if i < 0 {
			continue
		}
		to := c.daemons[i]
		if c.cuts[[2]string{d.name, to.name}] || c.cuts[[2]string{d.region, to.region}] {
			continue
		}
		delay := c.delay
		if d.region != to.region {
			delay = c.wan
		}
		m.Cells = slices.Clone(m.Cells)
		c.flight = append(c.flight, flight{c.now + delay, d, to, m})
	}
}

// pass lets time pass.
func (c *cluster) pass(by time.Duration) {
	end := c.now + by
	for {
		next := end
		for _, d := range c.daemons {
			if d.node != nil {
				next = min(next, d.start+d.wake)
			}
		}
		for i := range c.flight {
			next = min(next, c.flight[i].at)
		}
		if next >= end {
			c.now = end
			return
		}
		c.now = max(c.now, next)
		c.deliver()
		for _, d := range c.daemons {
			if d.node != nil && d.start+d.wake <= c.now {
				d.node.Tick(d.instant(c.now))
				c.drain(d)
			}
		}
	}
}

func (c *cluster) deliver() {
	due := slices.Clone(c.flight)
	c.flight = slices.DeleteFunc(c.flight, func(f flight) bool { return f.at <= c.now })
	for _, f := range due {
		if f.at <= c.now && f.to.node != nil {
			_ = f.to.node.Step(f.to.instant(c.now), &f.m) // an error is an event, too
			c.drain(f.to)
		}
	}
}

func (c *cluster) find(t testing.TB, name string) *daemon {
	t.Helper()
	i := slices.IndexFunc(c.daemons, func(d *daemon) bool { return d.name == name })
	if i < 0 {
		t.Fatalf("no daemon %s", name)
	}
	return c.daemons[i]
}

// ask decides one call at a daemon.
func (c *cluster) ask(t testing.TB, d *daemon, call *Call, text string) {
	t.Helper()
	c.resolve(t, call, text)
	at := d.instant(c.now)
	d.node.Probe(at, call.Hits(), call.Statuses)
	c.front.Decide(call)
	d.node.Charge(at, call.Hits(), call.Statuses)
	c.drain(d)
}

// resolve makes a call of one descriptor.
func (c *cluster) resolve(t testing.TB, call *Call, text string) {
	t.Helper()
	call.Reset()
	call.Domain = "d"
	desc := rules.Descriptor{Hits: 1}
	for pair := range strings.SplitSeq(text, ",") {
		k, v, _ := strings.Cut(pair, "=")
		desc.Entries = append(desc.Entries, rules.Entry{Key: k, Value: v})
	}
	call.Descriptors = append(call.Descriptors, desc)
	if err := c.front.Resolve(call); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) put(t testing.TB, yaml string) {
	t.Helper()
	set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(yaml)}}, limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	c.set = set
	c.front = NewMatcher(set, rules.NewHasher([rules.SecretBytes]byte{1}), MatcherOptions{})
	for _, d := range c.daemons {
		if d.node != nil {
			d.node.SetRules(d.instant(c.now), set)
		}
	}
}

func (c *cluster) run(t *testing.T, d *datadriven.TestData) string {
	span := func(i int) time.Duration {
		v, err := time.ParseDuration(d.CmdArgs[i].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return v
	}
	switch d.Cmd {
	case "cluster":
		c.build(t, d)
	case "limits":
		c.put(t, d.Input)
	case "run":
		c.pass(span(0))
	case "ask":
		return c.runAsk(t, d)
	case "cut":
		c.cuts[[2]string{d.CmdArgs[0].Key, d.CmdArgs[1].Key}] = true
	case "heal":
		clear(c.cuts)
	case "crash":
		c.find(t, d.CmdArgs[0].Key).node = nil
		c.members()
	case "restart":
		c.start(t, c.find(t, d.CmdArgs[0].Key))
	case "step":
		c.find(t, d.CmdArgs[0].Key).bend += span(1)
	case "rights":
		return c.rightsOf(t, c.find(t, d.CmdArgs[0].Key), d.CmdArgs[1].String())
	case "cells":
		return c.cells(c.find(t, d.CmdArgs[0].Key))
	case "links":
		return c.links(c.find(t, d.CmdArgs[0].Key))
	case "events":
		return c.events(c.find(t, d.CmdArgs[0].Key))
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

func (c *cluster) build(t *testing.T, d *datadriven.TestData) {
	c.cuts = map[[2]string]bool{}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "rights":
			c.rights = true
		case "delay", "wan":
			v, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if a.Key == "delay" {
				c.delay = v
			} else {
				c.wan = v
			}
		default:
			n, _ := strconv.Atoi(a.Vals[0])
			for i := range n {
				c.daemons = append(c.daemons, &daemon{name: fmt.Sprintf("%s%d", a.Key, i+1), region: a.Key})
			}
		}
	}
	for _, x := range c.daemons {
		c.start(t, x)
	}
}

func (c *cluster) runAsk(t *testing.T, d *datadriven.TestData) string {
	x, times, allowed := c.find(t, d.CmdArgs[0].Key), 1, 0
	if len(d.CmdArgs) > 2 {
		times, _ = strconv.Atoi(d.CmdArgs[2].Vals[0])
	}
	var call Call
	for range times {
		c.ask(t, x, &call, d.CmdArgs[1].String())
		if call.Decision.Allowed {
			allowed++
		}
	}
	st := &call.Statuses[0]
	text := fmt.Sprintf("%d of %d allowed, %d left", allowed, times, st.Remaining)
	if st.Over {
		text += ", over by " + st.Gate.String()
	}
	if st.Degraded != NotDegraded {
		text += ", degraded: " + st.Degraded.String()
	}
	return text + "\n"
}

// owner names the daemon of an incarnation.
func (c *cluster) owner(s crdt.Incarnation) string {
	for _, d := range c.daemons {
		if d.node != nil && d.node.Incarnation() == s {
			return d.name
		}
		if gossip.RegionIncarnation(d.region) == s {
			return "region " + d.region
		}
		if gossip.LostIncarnation(d.region) == s {
			return "lost of " + d.region
		}
	}
	return "gone"
}

func (c *cluster) cells(d *daemon) string {
	var b strings.Builder
	for _, x := range d.node.Cells(d.instant(c.now), nil) {
		owner := c.owner(x.Incarnation)
		if x.Kind == gossip.Others {
			owner = "others than " + owner
		}
		fmt.Fprintf(&b, "%02x @%v %s: %v\n", uint64(x.Key>>56),
			time.Duration(x.Window-scriptEpoch)*time.Millisecond, owner, x.Value)
	}
	return b.String()
}

func (c *cluster) links(d *daemon) string {
	var b strings.Builder
	for l := range d.node.Links(d.instant(c.now)) {
		fmt.Fprintf(&b, "%s: age %v, rtt %v, acked %d of %d, silent %v\n", l.Peer.Name, l.Age, l.RTT, l.Acked, l.Head, l.Silent)
	}
	return b.String()
}

func (c *cluster) events(d *daemon) string {
	var b strings.Builder
	for _, e := range d.events {
		fmt.Fprintf(&b, "%v %v", e.At, e.Kind)
		if e.Peer != 0 {
			fmt.Fprintf(&b, " %s", c.owner(e.Peer))
		}
		if e.Reason != 0 {
			fmt.Fprintf(&b, " %v", e.Reason)
		}
		if e.Amount != 0 {
			fmt.Fprintf(&b, " %d", e.Amount)
		}
		b.WriteByte('\n')
	}
	d.events = nil
	return b.String()
}
