package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/control"
)

// Bounds of a cluster.
const (
	maxSeeds    = 256
	maxRegions  = 64
	maxNetworks = 64 // of a region
	maxPeers    = 64 // of a region, as configured
)

// newSecret is a command that generates a secret.
const newSecret = "head -c 32 /dev/urandom | base64 > secret"

func (v *validator) cluster(c *Config) {
	if c.Region == "" {
		return
	}
	v.named("region", c.Region)
	if c.Name != "" {
		v.named("name", c.Name)
	}
	v.secret(c)
	v.advertised("peer.addr", c.Peer.Addr, "peer.advertise", c.Peer.Advertise)
	v.tls(c.Peer.TLS)
	v.advertised("swim.addr", c.Swim.Addr, "swim.advertise", c.Swim.Advertise)
	v.seeds(c.Swim.Seeds)
	v.regions(c)
	v.state(c)
	v.witness(c)
	v.founders(c)
	v.rights(c)
	v.replicas(c)
}

// inCluster reports whether a setting has no effect for a daemon alone.
func inCluster(name string) bool {
	return slices.ContainsFunc(ofCluster, func(s string) bool {
		return name == s || strings.HasSuffix(s, ".") && strings.HasPrefix(name, s)
	})
}

func (v *validator) named(field, name string) {
	if err := checkName(name); err != nil {
		v.fault(field, "%s", err)
	}
}

// secret requires a secret where there is another daemon to share it with.
func (v *validator) secret(c *Config) {
	if c.Cluster.SecretFile != "" {
		return
	}
	other := slices.IndexFunc(c.Regions, func(r Region) bool { return r.Name != c.Region && len(r.Peers) > 0 })
	needs := "swim.seeds"
	switch {
	case len(c.Swim.Seeds) > 0:
	case other >= 0:
		needs = "regions." + c.Regions[other].Name + ".peers"
	default:
		return
	}
	v.faultFor("cluster.secret_file", needs, "is missing: the daemons of a cluster need one secret, which hashes "+
		"keys; make one with %s and give each daemon its path", newSecret)
}

// founders checks the names of the daemons that found the cluster.
func (v *validator) founders(c *Config) {
	const field = "cluster.founders"
	list := c.Cluster.Founders
	if len(list) > control.MaxFounders {
		v.fault(field, "%d names: at most %d; a majority of them must be live when the cluster begins", len(list), control.MaxFounders)
		return
	}
	v.distinct(field, list)
	if c.State.Dir == "" && c.Name != "" && slices.Contains(list, c.Name) {
		v.faultFor(field, "name", "name %s, this daemon, which has no folder: give it a state.dir", c.Name)
	}
}

// distinct checks that a list has names of daemons, each once.
func (v *validator) distinct(field string, list []string) {
	for i, name := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := checkName(name); err != nil {
			v.fault(at, "%s", err)
		} else if slices.Contains(list[:i], name) {
			v.fault(at, "%q is given twice", name)
		}
	}
}

// advertised checks that other daemons can dial the listening address.
func (v *validator) advertised(field, addr, advertiseField, advertise string) {
	if advertise != "" {
		if _, _, err := splitDial(advertise); err != nil {
			v.fault(advertiseField, "%s", err)
		}
		return
	}
	host, port, err := splitAddr(addr)
	if err == nil && unspecified(host) {
		v.fault(field, "%q is all addresses of this machine: give the one for other daemons as %s, "+
			"such as 10.0.0.1:%s", addr, advertiseField, port)
	}
}

func (v *validator) tls(t TLS) {
	if !t.On() {
		return
	}
	files := []struct{ field, path string }{
		{"peer.tls.cert", t.Cert}, {"peer.tls.key", t.Key}, {"peer.tls.ca", t.CA},
	}
	given := slices.IndexFunc(files, func(f struct{ field, path string }) bool { return f.path != "" })
	for _, f := range files {
		if f.path == "" {
			v.faultFor(f.field, files[given].field,
				"is missing: give all of peer.tls.cert, peer.tls.key and peer.tls.ca, or none")
		}
	}
}

func (v *validator) seeds(seeds []string) {
	if len(seeds) > maxSeeds {
		v.fault("swim.seeds", "%d addresses: at most %d; a few daemons of the region, or one DNS name, are enough",
			len(seeds), maxSeeds)
		return
	}
	for i, s := range seeds {
		if _, _, err := splitDial(s); err != nil {
			v.fault(fmt.Sprintf("swim.seeds[%d]", i), "%s", err)
		}
	}
}

func (v *validator) regions(c *Config) {
	if len(c.Regions) > maxRegions {
		v.fault("regions", "%d regions: at most %d", len(c.Regions), maxRegions)
		return
	}
	names := make(map[string]bool)
	taken := make(map[string]string) // the region of each peer
	for i := range c.Regions {
		r := &c.Regions[i]
		field := "regions." + r.Name
		if err := checkName(r.Name); err != nil {
			v.fault("regions", "%s", err)
		} else if names[r.Name] {
			v.fault(field, "is given twice")
		}
		names[r.Name] = true
		v.peers(c, r, taken)
		v.networks(r)
	}
}

// networks checks the networks of one region's daemons, and that its peers are
// in them.
func (v *validator) networks(r *Region) {
	field := "regions." + r.Name + ".cidrs"
	if len(r.CIDRs) > maxNetworks {
		v.fault(field, "%d networks: at most %d", len(r.CIDRs), maxNetworks)
		return
	}
	for i, text := range r.CIDRs {
		if _, err := network(text); err != nil {
			v.fault(fmt.Sprintf("%s[%d]", field, i), "%s", err)
		}
	}
}

// peers checks the addresses of one region's daemons.
func (v *validator) peers(c *Config, r *Region, taken map[string]string) {
	field := "regions." + r.Name + ".peers"
	if len(r.Peers) > maxPeers {
		v.fault(field, "%d addresses: at most %d; a few daemons of the region are enough, the others are learned from them",
			len(r.Peers), maxPeers)
		return
	}
	plain := false // reported once a region
	for i, p := range r.Peers {
		at := fmt.Sprintf("%s[%d]", field, i)
		host, _, err := splitDial(p)
		if err != nil {
			v.fault(at, "%s", err)
			continue
		}
		if other, twice := taken[p]; twice {
			v.fault(at, "%q is a peer of %s already", p, other)
			continue
		}
		taken[p] = r.Name
		if r.Name != c.Region && !plain && !loopback(host) && !c.Peer.TLS.On() && !c.Peer.Insecure {
			plain = true
			v.fault(at, "%q is on another machine, and the stream would be in plain text: give peer.tls.cert, "+
				"peer.tls.key and peer.tls.ca, or set peer.insecure (--peer-insecure) where the network is trusted", p)
		}
	}
}
