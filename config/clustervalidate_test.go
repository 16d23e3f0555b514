package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// member returns the settings of a daemon of a cluster of three regions.
func member() Config {
	c := Default()
	c.Region, c.Name = "us", "us-0"
	c.Cluster.SecretFile = "secret"
	c.Swim.Seeds = []string{"seed.us.example:7946"}
	c.Regions = []Region{
		{Name: "us", Peers: []string{"10.0.0.1:7070"}},
		{Name: "eu", Peers: []string{"127.0.0.1:7071", "localhost:7072"}},
		{Name: "ap", Peers: []string{"[::1]:7073"}},
	}
	return c
}

func withRights(c *Config) { c.State.Dir, c.Strict.Replicas = "rights", []string{"us-0", "us-1"} }

func withTLS(c *Config) { c.Peer.TLS = TLS{"cert", "key", "ca"} }

func TestValidClusters(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"as it is": func(*Config) {},
		"own region left out": func(c *Config) {
			c.Regions = []Region{{Name: "eu", Peers: []string{"127.0.0.1:1"}}}
		},
		"region without peers": func(c *Config) { c.Regions[1].Peers = nil },
		"one daemon, no secret": func(c *Config) {
			c.Cluster.SecretFile, c.Swim.Seeds = "", nil
			c.Regions = []Region{{Name: "us", Peers: []string{"10.0.0.1:7070"}}}
		},
		"streams with TLS": func(c *Config) {
			withTLS(c)
			c.Peer.Addr = "10.0.0.1:7070"
			c.Regions[1].Peers = []string{"eu.example:7070"}
		},
		"insecure": func(c *Config) {
			c.Peer.Insecure = true
			c.Peer.Addr = "10.0.0.1:7070"
			c.Regions[1].Peers = []string{"eu.example:7070"}
		},
		"membership off loopback": func(c *Config) { c.Swim.Addr = "10.0.0.1:7946" },
		"all addresses, one advertised": func(c *Config) {
			withTLS(c)
			c.Peer.Addr, c.Peer.Advertise = "0.0.0.0:7070", "10.0.0.1:7070"
			c.Swim.Addr, c.Swim.Advertise = ":7946", "us-0.example:7946"
		},
		"rights": withRights,
		"rights without a horizon": func(c *Config) {
			withRights(c)
			c.Rights.DaemonHorizon, c.Rights.Period = 0, 10*time.Minute
		},
		"free ports":   func(c *Config) { c.Peer.Addr, c.Swim.Addr = "127.0.0.1:0", "127.0.0.1:0" },
		"name of host": func(c *Config) { c.Name = "" },
		"long names":   func(c *Config) { c.Name = "A." + strings.Repeat("_", 61) },
		"most of all": func(c *Config) {
			c.Regions, c.Swim.Seeds = many(maxRegions, maxPeers), addrs("10.1.0", maxSeeds)
		},
	} {
		c := member()
		change(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func addrs(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s.%d:%d", prefix, i%250+1, 1000+i)
	}
	return out
}

func many(regions, peers int) []Region {
	out := make([]Region, regions)
	for i := range out {
		out[i] = Region{Name: fmt.Sprintf("r%d", i), Peers: addrs(fmt.Sprintf("127.0.%d", i), peers)}
	}
	return out
}

// Each fault names the setting and what would be right.
func TestRefusedClusters(t *testing.T) {
	for _, tc := range []struct {
		field, problem string
		change         func(c *Config)
	}{
		{"region", "first a letter or a digit", func(c *Config) { c.Region = "-us"; c.Regions = nil }},
		{"region", `"a b" is no name`, func(c *Config) { c.Region = "a b"; c.Regions = nil }},
		{"name", "1 to 63 letters", func(c *Config) { c.Name = strings.Repeat("x", 64) }},
		{"name", "1 to 63 letters", func(c *Config) { c.Name = "größe" }},
		{
			"cluster.secret_file", "head -c 32 /dev/urandom | base64 > secret",
			func(c *Config) { c.Cluster.SecretFile = ""; c.Regions = nil },
		},
		{"cluster.secret_file", "need one secret", func(c *Config) { c.Cluster.SecretFile = ""; c.Swim.Seeds = nil }},
		{"peer.addr", "is not host:port", func(c *Config) { c.Peer.Addr = "7070" }},
		{"peer.addr", "without TLS: give peer.tls.cert", func(c *Config) { c.Peer.Addr = "10.0.0.1:7070" }},
		{"peer.addr", "is taken by http.addr", func(c *Config) { c.Peer.Addr = c.HTTP.Addr }},
		{"peer.addr", "give the one for other daemons as peer.advertise", func(c *Config) { withTLS(c); c.Peer.Addr = "[::]:7070" }},
		{"peer.advertise", "is not host:port", func(c *Config) { c.Peer.Advertise = "10.0.0.1" }},
		{"peer.advertise", "no port that can be dialed", func(c *Config) { c.Peer.Advertise = "10.0.0.1:0" }},
		{"peer.advertise", "no address that others can dial", func(c *Config) { c.Peer.Advertise = "0.0.0.0:7070" }},
		{"peer.tls.key", "give all of peer.tls.cert", func(c *Config) { withTLS(c); c.Peer.TLS.Key = "" }},
		{"swim.addr", "is no port", func(c *Config) { c.Swim.Addr = "127.0.0.1:http" }},
		{
			"swim.addr", "nothing encrypts it: give cluster.secret_file or swim.keys_file",
			func(c *Config) { *c = Default(); c.Region, c.Swim.Addr = "us", "10.0.0.1:7946" },
		},
		{"swim.addr", "give the one for other daemons as swim.advertise", func(c *Config) { c.Swim.Addr = ":7946" }},
		{"swim.addr", "is taken by peer.addr", func(c *Config) { c.Swim.Addr = c.Peer.Addr }},
		{"swim.advertise", "is not host:port", func(c *Config) { c.Swim.Advertise = "a b:1" }},
		{"swim.seeds[1]", `"seed" is not host:port`, func(c *Config) { c.Swim.Seeds = []string{"seed:1", "seed"} }},
		{"swim.seeds[0]", "1 to 65535", func(c *Config) { c.Swim.Seeds = []string{"seed:http"} }},
		{"swim.seeds[0]", "is not host:port", func(c *Config) { c.Swim.Seeds = []string{":7946"} }},
		{"swim.seeds", "257 addresses: at most 256", func(c *Config) { c.Swim.Seeds = addrs("10.0.0", 257) }},
		{"swim.rejoin", "100ms to 10m", func(c *Config) { c.Swim.Rejoin = time.Hour }},
		{"regions", "65 regions: at most 64", func(c *Config) { c.Regions = many(65, 1) }},
		{"regions", "is no name", func(c *Config) { c.Regions = []Region{{Name: "a/b"}} }},
		{"regions", "is empty", func(c *Config) { c.Regions = []Region{{}} }},
		{"regions.eu", "twice", func(c *Config) { c.Regions = []Region{{Name: "eu"}, {Name: "eu"}} }},
		{"regions.eu.peers", "65 addresses: at most 64", func(c *Config) { c.Regions[1].Peers = addrs("127.0.1", 65) }},
		{"regions.eu.peers[0]", "is not host:port", func(c *Config) { c.Regions[1].Peers[0] = "7070" }},
		{"regions.us.peers[0]", "no port", func(c *Config) { c.Regions[0].Peers[0] = "us:0" }},
		{"regions.ap.peers[0]", "is a peer of eu already", func(c *Config) { c.Regions[2].Peers[0] = "localhost:7072" }},
		{"regions.eu.peers[0]", "in plain text: give peer.tls.cert", func(c *Config) {
			c.Regions[1].Peers = []string{"10.0.0.1:1", "10.0.0.1:2"}
		}},
		{"gossip.interval", "10ms to 10s", func(c *Config) { c.Gossip.Interval = 0 }},
		{"gossip.wan_interval", "10ms to 1m", func(c *Config) { c.Gossip.WANInterval = time.Hour }},
		{"gossip.quiet", "0s to 1m", func(c *Config) { c.Gossip.Quiet = -1 }},
		{"gossip.ready_within", "1ms to 1m", func(c *Config) { c.Gossip.ReadyWithin = 0 }},
		{"strict.replicas", "such as us-0,us-1,us-2", func(c *Config) { c.State.Dir = "rights" }},
		{"state.diskless", "give one of them", func(c *Config) { withRights(c); c.State.Diskless = true }},
		{"cluster.founders", "6 names: at most 5", func(c *Config) { c.Cluster.Founders = make([]string, 6) }},
		{"cluster.founders[0]", "is no name", func(c *Config) { c.Cluster.Founders = []string{"us/0"} }},
		{"cluster.founders[1]", `"eu-0" is given twice`, func(c *Config) { c.Cluster.Founders = []string{"eu-0", "eu-0"} }},
		{"cluster.founders", "which has no folder: give it a state.dir", func(c *Config) {
			c.Name, c.Cluster.Founders = "us-0", []string{"eu-0", "us-0"}
		}},
		{"strict.replicas[1]", `"us-0" is given twice`, func(c *Config) { withRights(c); c.Strict.Replicas[1] = "us-0" }},
		{"strict.replicas[1]", "is empty", func(c *Config) { withRights(c); c.Strict.Replicas[1] = "" }},
		{"strict.replicas[0]", "is no name", func(c *Config) { withRights(c); c.Strict.Replicas[0] = "us/0" }},
		{"rights.daemon_horizon", "5s to 1h, or off", func(c *Config) { c.Rights.DaemonHorizon = 5*time.Second - 1 }},
		{"rights.daemon_horizon", "5s to 1h, or off", func(c *Config) { c.Rights.DaemonHorizon = time.Hour + 1 }},
		{"rights.daemon_horizon", "5s to 1h, or off", func(c *Config) { c.Rights.DaemonHorizon = -1 }},
		{
			"rights.region_horizon", "only off is supported: an unreachable region keeps its share",
			func(c *Config) { c.Rights.RegionHorizon = time.Hour },
		},
		{"rights.period", "5s to 10m", func(c *Config) { c.Rights.Period = time.Second }},
		{"strict.replicas", "names this daemon, us-0, which is diskless", func(c *Config) {
			withRights(c)
			c.State = State{Diskless: true}
			c.Name = "us-0"
		}},
		{"rights.daemon_horizon", "off would keep the share of each diskless daemon", func(c *Config) {
			c.State.Diskless, c.Rights.DaemonHorizon = true, 0
		}},
		{"strict.replicas", "has no effect without state.dir", func(c *Config) { c.Strict.Replicas = []string{"us-0"} }},
		{"strict.replicas", "4 names: name an odd number", func(c *Config) {
			withRights(c)
			c.Strict.Replicas = []string{"us-0", "us-1", "us-2", "us-3"}
		}},
		{"strict.replicas[2]", `"us-0" is given twice`, func(c *Config) {
			withRights(c)
			c.Strict.Replicas = []string{"us-0", "us-1", "us-0"}
		}},
		{"control.voter", "is only, and this daemon has no folder for its votes: give it a state.dir", func(c *Config) {
			c.State.Diskless, c.Control.Voter = true, VoterOnly
		}},
		{"strict.replicas", "a witness has no strict keys", func(c *Config) { withRights(c); c.Control.Voter = VoterOnly }},
		{"control.voter", "none of auto, only", func(c *Config) { c.Control.Voter = "never" }},
		{"strict.headroom", "1 to 10000", func(c *Config) { c.Strict.Headroom = 0 }},
		{"strict.prefetch", "0 to 1000", func(c *Config) { c.Strict.Prefetch = -1 }},
		{"strict.forward_timeout", "5ms to 5s", func(c *Config) { c.Strict.ForwardTimeout = 5*time.Millisecond - 1 }},
		{"strict.forward_margin", "5ms to 5s", func(c *Config) { c.Strict.ForwardMargin = 5*time.Second + 1 }},
		{"strict.breaker.errors", "above 0 and at most 1", func(c *Config) { c.Strict.Breaker.Errors = 0 }},
		{"strict.breaker.errors", "above 0 and at most 1", func(c *Config) { c.Strict.Breaker.Errors = rules.Whole + 1 }},
		{"strict.breaker.window", "1s to 10m", func(c *Config) { c.Strict.Breaker.Window = 0 }},
		{"strict.breaker.calls", "1 to 1000000", func(c *Config) { c.Strict.Breaker.Calls = 0 }},
		{"strict.breaker.open", "1s to 1h", func(c *Config) { c.Strict.Breaker.Open = 2 * time.Hour }},
		{"hot_key.threshold", "0 to 1000000000", func(c *Config) { c.HotKey.Threshold = -1 }},
	} {
		c := member()
		tc.change(&c)
		err := c.Validate()
		faults, _ := err.(Faults)
		if len(faults) != 1 || faults[0].Field != tc.field || !strings.Contains(faults[0].Problem, tc.problem) {
			t.Errorf("%s: got %v, want one fault with %q", tc.field, err, tc.problem)
		}
	}
}

// A daemon alone ignores all of a cluster's settings, so each is refused.
func TestRegionlessSettingsAreRefused(t *testing.T) {
	c := member()
	withTLS(&c)
	c.Region = ""
	c.Peer.Addr, c.Peer.Advertise, c.Peer.Insecure = "127.0.0.1:1", "x:1", true
	c.Swim = Swim{Addr: "127.0.0.1:2", Advertise: "x:2", Seeds: []string{"x:3"}, Rejoin: 1, KeysFile: "keys"}
	c.Gossip = Gossip{1, 1, 1, 1}
	c.Cluster.Founders, c.State = []string{"us-0"}, State{"dir", true}
	c.Control.Voter = VoterOnly
	c.Rights = Rights{1, 1, 1}
	c.Strict = Strict{[]string{"us-0"}, 1, 1, 1, 1, Breaker{1, 1, 1, 1}}
	c.HotKey = HotKey{1}
	faults, _ := c.Validate().(Faults)
	got := make(map[string]bool)
	for _, f := range faults {
		got[f.Field] = strings.Contains(f.Problem, "has no effect without a region: give --region (RLD_REGION)")
	}
	for _, f := range Fields() {
		if f.Group == "Cluster" && !got[f.Name] && f.Name != "region" && f.Name != "cluster.secret_file" {
			t.Errorf("%s is not refused", f.Name)
		}
		delete(got, f.Name)
	}
	if len(got) > 0 {
		t.Errorf("refused too: %v", got)
	}
}

// The bounds of the settings are those of the engine.
func TestGossipRangesAreTheEngines(t *testing.T) {
	for _, tc := range []struct {
		field    string
		set      func(c *Config, d time.Duration)
		min, max time.Duration
	}{
		{"interval", func(c *Config, d time.Duration) { c.Gossip.Interval = d }, 10 * time.Millisecond, 10 * time.Second},
		{"wan", func(c *Config, d time.Duration) { c.Gossip.WANInterval = d }, 10 * time.Millisecond, time.Minute},
		{"quiet", func(c *Config, d time.Duration) { c.Gossip.Quiet = d }, 0, time.Minute},
		{"ready", func(c *Config, d time.Duration) { c.Gossip.ReadyWithin = d }, time.Millisecond, time.Minute},
	} {
		for _, d := range []time.Duration{tc.min, tc.max, tc.min - 1, tc.max + 1} {
			c := member()
			tc.set(&c, d)
			g := &c.Gossip
			engine := gossip.Config{Interval: g.Interval, WANInterval: g.WANInterval, Quiet: g.Quiet, ReadyWithin: g.ReadyWithin}
			ours, theirs := c.Validate(), engine.Validate()
			if ours == nil && theirs != nil {
				t.Errorf("%s %v: valid, and the engine says %v", tc.field, d, theirs)
			}
			if inRange := d >= tc.min && d <= tc.max; (ours == nil) != inRange {
				t.Errorf("%s %v: got %v", tc.field, d, ours)
			}
		}
	}
}

func TestDaemonName(t *testing.T) {
	c := Default()
	c.Name = "x"
	if got, err := c.DaemonName(); got != "x" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	c.Name = ""
	if got, err := c.DaemonName(); err == nil && got == "" || err != nil && !strings.HasSuffix(err.Error(), "give --name") {
		t.Errorf("got %q, %v", got, err)
	}
}
