package transfer

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
)

// TestScripts replays testdata/scripts. Every daemon has one Key of one window
// of 10 s and a limit; all daemons know the accounts of all others. The
// commands:
//
//	cluster a=2 b=1 limit=90 [wan=20ms] [entity]  starts daemons a1, a2, b1 with equal allotments; region r's
//	                                    aggregator is its first daemon
//	use DAEMON N                        admits up to N hits, one by one, and lists the messages that result
//	deliver [drop=KIND]                 delivers the messages under way until there are none, and lists them
//	run D                               lets time pass
//	aggregator DAEMON                   makes a daemon the aggregator of its region
//	rights                              prints every account
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var c scripted
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return c.run(t, d) })
	})
}

const scriptWindow = 10_000 // milliseconds

// scripted is a cluster of daemons with one key.
type scripted struct {
	now     int64
	wan     time.Duration
	limit   uint64
	entity  bool
	daemons []*scriptDaemon
	flight  []scriptMessage
}

// scriptDaemon is one daemon with its account.
type scriptDaemon struct {
	name, region                      string
	id                                crdt.Incarnation
	aggregator                        bool
	allotment, received, given, admit uint64
	key                               Key
}

// scriptMessage is a message or a transfer under way.
type scriptMessage struct {
	from, to *scriptDaemon
	m        gossip.RightsMessage
	hits     uint64 // of a transfer
}

func (d *scriptDaemon) rights() uint64 { return d.allotment + d.received - d.given - d.admit }

// scriptView is a daemon's view.
type scriptView struct {
	c *scripted
	d *scriptDaemon
}

func (v scriptView) Peers() (peers []Peer) {
	for _, o := range v.c.daemons {
		if o != v.d && o.region == v.d.region {
			peers = append(peers, Peer{ID: o.id, Held: o.allotment + o.received - o.given, Used: o.admit, Rate: o.key.rates.Second(v.c.now)})
		}
	}
	return peers
}

func (v scriptView) Regions() (regions []gossip.RemoteRegion) {
	for _, o := range v.c.daemons {
		if o.region == v.d.region {
			continue
		}
		i := slices.IndexFunc(regions, func(r gossip.RemoteRegion) bool { return r.Region == o.region })
		if i < 0 {
			i = len(regions)
			regions = append(regions, gossip.RemoteRegion{Region: o.region, RTT: 2 * v.c.wan})
		}
		regions[i].Used += o.admit
		regions[i].Rate += o.key.rates.Second(v.c.now)
		if o.aggregator {
			regions[i].Aggregator = o.id
		}
	}
	return regions
}

func (v scriptView) Allotment(region string) (sum uint64) {
	for _, o := range v.c.daemons {
		if o.region == region {
			sum += o.allotment
		}
	}
	return sum
}

func (c *scripted) input(d *scriptDaemon) Input {
	in := Input{
		Now: c.now, Window: 1_000_000, ElapsedMS: c.now, Policy: Policy{Entity: c.entity, WindowMS: scriptWindow},
		Limit: c.limit, Rights: d.rights(), Used: d.admit + d.given, Self: d.id, Region: d.region, View: scriptView{c, d},
	}
	for _, o := range c.daemons {
		in.Estimate += o.admit
		if o.region == d.region && o.aggregator {
			in.Aggregator = o.id
		}
	}
	return in
}

func (c *scripted) find(t *testing.T, d *datadriven.TestData, name string) *scriptDaemon {
	for _, x := range c.daemons {
		if x.name == name {
			return x
		}
	}
	d.Fatalf(t, "no daemon %s", name)
	return nil
}

func (c *scripted) run(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	switch d.Cmd {
	case "cluster":
		c.build(t, d)
	case "use":
		x, admitted := c.find(t, d, d.CmdArgs[0].Key), 0
		n, _ := strconv.Atoi(d.CmdArgs[1].Key)
		for range n {
			if x.rights() > 0 {
				x.admit++
				admitted++
			}
			x.key.Offer(c.now, 1)
			in := c.input(x)
			c.perform(&b, x, &in, x.key.Check(&in), nil)
		}
		return fmt.Sprintf("%d of %d admitted\n%s", admitted, n, b.String())
	case "deliver":
		drop := ""
		d.MaybeScanArgs(t, "drop", &drop)
		for len(c.flight) > 0 {
			m := c.flight[0]
			c.flight = c.flight[1:]
			if drop != "" && m.String() == drop {
				fmt.Fprintf(&b, "lost: %v from %s to %s\n", m, m.from.name, m.to.name)
				continue
			}
			c.deliver(&b, m)
		}
	case "run":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		c.now += by.Milliseconds()
	case "aggregator":
		x := c.find(t, d, d.CmdArgs[0].Key)
		for _, o := range c.daemons {
			if o.region == x.region {
				o.aggregator = o == x
			}
		}
	case "rights":
		for _, x := range c.daemons {
			fmt.Fprintf(&b, "%s: %d left of %d, received %d, gave %d, admitted %d\n",
				x.name, x.rights(), x.allotment, x.received, x.given, x.admit)
		}
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return b.String()
}

func (c *scripted) build(t *testing.T, d *datadriven.TestData) {
	c.wan = 20 * time.Millisecond
	var names []string
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "limit":
			n, _ := strconv.Atoi(a.Vals[0])
			c.limit = uint64(n)
		case "wan":
			c.wan, _ = time.ParseDuration(a.Vals[0])
		case "entity":
			c.entity = true
		default:
			n, _ := strconv.Atoi(a.Vals[0])
			for i := range n {
				names = append(names, fmt.Sprint(a.Key, i+1))
			}
		}
	}
	for i, name := range names {
		c.daemons = append(c.daemons, &scriptDaemon{
			name: name, region: name[:1], id: crdt.Incarnation(i + 1), aggregator: name[1:] == "1",
			allotment: c.limit / uint64(len(names)), key: New(0, 1_000_000, 0, 0),
		})
	}
}

// perform carries out an output, and checks that no daemon transfers more than
// its rights.
func (c *scripted) perform(b *strings.Builder, d *scriptDaemon, in *Input, out Output, from *scriptDaemon) {
	for _, tr := range out.Transfers {
		hits := min(tr.Hits, d.rights())
		if hits == 0 {
			if tr.Reply {
				out.Messages = append(out.Messages, Message{To: from.id, RightsMessage: d.key.Refusal(in)})
			}
			continue
		}
		d.given += hits
		d.key.Transferred(in.Window, hits)
		c.send(b, scriptMessage{from: d, to: c.daemons[tr.To-1], hits: hits})
	}
	for _, m := range out.Messages {
		c.send(b, scriptMessage{from: d, to: c.daemons[m.To-1], m: m.RightsMessage})
	}
}

func (c *scripted) send(b *strings.Builder, m scriptMessage) {
	c.flight = append(c.flight, m)
	fmt.Fprintf(b, "%s -> %s: %s\n", m.from.name, m.to.name, m.describe(c))
}

func (c *scripted) deliver(b *strings.Builder, m scriptMessage) {
	sender := Sender{ID: m.from.id, Remote: m.from.region != m.to.region, RTT: 2 * c.wan}
	if m.hits > 0 {
		m.to.received += m.hits
		in := c.input(m.to)
		c.perform(b, m.to, &in, m.to.key.Received(&in, sender, in.Window, m.hits), m.from)
		return
	}
	in := c.input(m.to)
	c.perform(b, m.to, &in, m.to.key.Step(&in, sender, &m.m), m.from)
}

// String returns the kind of the message.
func (m scriptMessage) String() string {
	if m.hits > 0 {
		return "transfer"
	}
	return [...]string{"", "request", "refusal", "need", "shortage", "collect"}[m.m.Kind]
}

func (m scriptMessage) describe(c *scripted) string {
	switch {
	case m.hits > 0:
		return fmt.Sprintf("transfer of %d", m.hits)
	case m.m.Kind == gossip.CollectRequest:
		return fmt.Sprintf("collect %d for %s", m.m.Need, c.daemons[m.m.For-1].name)
	case m.m.Kind == gossip.ShortageNotice:
		return fmt.Sprintf("shortage of %d", m.m.Need)
	}
	return fmt.Sprintf("%v with %d rights", m, m.m.Rights)
}
