// Package config holds the settings of a daemon: one struct, the source of each
// value, and the files of limits. It finds and watches files; package limits
// interprets them.
package config

import (
	"io/fs"
	"time"

	"github.com/georld/rld/gateway"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/web"
)

// Config holds all settings of `rld serve`. Default returns a valid one, Load
// fills one in from flags, environment and file, and Validate returns its
// faults. It is a plain value without pointers to live state.
type Config struct {
	GRPC  GRPC
	HTTP  HTTP
	Admin Admin
	Probe Probe
	Auth  Auth
	// Gateways are the mappings of /v1/forward-auth/ by their names.
	Gateways map[string]gateway.Settings

	Limits Limits

	// MaxKeys is the number of live keys that are tracked, 1 to 100,000,000.
	// Further keys share the overflow counters of their rule: they may be
	// denied falsely, and no tracked key is forgotten. A key costs about 75
	// bytes.
	MaxKeys int
	// KeyReserve is the part of MaxKeys that is reserved, in equal parts, for
	// rules that have fewer keys, 0 to 1. So a flood of keys of one rule leaves
	// room for the others.
	KeyReserve rules.PPM
	// Shards is the number of parts of the keys, each with its own lock: a
	// power of two up to 64; 0 derives it from MaxKeys.
	Shards int

	// Region is the region of the daemon; "" is a daemon alone, for which Name,
	// Peer, Swim, Regions, Gossip, State, Control, Rights, Strict and HotKey
	// have no effect and must keep their defaults. Name is the daemon's name,
	// unique in the cluster; "" is the host name. Both have 1 to 63 letters,
	// digits, dots, underscores and dashes.
	Region, Name string

	Cluster Cluster
	Peer    Peer
	Swim    Swim
	// Regions are the regions of the cluster, at most 64. The own one may be
	// among them, and must be if they have weights.
	Regions []Region
	Gossip  Gossip
	State   State
	Control Control
	Rights  Rights
	Strict  Strict
	HotKey  HotKey
	Clock   Clock

	// Shadow admits every call; its statuses report the decisions.
	Shadow bool
	// QuotaAll treats every descriptor as a quota, also one without a rule: a
	// call is denied only when all its descriptors are over their limit.
	QuotaAll bool

	// RLS configures the answers of the Envoy edge. The names of its headers
	// are HTTP field names.
	RLS server.RLS
	Log Log

	// Shutdown configures the end of the daemon.
	Shutdown Shutdown
	// Drain is how long a stopping daemon waits for running calls, 0 to 10
	// minutes. Then it ends them.
	Drain time.Duration
}

// Shutdown configures the end of a daemon.
type Shutdown struct {
	// Delay is how long a stopping daemon goes on to serve although it is not
	// ready, 0 to 10 minutes.
	Delay time.Duration
}

// GRPC is the listener for Envoy RLS, the native API, health, and reflection
// where Reflection is set.
type GRPC struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
	// Insecure allows Addr on other addresses than loopback without TLS or
	// tokens.
	Insecure bool
	// UDS is the path of a unix socket to serve on as well, "" for none. Its
	// callers need no token: UDSMode, the mode of the file, selects them.
	UDS     string
	UDSMode fs.FileMode
	// TLS applies to Addr, not to UDS.
	TLS ServerTLS
	// MaxConnectionAge is the age at which a connection is closed gracefully,
	// so that clients spread over new daemons: 1 s or more, 0 for never.
	// MaxConnectionAgeGrace is the time for its calls to end, 1 s or more.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
	Connections
	// MaxCancelledCalls is how many calls a connection may cancel in a second,
	// each within 10 ms of its start, before it is closed: 10 to 1,000,000.
	MaxCancelledCalls int
	// Reflection serves the descriptions of the services to clients.
	Reflection bool
}

// Connections bounds the connections of a listener.
type Connections struct {
	// Max bounds the established ones, 1 to 100,000. The limit of open files
	// may allow fewer.
	Max int
	// MaxPerSource bounds those of one IPv4 address or one /64 of IPv6
	// addresses, 1 to 100,000.
	MaxPerSource int
}

// HTTP is the listener for /v1/check, /json and /healthcheck.
type HTTP struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
	// Insecure, UDS, UDSMode and TLS are those of GRPC.
	Insecure bool
	UDS      string
	UDSMode  fs.FileMode
	TLS      ServerTLS
	// Headers selects the rate limit headers of every response.
	Headers HeaderStyle
	// DocumentationURL goes into the body of a denial, "" for none. It is an
	// absolute http or https URL.
	DocumentationURL string
	// RateLimitAPI maps the parameters of /api/v1/rate_limit to descriptors.
	RateLimitAPI web.Mapping
	Connections
}

// HeaderStyle selects the rate limit headers of HTTP responses.
type HeaderStyle string

// The header styles.
const (
	// HeadersDraft adds RateLimit and RateLimit-Policy.
	HeadersDraft HeaderStyle = "draft"
	// HeadersLegacy adds X-RateLimit-* to them.
	HeadersLegacy HeaderStyle = "legacy"
)

// Admin is the listener for operators: metrics, health, status and commands.
type Admin struct {
	// Addr is host:port; port 0 takes a free one.
	Addr string
	// Insecure allows Addr on other addresses than loopback without tokens or
	// certificates of operators.
	Insecure bool
	// UDS is the path of the unix socket for commands, of mode 0600. "" is
	// admin.sock in State.Dir, or in a new folder of the temporary files.
	UDS string
	// TLS applies to Addr, not to UDS.
	TLS OperatorTLS
	// TokensFile holds the hashed tokens of operators, "" for none.
	TokensFile string
	// Pprof serves profiles of the process.
	Pprof bool
}

// OperatorTLS is ServerTLS for operators, whose certificates have a URI with
// their role: auth.OperatorURI.
type OperatorTLS struct{ CertFile, KeyFile, ClientCAFile string }

// Server returns it as ServerTLS.
func (t OperatorTLS) Server() ServerTLS {
	return ServerTLS{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.ClientCAFile}
}

// Credentials reports whether connections over TCP need credentials.
func (a *Admin) Credentials() bool { return a.TokensFile != "" || a.TLS.ClientCAFile != "" }

// Probe is a listener for probes and metrics alone, for everyone.
type Probe struct {
	// Addr is host:port, "" for none; port 0 takes a free one.
	Addr string
	// MetricsPath is the path of the metrics there, not that of a probe.
	MetricsPath string
	// UpstreamMetrics adds metrics under the names of envoyproxy/ratelimit.
	UpstreamMetrics bool
}

// Limits configures the source of the limits.
type Limits struct {
	// Path is a file or a folder of limits; "" selects the embedded examples,
	// or the limits of an xDS server.
	Path string
	XDS  XDS
	// Names selects the files of a folder.
	Names Names
	// Poll is the time between two checks of the files, 100 ms to 1 h.
	Poll time.Duration
	// MergeDomains allows rules of one domain in several files.
	MergeDomains bool
	// ChargeDenied charges denied hits too, as envoyproxy/ratelimit does, for
	// every rule without a charge_denied of its own.
	ChargeDenied bool
	// NearRatio is the part of a limit above which metrics count hits as near
	// the limit, above 0 and at most 1,000,000 (all of it). It changes no
	// decision.
	NearRatio rules.PPM
}

// Clock configures the trust in clocks.
type Clock struct {
	// MaxOffset is how far ahead the clock of another daemon may be and still
	// advance this daemon's, 1 ms to 10 s.
	MaxOffset time.Duration
}

// Log configures the log on standard error.
type Log struct {
	// Level is the lowest severity that is logged.
	Level LogLevel
	// Format is one line of text or one JSON object for each event.
	Format LogFormat
}

// LogLevel is a severity.
type LogLevel string

// The levels, in ascending order.
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

// Default returns the settings of a daemon without any source of settings: all
// listeners on loopback, and the embedded example limits.
func Default() Config {
	return Config{
		GRPC: GRPC{
			Addr:                  "127.0.0.1:8081",
			UDSMode:               defaultSocketMode,
			MaxConnectionAge:      24 * time.Hour,
			MaxConnectionAgeGrace: time.Hour,
			Connections:           defaultConnections(),
			MaxCancelledCalls:     100,
		},
		HTTP: HTTP{
			Addr: "127.0.0.1:8080", UDSMode: defaultSocketMode, Headers: HeadersDraft, RateLimitAPI: web.DefaultMapping(), Connections: defaultConnections(),
		},
		Admin:   Admin{Addr: "127.0.0.1:6070"},
		Probe:   Probe{MetricsPath: "/metrics"},
		Limits:  Limits{Names: NamesYAML, Poll: time.Second, NearRatio: 80 * rules.Percent, XDS: defaultXDS()},
		MaxKeys: 1_000_000, KeyReserve: 50 * rules.Percent,
		Peer:    defaultPeer(),
		Swim:    defaultSwim(),
		Gossip:  defaultGossip(),
		Rights:  defaultRights(),
		Control: Control{Voter: VoterAuto},
		Strict:  defaultStrict(),
		HotKey:  defaultHotKey(),
		Clock:   Clock{MaxOffset: 250 * time.Millisecond},
		RLS:     server.DefaultSettings().RLS,
		Log:     Log{Level: LevelInfo, Format: FormatText},
		Drain:   10 * time.Second,
	}
}

func defaultConnections() Connections { return Connections{Max: 4_096, MaxPerSource: 1_024} }
