package daemon

import (
	"cmp"
	"fmt"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/sticky/lease"
)

// cellsPerKey is the room for replicated cells for each tracked key on average:
// one for each daemon of the region and each other region that counts hits of
// the key.
const cellsPerKey = 8

// frameCells bounds the cells of a message of one shard. The shard is locked
// while it builds one, and decisions wait.
const frameCells = 512

// replicate adds replication to the configuration of an engine, unless the
// daemon is alone.
func (d *daemon) replicate(ec *EngineConfig) error {
	c := &d.Config
	if c.Region == "" {
		return nil
	}
	if err := d.openAgent(); err != nil {
		return err
	}
	if d.agent != nil {
		ec.Node.Allotments = d.agent
		d.strict = newStrict(strictSettings(c), newAcceptorLoop(d.Log), d.Log)
		ec.strict = d.strict
		ec.Node.Owners = d.strict
		ec.Node.Strict = lease.Config{Headroom: uint64(c.Strict.Headroom), Prefetch: uint64(c.Strict.Prefetch)}
	}
	ec.Node.Region, ec.Node.Name = c.Region, c.Name
	ec.Node.HotThreshold = uint64(c.HotKey.Threshold)
	shards := ec.shards()
	ec.Node.Gossip = gossip.Config{
		Interval: c.Gossip.Interval, WANInterval: c.Gossip.WANInterval, Quiet: c.Gossip.Quiet,
		ReadyWithin: c.Gossip.ReadyWithin,
		MaxCells:    max(1, c.MaxKeys/shards) * cellsPerKey,
		FrameCells:  frameCells,
	}
	return nil
}

// strictSettings configures how a daemon asks the owners of strict keys.
func strictSettings(c *config.Config) replica.Config {
	b := &c.Strict.Breaker
	return replica.Config{
		Region: c.Region, ForwardTimeout: c.Strict.ForwardTimeout, ForwardMargin: c.Strict.ForwardMargin,
		Breaker: breaker.Config{Errors: uint32(b.Errors), Window: b.Window, Calls: uint32(b.Calls), Open: b.Open},
	}
}

// joinCluster connects the daemon to its cluster.
func (d *daemon) joinCluster(e *edges) error {
	c := &d.Config
	keys, err := d.swimKeys()
	if err != nil {
		return err
	}
	cc := clusterConfig{
		engine: d.engine, agent: d.agent, strict: d.strict, witness: c.Witness(), control: d.control, log: d.Log, lis: e.peerLis, wait: c.Gossip.ReadyWithin,
		self: gossip.Member{
			Peer:  gossip.Peer{ID: d.engine.Incarnation(), Name: c.Name, Region: c.Region},
			Addr:  cmp.Or(c.Peer.Advertise, e.peerLis.Addr().String()),
			Build: d.Version,
		},
		contacts: map[string][]string{}, networks: c.Networks(),
		membership: swim.Config{
			Bind: c.Swim.Addr, Advertise: c.Swim.Advertise, Keys: keys, Seeds: c.Swim.Seeds,
			Interval: c.Gossip.Interval, Rejoin: c.Swim.Rejoin, Transport: d.Net.Swim,
		},
	}
	for _, r := range c.Regions {
		if r.Name != c.Region {
			cc.contacts[r.Name] = r.Peers
		}
	}
	cc.streams.Fingerprints = d.fingerprints
	cc.streams.Dial, cc.streams.Bounds = d.Net.Dial, e.peerBounds
	if t := c.Peer.TLS; t.On() {
		self := certs.Name{Region: c.Region, Daemon: c.Name}
		warnings, err := t.Check(self, time.Now())
		if err != nil {
			return err
		}
		d.warn(warnings)
		cc.streams.Certificates, err = link.LoadCertificates(certs.Files{Cert: t.Cert, Key: t.Key, CA: t.CA, Self: self}, d.Log)
		if err != nil {
			return fmt.Errorf("peer.tls: %w", err)
		}
		if names := cc.streams.Certificates.Names(); len(names) > 0 {
			d.Log.Info("peers must have a certificate with their name, as this daemon has", "names", certs.List(names))
		}
	}
	d.cluster, err = startCluster(cc)
	return err
}

// swimKeys returns the keys of membership: those of the file, or one derived
// from each secret. A daemon without a secret has none.
func (d *daemon) swimKeys() ([][]byte, error) {
	if path := d.Config.Swim.KeysFile; path != "" {
		keys, warnings, err := config.ReadKeys(path)
		d.warn(warnings)
		return keys, err
	}
	if d.secret.Load().Current == nil {
		return nil, nil
	}
	var keys [][]byte
	for _, key := range d.derive(forMembership) {
		keys = append(keys, key[:])
	}
	return keys, nil
}

// rotateKeys sets the current keys of membership.
func (d *daemon) rotateKeys() {
	if d.cluster == nil {
		return
	}
	keys, err := d.swimKeys()
	if err == nil && keys == nil {
		return
	}
	if err == nil {
		err = d.cluster.swim.SetKeys(keys)
	}
	if err != nil {
		d.Log.Error("the membership keys are invalid, the former ones stay in force", "error", err)
		return
	}
	d.Log.Info("membership keys are in force", "keys", len(keys))
}
