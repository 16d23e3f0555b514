package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

func goodConfig() Config {
	return Config{
		Region: "a", Name: "a1", Self: 11, Generation: 1, Cluster: 7,
		Genesis: []Region{{Name: "a", ID: 1}, {Name: "b", ID: 2}}, Founders: []uint64{11, 12},
	}
}

func TestConfigRefused(t *testing.T) {
	if err := goodConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		says   string
		change func(*Config)
	}{
		{"daemon name of 0 bytes", func(c *Config) { c.Name = "" }},
		{"0 regions: want 1 to 64", func(c *Config) { c.Genesis = nil }},
		{"65 regions", func(c *Config) { c.Genesis = make([]Region, 65) }},
		{"participants 0 of region 1", func(c *Config) { c.Self = 0 }},
		{"participants 11 of region 0", func(c *Config) { c.Generation = 0 }},
		{"want each name and participant once", func(c *Config) { c.Genesis[1].Name = "a" }},
		{"want each name and participant once", func(c *Config) { c.Genesis[1].ID = 1 }},
		{"participant 0, weight 0", func(c *Config) { c.Genesis[1].ID = 0 }},
		{"each once", func(c *Config) { c.Founders = []uint64{11, 11} }},
		{"region name of 0 bytes", func(c *Config) { c.Genesis[1].Name = "" }},
		{"at most 2^40", func(c *Config) { c.Genesis[1].Weight = 1<<40 + 1 }},
		{"period of 4s: want 5s to 10m0s", func(c *Config) { c.Period = 4 * time.Second }},
		{"interval of 1ms", func(c *Config) { c.Interval = time.Millisecond }},
		{"interval across regions of 1m0s", func(c *Config) { c.WANInterval = time.Minute }},
		{"record ahead of the clock of 2m0s", func(c *Config) { c.Ahead = 2 * time.Minute }},
		{"daemon horizon of 48h0m0s", func(c *Config) { c.DaemonHorizon = 48 * time.Hour }},
		{"horizon -1 ms", func(c *Config) { c.Horizon = -1 }},
		{"257 members", func(c *Config) { c.Founders = make([]uint64, 257) }},
		{"0 members", func(c *Config) { c.Founders = nil }},
	} {
		c := goodConfig()
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v, want %q", err, tt.says)
		}
	}
}

func TestStartRefused(t *testing.T) {
	o, err := New(goodConfig(), Start{Found: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Tick(0, hlc.New(dawn, 0), false)
	record := o.Ready(0).Store
	exchanged := *record
	exchanged.Region, exchanged.Local = record.Local, record.Region
	for _, tt := range []struct {
		says  string
		cfg   func(*Config)
		start Start
	}{
		{"want one of them", nil, Start{Found: true, Record: record}},
		{"a founder that lost its record", nil, Start{}},
		{"among the founders: false", func(c *Config) { c.Self = 13 }, Start{Found: true}},
		{"want the record of this participant", func(c *Config) { c.Self = 12 }, Start{Record: record}},
		{`generation of region "b"`, func(c *Config) { c.Region, c.Generation = "b", 2 }, Start{Record: record}},
		{`generation of region "a"`, func(c *Config) { c.Generation = 3 }, Start{Record: record}},
		{"exchanged", nil, Start{Record: &exchanged}},
	} {
		c := goodConfig()
		if tt.cfg != nil {
			tt.cfg(&c)
		}
		if _, err := New(c, tt.start); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v, want %q", err, tt.says)
		}
	}
}

// pair returns daemon a1 of a cluster of a1, a2 and b1 that has run a while,
// and messages for it as a2 and b1 would send them.
func pair(t *testing.T) (r *rig, a *proc, near, far Message) {
	r = newRig(t, 1, 2, 1)
	r.boot()
	r.run(3 * time.Second)
	a = r.find("a1")
	for _, name := range []string{"a2", "b1"} {
		p := r.find(name)
		m := Message{
			From: p.self, To: a.self, Region: p.region, Name: name, Member: p.id(),
			Genesis: p.genesis, Stamp: r.stamp(p), Ready: true,
		}
		if name == "a2" {
			near = m
		} else {
			far = m
		}
	}
	return r, a, near, far
}

func TestMessageRefused(t *testing.T) {
	r, a, near, far := pair(t)
	a.Dead([]epoch.Retirement{{ID: 99, From: 5}})
	for _, tt := range []struct {
		says   string
		is     error
		from   Message
		change func(*Message)
	}{
		{"message for", nil, near, func(m *Message) { m.To++ }},
		{"want a live peer", ErrNotPeer, near, func(m *Message) { m.From = 1 }},
		{`is "a2" in "a"`, ErrNotPeer, near, func(m *Message) { m.Name = "a1" }},
		{`is "b1" in "b"`, ErrNotPeer, far, func(m *Message) { m.Region = "a" }},
		{"want one of its own", ErrNotPeer, near, func(m *Message) { m.Member = a.cfg.Self }},
		{"want one of its own", ErrNotPeer, near, func(m *Message) { m.Member = 0 }},
		{"it is dead from 5 on", ErrNotPeer, near, func(m *Message) { m.Member = 99 }},
		{"want those of this daemon", ErrGenesis, far, func(m *Message) { m.Genesis[0]++ }},
		{"want those of this daemon", ErrGenesis, near, func(m *Message) { m.Genesis[1]++ }},
		{"want nothing about daemons across regions", nil, far, func(m *Message) { m.Daemons.Has = []uint64{1} }},
		{"want nothing about daemons across regions", nil, far, func(m *Message) { m.Extension = &epoch.Extension{By: 1, To: 2} }},
		{"out of order", nil, near, func(m *Message) { m.Regions.Has = []uint64{2, 1} }},
		{"out of order", nil, near, func(m *Message) { m.HasVotes = []uint64{2, 2} }},
		{"at most 16384", nil, near, func(m *Message) { m.Regions.Has = make([]uint64, MaxHas+1) }},
		{"out of order", nil, near, func(m *Message) { m.Period, m.Demand = 1, []Demand{{2, 1}, {1, 1}} }},
		{"and a period", nil, near, func(m *Message) { m.Demand = []Demand{{2, 1}} }},
		{"0 members", nil, near, func(m *Message) { m.Regions.Claim = &epoch.Claim{} }},
		{"0 members", nil, near, func(m *Message) { m.Regions.Epochs = make([]epoch.Epoch, 1) }},
		{"of the genesis", nil, near, func(m *Message) { m.Votes = make([]epoch.Vote, 1) }},
	} {
		m := tt.from
		tt.change(&m)
		err := a.Receive(r.at, r.now(a), &m)
		if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%v, want %q", err, tt.says)
		}
	}
	if !r.whole() {
		t.Error("something was lost to messages that were refused")
	}
}

// TestItemsRefused: a malformed item causes an event, and changes nothing.
func TestItemsRefused(t *testing.T) {
	r, a, near, far := pair(t)
	top, _ := a.Agent.region.Settled()
	stamp := near.Stamp.Next()
	id := epoch.ID{Stamp: stamp, Proposer: 5}
	later := epoch.ID{Stamp: hlc.New(r.now(a)+180_000, 0), Proposer: 5}
	ahead := epoch.ID{Stamp: hlc.New(r.now(a)+120_000, 0), Proposer: 5}
	for _, tt := range []struct {
		says   string // empty: refused in silence
		from   Message
		change func(*Message)
	}{
		{"of the future", far, func(m *Message) {
			m.Regions.Epochs = []epoch.Epoch{{ID: ahead, Members: top.Members}}
		}},
		{"want none among regions", far, func(m *Message) {
			m.Regions.Epochs = []epoch.Epoch{{ID: id, Horizon: 5, Members: top.Members}}
		}},
		{"want at most 1000000", far, func(m *Message) {
			m.Regions.Epochs = []epoch.Epoch{{ID: id, Members: []epoch.Member{{ID: a.cfg.Generation, Amount: 1_000_001}}}}
		}},
		{"want none among daemons", near, func(m *Message) {
			m.Daemons.Epochs = []epoch.Epoch{{
				ID: id, Members: []epoch.Member{{ID: a.cfg.Self, Amount: 1}},
				Rules: []epoch.RuleShares{{Rule: 1, Shares: []uint32{0}}},
			}}
		}},
		{"of the future", far, func(m *Message) {
			m.Regions.Claim = &epoch.Claim{Base: epoch.Epoch{ID: later, Members: top.Members}}
		}},
		{"another content", far, func(m *Message) {
			m.Regions.Claim = &epoch.Claim{Base: epoch.Epoch{Members: top.Members[:1]}}
		}},
		{"want its own", near, func(m *Message) { m.Extension = &epoch.Extension{By: 77, To: a.cfg.Self, Until: 1 << 60} }},
		{"for another region", near, func(m *Message) {
			m.Votes = []epoch.Vote{{Daemon: near.Member, Ack: epoch.Ack{ID: id, By: 5}}}
		}},
		{"", near, func(m *Message) { // an acknowledgement of ours by others
			m.Daemons.Acks = []epoch.Ack{{ID: id, By: a.cfg.Self}}
		}},
		{"", far, func(m *Message) { m.Regions.Acks = []epoch.Ack{{ID: id, By: 5}} }},
		{"", near, func(m *Message) { // a vote of ours by others
			m.Votes = []epoch.Vote{{Daemon: a.cfg.Self, Ack: epoch.Ack{ID: id, By: a.cfg.Generation}}}
		}},
		{"demand of period 7", far, func(m *Message) { m.Period = 7 }},
	} {
		m := tt.from
		tt.change(&m)
		a.Ready(r.at)
		if err := a.Receive(r.at, r.now(a), &m); err != nil {
			t.Errorf("%q: %v", tt.says, err)
		}
		said := ""
		for _, e := range a.Ready(r.at).Events {
			said += e.Kind.String() + ": " + e.Text
		}
		if tt.says == "" && said != "" || !strings.Contains(said, tt.says) {
			t.Errorf("events %q, want %q", said, tt.says)
		}
		if a.Agent.region.Len() != 1 || a.local.Len() != 1 || len(a.votes) != 0 {
			t.Fatalf("%q: something was taken", tt.says)
		}
	}
	r.run(time.Second)
	r.safe()
}

func TestBaseAllocatesNothing(t *testing.T) {
	r, a, _, _ := pair(t)
	x := r.now(a)
	if n := testing.AllocsPerRun(100, func() { a.Allotment(11, 1000, x, 0, false); a.Allotment(11, 1000, x, 0, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got, why := a.Allotment(11, 1000, x, 0, true); got != 500 {
		t.Errorf("%d of 1000 of the region (%v), want half", got, why)
	}
	if got := a.PartOf("a2", 11, 1000, x, 0, false) + r.base2(a, x); got != 500 {
		t.Errorf("both hold %d of 1000, want half", got)
	}
	if got := a.RegionPart("b", 11, 1000, x, 0); got != 500 {
		t.Errorf("the other region holds %d of 1000, want half", got)
	}
}

func (r *rig) base2(p *proc, x int64) uint64 {
	base, _ := p.Allotment(11, 1000, x, 0, false)
	return base
}

// TestUnknownPeers: odd lists of peers do no harm.
func TestUnknownPeers(t *testing.T) {
	r, a, _, _ := pair(t)
	a.Peers(r.at, a.self, []gossip.Peer{
		{},
		{ID: a.self, Name: "x"},
		{ID: 5, Name: "a1", Region: "a"},
		{ID: 6, Name: "n", Region: "nowhere"},
		{ID: 6, Name: "n", Region: "nowhere"},
	})
	if len(a.links) != 1 {
		t.Errorf("%d links, want that of n", len(a.links))
	}
	a.Tick(r.at, r.stamp(a), false)
	a.Ready(r.at)
	a.Peers(r.at, a.self, nil)
	r.run(2 * time.Second)
	if !r.whole() {
		t.Error("it did not recover")
	}
}
