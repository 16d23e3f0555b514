package daemon

import (
	"cmp"
	"fmt"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon/follow"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/server/admin/api"
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

// swimKeys returns the keys of membership: those of the file, or those derived
// from the secret.
func (d *daemon) swimKeys() ([][]byte, error) {
	if path := d.Config.Swim.KeysFile; path != "" {
		return d.followKeys(path)
	}
	return d.derivedKeys(), nil
}

// followKeys returns the keys of a file, and follows it.
func (d *daemon) followKeys(path string) ([][]byte, error) {
	refused := func(err error) {
		d.Log.Error("the file of the membership keys is invalid: the former keys stay in force", "event", "keyring", "error", err)
	}
	file, ring, err := follow.Open(follow.Source[config.Keyring]{
		Read: func() ([]byte, config.Keyring, error) {
			ring, warnings, err := config.ReadKeys(path)
			if d.keys == nil { // it is the first reading
				d.warn(warnings)
			}
			return ring.Data, ring, err
		},
		Apply: func(ring config.Keyring) {
			if err := d.cluster.swim.SetKeys(ring.Keys); err != nil {
				refused(err)
				return
			}
			d.Log.Info("membership keys changed: the first one encrypts", "event", "keyring", "keys", d.cluster.swim.Keys())
		},
		Refused: refused,
	})
	if err != nil {
		return nil, err
	}
	d.keys = file
	return ring.Keys, nil
}

// keyring describes the keys of a file, nil without one. It does not describe
// keys that are derived from the secret, which can be guessed from a
// fingerprint if the secret is weak.
func (d *daemon) keyring() *api.KeyringState {
	if d.keys == nil {
		return nil
	}
	out := &api.KeyringState{Keys: d.cluster.swim.Keys()}
	if err := d.keys.Fault(); err != nil {
		out.Fault = err.Error()
	}
	return out
}
