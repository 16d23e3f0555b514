package node

import (
	"fmt"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
)

// MaxShards is the greatest number of Nodes that keys are split over.
const MaxShards = 1 << crdt.ShardBits

// Config is the configuration of a Node.
type Config struct {
	// Shard is the number of this node among the Shards nodes that split the
	// keys between them. Shards is a power of two up to MaxShards.
	Shard, Shards int
	// MaxKeys bounds the live keys of this node, at least 1. A key beyond it
	// uses the overflow counter of its rule.
	MaxKeys int
	// KeyReserve is the part of MaxKeys that is reserved for rules with few
	// keys: see keytable.Shares. Strict keys have the same in their table.
	KeyReserve rules.PPM
	// Chunks allocates the entries of keys; nil for the heap. It is called
	// while the driver's lock is held.
	Chunks func() []keytable.Entry
	// NearLimit is the share of a limit from which hits count as near it.
	NearLimit rules.PPM
	// Clock bounds and slews the hybrid logical clock.
	Clock hlc.Config

	// Region is the name of the node's region. A node without one replicates
	// nothing and ignores the fields below.
	Region string
	// Name is the daemon's name: the same across restarts, and unique.
	Name string
	// Incarnation is that of the node, 0 for a random one. See
	// gossip.DaemonIncarnation.
	Incarnation crdt.Incarnation
	// Gossip configures the replication of counts.
	Gossip gossip.Config
	// Allotments returns the daemon's rights to the windows of rules; nil
	// without rights. Ablation disables gates, for comparison.
	Allotments Allotments
	Ablation   Ablation
	// Owners returns the owners of strict keys; nil if each node counts them
	// for itself. Strict configures their leases.
	Owners lease.Owners
	Strict lease.Config
	// HotThreshold is the number of hits per second from which a key is hot:
	// its counts are expedited. 0 disables it.
	HotThreshold uint64
	// Naive disables the extrapolation of peers' counts, for comparison: only
	// the merged counts decide.
	Naive bool
}

// Default returns the configuration of a node that holds every key.
func Default() Config {
	return Config{Shards: 1, MaxKeys: 1_000_000, NearLimit: 80 * rules.Percent}
}

func (c Config) validate() error {
	switch {
	case c.Shards < 1 || c.Shards > MaxShards || c.Shards&(c.Shards-1) != 0:
		return fmt.Errorf("%d shards, want a power of two from 1 to %d", c.Shards, MaxShards)
	case c.Shard < 0 || c.Shard >= c.Shards:
		return fmt.Errorf("shard %d of %d", c.Shard, c.Shards)
	case c.KeyReserve > rules.Whole:
		return fmt.Errorf("key reserve %s, want at most 100%%", c.KeyReserve)
	case c.MaxKeys < 1:
		return fmt.Errorf("max keys %d, want at least 1", c.MaxKeys)
	case c.MaxKeys > keytable.MaxEntries:
		return fmt.Errorf("max keys %d per shard, at most %d; use more shards", c.MaxKeys, keytable.MaxEntries)
	}
	if err := c.Gossip.Validate(); err != nil {
		return err
	}
	return c.Clock.Validate()
}
