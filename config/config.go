// Package config holds the settings of a daemon: one struct, where each value
// came from, and the files that limits are read from. It finds and watches
// files; what they mean is for package limits to say.
package config

import (
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/web"
)

// Config is every setting of `rld serve`. Default returns a valid one, Load
// fills one in from flags, environment and file, Validate names its faults.
// It is a plain value without pointers into anything live.
type Config struct {
	GRPC  GRPC
	HTTP  HTTP
	Admin Admin

	// Insecure lets a listener off loopback answer without TLS, and streams to
	// other daemons leave the machine without it. Otherwise they are refused.
	Insecure bool

	Limits Limits

	// MaxKeys is how many live keys are tracked, 1 to 100,000,000. Beyond it
	// new keys share the overflow counters of their rule: they may be denied
	// falsely, and no tracked key is forgotten. A key costs about 75 bytes.
	MaxKeys int
	// Shards is into how many parts the keys are split, each with a lock of
	// its own: a power of two up to 64; 0 picks by max_keys.
	Shards int

	// Region is the region the daemon lives in; "" is a daemon alone, for
	// which Name, Peer, Swim, Regions, Gossip, Rights, Strict and HotKey mean
	// nothing and must be left at their defaults. Name is the daemon's name, of its own in the cluster;
	// "" takes that of the host. Both are 1 to 63 letters, digits, dots,
	// underscores and dashes.
	Region, Name string

	Cluster Cluster
	Peer    Peer
	Swim    Swim
	// Regions are the regions of the cluster, at most 64. The own one may be
	// among them, and must be if they have weights.
	Regions []Region
	Gossip  Gossip
	Rights  Rights
	Strict  Strict
	HotKey  HotKey
	Clock   Clock

	// Shadow passes every call; statuses keep what they would have been.
	Shadow bool
	// QuotaAll takes every descriptor for a quota, also one that no rule
	// matches: a call is refused only when all its descriptors are over.
	QuotaAll bool

	RLS RLS
	Log Log

	// Drain is how long a stopping daemon waits for the calls in flight
	// before it ends them, 0 to 10 minutes.
	Drain time.Duration
}

// GRPC is the listener for Envoy RLS, the native API, health and reflection.
type GRPC struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
	// UDS is the path of a unix socket to answer on as well, "" for none.
	UDS string
	// MaxConnectionAge is after how long a connection is told to go away, so
	// that clients spread over new daemons: 1 s or more, 0 for never.
	// MaxConnectionAgeGrace is how long its calls may take to end, 1 s or
	// more.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
}

// HTTP is the listener for /v1/check, /json and /healthcheck.
type HTTP struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
	// Headers is which rate limit headers every answer carries.
	Headers HeaderStyle
	// DocumentationURL goes into the body of a denial, "" for none. It is an
	// absolute http or https URL.
	DocumentationURL string
	// RateLimitAPI says how the parameters of /api/v1/rate_limit become
	// descriptors.
	RateLimitAPI web.Mapping
}

// HeaderStyle is which rate limit headers the HTTP edge adds.
type HeaderStyle string

// The header styles.
const (
	// HeadersStandard adds RateLimit and RateLimit-Policy.
	HeadersStandard HeaderStyle = "standard"
	// HeadersLegacy adds X-RateLimit-* to them.
	HeadersLegacy HeaderStyle = "legacy"
)

// Admin is the listener for metrics, health, rules in force and pprof.
type Admin struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
}

// Limits is where limits come from and how they are read.
type Limits struct {
	// Path is a file or a folder of limits; "" loads the embedded examples.
	Path string
	// Names is which files of a folder hold limits.
	Names Names
	// Poll is the time between two looks at the files, 100 ms to 1 h.
	Poll time.Duration
	// MergeDomains lets several files hold rules of one domain.
	MergeDomains bool
	// ChargeDenied charges refused hits too, for every rule, as upstream
	// does. A rule's own charge_denied says it for that rule alone.
	ChargeDenied bool
	// NearRatio is the share of a limit from which on hits are counted as
	// near it in the metrics, above 0 and at most 1,000,000 (all of it). It
	// decides nothing.
	NearRatio rules.PPM
}

// Clock is how far clocks are trusted.
type Clock struct {
	// MaxOffset is how far ahead another daemon's clock may be and still move
	// ours, 1 ms to 10 s.
	MaxOffset time.Duration
}

// RLS is what the Envoy edge adds to its answers.
type RLS struct {
	// Headers returns rate limit headers under the three names below, which
	// are HTTP field names.
	Headers                                   bool
	LimitHeader, RemainingHeader, ResetHeader string
	// DynamicMetadata returns the request and the metadata of its rules.
	DynamicMetadata bool
}

// Log is what is logged, to standard error.
type Log struct {
	// Level is the least severe level that is logged.
	Level LogLevel
	// Format is one line of text or one JSON object an event.
	Format LogFormat
}

// LogLevel is a severity.
type LogLevel string

// The levels, least severe first.
const (
	LevelDebug LogLevel = "debug"
	LevelInfo  LogLevel = "info"
	LevelWarn  LogLevel = "warn"
	LevelError LogLevel = "error"
)

// LogFormat is the form of a log line.
type LogFormat string

// The formats.
const (
	FormatText LogFormat = "text"
	FormatJSON LogFormat = "json"
)

// Default returns the settings of a daemon that was told nothing: everything
// on loopback, the embedded example limits.
func Default() Config {
	return Config{
		GRPC: GRPC{
			Addr:                  "127.0.0.1:8081",
			MaxConnectionAge:      24 * time.Hour,
			MaxConnectionAgeGrace: time.Hour,
		},
		HTTP:    HTTP{Addr: "127.0.0.1:8080", Headers: HeadersStandard, RateLimitAPI: web.DefaultMapping()},
		Admin:   Admin{Addr: "127.0.0.1:6070"},
		Limits:  Limits{Names: NamesYAML, Poll: time.Second, NearRatio: 80 * rules.Percent},
		MaxKeys: 1_000_000,
		Peer:    defaultPeer(),
		Swim:    defaultSwim(),
		Gossip:  defaultGossip(),
		Rights:  defaultRights(),
		Strict:  defaultStrict(),
		HotKey:  defaultHotKey(),
		Clock:   Clock{MaxOffset: 250 * time.Millisecond},
		RLS: RLS{
			LimitHeader:     "RateLimit-Limit",
			RemainingHeader: "RateLimit-Remaining",
			ResetHeader:     "RateLimit-Reset",
		},
		Log:   Log{Level: LevelInfo, Format: FormatText},
		Drain: 10 * time.Second,
	}
}
