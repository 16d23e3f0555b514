// Package report answers the status pages of a daemon: explanations of
// decisions, the state of the daemon, of its cluster and of strict keys, the
// hottest keys, and the commands of operators. It also writes the banner and
// logs when decisions become degraded. It reads the daemon through small
// interfaces.
package report

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/sticky/lease"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// Engine decides calls. Implementations are safe for concurrent use.
type Engine interface {
	Now() node.Instant
	Rules() *rules.Set
	Incarnation() crdt.Incarnation
	Stats() node.Stats
	StrictStats() lease.Stats
	Tallies(yield func(domain, rule string, t quota.Tally))
	// Links and Offsets describe the peers.
	Links(at node.Instant) []node.Link
	Offsets() map[crdt.Incarnation]time.Duration
	// Stamps returns the latest known clock reading of each incarnation.
	Stamps() map[crdt.Incarnation]hlc.Timestamp
	// Hottest returns the keys with most requested or denied hits.
	Hottest() []node.HotKey
	// OriginalKey returns the key of the descriptor that counts under a key.
	OriginalKey(crdt.Key) crdt.Key
	// NextKey returns the key of descriptor i of a decided call under the next
	// cluster secret, false without one.
	NextKey(c *node.Call, i int) (crdt.Key, bool)
	// Peek decides a call without charging it, and returns its hits and the
	// rules it met.
	Peek(ctx context.Context, c *node.Call) ([]node.Hit, *rules.Set, error)
	// Explain returns the state of the key of a hit, the peers as its shard
	// knows them, and the time of windows in Unix milliseconds.
	Explain(h *node.Hit) (node.Explained, []node.Link, int64)
}

// Cluster is the membership and the streams of a daemon. Implementations are
// safe for concurrent use.
type Cluster interface {
	// Members returns the live daemons of all regions, and Since when this
	// daemon first saw one, the zero time if unknown.
	Members() []gossip.Member
	Since(id crdt.Incarnation) time.Time
	// Regions are the configured regions.
	Regions() []string
	// Claims counts the claims of peers about regions and addresses that were
	// not believed, by kind.
	Claims() map[string]uint64
	// Ready reports whether the daemon does its share of the work, and nothing
	// keeps it from being ready.
	Ready() bool
	Streams() []link.Stream
	Stats() (link.Stats, swim.Stats)
	// Events counts the events of replication by name.
	Events() map[string]uint64
}

// Strict serves strict keys. Implementations are safe for concurrent use.
type Strict interface {
	Routing() *route.Routing
	// Circuits describes the paths to owners.
	Circuits() []replica.Circuit
	// Acceptor runs do on the acceptor, if it is open. Expedite makes the
	// acceptor send soon.
	Acceptor(do func(*quorum.Acceptor))
	Expedite()
	// Journal returns the size of the acceptor's journal in bytes, and why it
	// cannot store anything, "" if it can.
	Journal() (bytes int64, fault string)
}

// Rights is the rights agent of a daemon. Implementations are safe for
// concurrent use.
type Rights interface {
	Status() agent.Status
	// WhyNot returns a reason for no allotment as half a sentence, with the
	// remedy where it is known.
	WhyNot(epoch.Reason) string
}

// Config is the configuration of a Report.
type Config struct {
	Engine Engine
	// Cluster is nil for a daemon alone. It may be set after New, before the
	// first use of the Report.
	Cluster Cluster
	// Strict is nil for a daemon that does not serve strict keys.
	Strict Strict
	// Rights is nil for a daemon without rights.
	Rights Rights
	// Control is nil for a daemon alone. It may be set as Cluster is. Regions
	// are those of the settings, by name, for the founding.
	Control Control
	Regions []control.FirstRegion
	// Limits are the limits that decide calls. It is set where Control is.
	Limits Limits
	// Witness reports that the daemon only votes.
	Witness bool
	// SharedKeys reports that keys have the same hashes at all daemons.
	SharedKeys bool
	// NextSecret returns the state of a replacement of the cluster secret, nil
	// for none.
	NextSecret func() *api.NextSecret
	// WorstRule returns the rule that used most of its bound; nil for a daemon
	// alone.
	WorstRule func() *api.RuleUse
	// Region and Name identify the daemon, "" for a daemon alone.
	Region, Name, Version string
	// MaxKeys bounds the strict keys. HotThreshold is the rate of a hot key in
	// hits a second, 0 for none.
	MaxKeys, HotThreshold int
	// Settings are those of the answers over HTTP.
	Settings server.Settings
	// Ready returns why the daemon does not answer calls, nil if it does.
	Ready func() error
	// LimitsFault returns why the limits on disk, or of the xDS server, are
	// invalid, "" if they are valid.
	LimitsFault func() string
	// Keyring describes the membership keys of a file, nil without one.
	Keyring func() *api.KeyringState
	// Wall reads the wall clock.
	Wall func() time.Time
	Log  *slog.Logger
}

// Report answers status pages. It is safe for concurrent use.
type Report struct {
	Config
	names keyNames

	mu       sync.Mutex // guards the fields below
	degraded degradedLog
	keysFull map[ruleKey]keysOfRule // when decisions had room last
	denied   [2]denials             // the latest two samples, the older one first
	meters   map[string]*meter      // by address
}

// New returns a report. Run samples for it.
func New(c Config) *Report {
	if c.NextSecret == nil {
		c.NextSecret = func() *api.NextSecret { return nil }
	}
	return &Report{Config: c, meters: map[string]*meter{}}
}

// Intervals of samples.
const (
	degradedInterval = time.Second
	recentInterval   = 2 * time.Second
)

// Run samples until ctx ends.
func (r *Report) Run(ctx context.Context) {
	degraded, recent := time.NewTicker(degradedInterval), time.NewTicker(recentInterval)
	defer degraded.Stop()
	defer recent.Stop()
	r.sampleDenials()
	for {
		select {
		case <-ctx.Done():
			return
		case <-degraded.C:
			r.sampleDegraded()
		case <-recent.C:
			r.sampleDenials()
			if r.Cluster != nil {
				r.Netcheck() // for its rates
			}
		}
	}
}

// Sampled keeps the names of the hot keys of a decided call. It does not wait.
func (r *Report) Sampled(c *node.Call, hits []node.Hit) { r.names.add(c, hits) }

// self identifies this daemon.
func (r *Report) self() api.DaemonRef {
	if r.Region == "" {
		return api.DaemonRef{}
	}
	return api.DaemonRef{Region: r.Region, Name: r.Name, Incarnation: r.Engine.Incarnation().String()}
}
