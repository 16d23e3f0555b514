package config

import (
	"slices"
	"strings"
)

// Field is one setting, for those who list them or take them from a command
// line.
type Field struct {
	// Name is where it stands in the file, "grpc.addr".
	Name string
	// Flag is its flag without the dashes, "grpc-addr"; "" for a setting
	// that only the file can hold.
	Flag string
	// Env is its environment variable, "RLD_GRPC_ADDR"; "" likewise.
	Env string
	// Group is the heading it stands under in a list, the same for all that
	// follow each other there.
	Group string
	// Usage is one line about it, Kind the kind of value it takes.
	Usage, Kind string
	// Default is what holds when nothing is said.
	Default string
}

// Fields lists every setting in the order of the file.
func Fields() []Field {
	c := Default()
	table := fields(&c)
	out := make([]Field, len(table))
	for i := range table {
		f := &table[i]
		out[i] = Field{Name: f.name, Flag: f.flag, Env: f.env(), Group: f.group, Usage: f.usage, Kind: f.kind, Default: f.get()}
	}
	return out
}

// field is one setting bound to a Config.
type field struct {
	name, flag, usage string
	group             string
	value
}

// env follows from the flag: --grpc-addr is RLD_GRPC_ADDR.
func (f *field) env() string {
	if f.flag == "" {
		return ""
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.flag, "-", "_"))
}

// fields binds every setting to c.
func fields(c *Config) []field {
	var out []field
	for _, g := range []struct {
		name   string
		fields []field
	}{
		{"Listeners", listenerFields(c)},
		{"Limits", limitFields(c)},
		{"Answers", answerFields(c)},
		{"Cluster", clusterFields(c)},
		{"Process", processFields(c)},
	} {
		for _, f := range g.fields {
			f.group = g.name
			out = append(out, f)
		}
	}
	return out
}

func listenerFields(c *Config) []field {
	return []field{
		{name: "grpc.addr", flag: "grpc-addr", value: text(&c.GRPC.Addr, "host:port"),
			usage: "where gRPC is answered (Envoy RLS, native API, health)"},
		{name: "grpc.uds", flag: "grpc-uds", value: path(&c.GRPC.UDS, "no unix socket"),
			usage: "a unix socket to answer gRPC on as well"},
		{name: "grpc.max_connection_age", flag: "grpc-max-connection-age",
			value: duration(&c.GRPC.MaxConnectionAge),
			usage: "age at which a gRPC connection is told to go away; 0 for never"},
		{name: "grpc.max_connection_age_grace", flag: "grpc-max-connection-age-grace",
			value: duration(&c.GRPC.MaxConnectionAgeGrace),
			usage: "time its calls may still take after that"},
		{name: "http.addr", flag: "http-addr", value: text(&c.HTTP.Addr, "host:port"),
			usage: "where HTTP is answered (/v1/check, /json, /healthcheck)"},
		{name: "http.headers", flag: "http-headers",
			value: choice(&c.HTTP.Headers, HeadersStandard, HeadersLegacy),
			usage: "rate limit headers of HTTP answers: standard, or legacy for X-RateLimit-* too"},
		{name: "http.documentation_url", flag: "http-documentation-url",
			value: text(&c.HTTP.DocumentationURL, "url"),
			usage: "page about the limits, named in the body of a denial"},
		{name: "http.rate_limit_api", value: mapping(&c.HTTP.RateLimitAPI),
			usage: "what /api/v1/rate_limit makes of its parameters"},
		{name: "admin.addr", flag: "admin-addr", value: text(&c.Admin.Addr, "host:port"),
			usage: "where metrics, health and pprof are served"},
		{name: "insecure", flag: "insecure", value: boolean(&c.Insecure),
			usage: "let listeners and streams off loopback do without TLS"},
	}
}

func limitFields(c *Config) []field {
	return []field{
		{name: "limits.path", flag: "limits", value: path(&c.Limits.Path, "the embedded examples"),
			usage: "file or folder of limits; the embedded examples without it"},
		{name: "limits.names", flag: "limits-names",
			value: choice(&c.Limits.Names, NamesYAML, NamesVisible, NamesAll),
			usage: "files of that folder that count: yaml, visible (any but dotfiles) or all"},
		{name: "limits.poll", flag: "limits-poll", value: duration(&c.Limits.Poll),
			usage: "time between two looks at the limits"},
		{name: "limits.merge_domains", flag: "merge-domains", value: boolean(&c.Limits.MergeDomains),
			usage: "let several files hold rules of one domain"},
		{name: "limits.charge_denied", flag: "charge-denied", value: boolean(&c.Limits.ChargeDenied),
			usage: "charge refused hits too, as envoyproxy/ratelimit does"},
		{name: "limits.near_limit_ratio", flag: "near-limit-ratio", value: ratio(&c.Limits.NearRatio),
			usage: "share of a limit from which on metrics count hits as near it"},
	}
}

func answerFields(c *Config) []field {
	return []field{
		{name: "shadow", flag: "shadow", value: boolean(&c.Shadow),
			usage: "pass every call and only report what would have been refused"},
		{name: "quota_all", flag: "quota-all", value: boolean(&c.QuotaAll),
			usage: "take every descriptor for a quota: refuse a call only when all are over"},
		{name: "rls.headers", flag: "rls-headers", value: boolean(&c.RLS.Headers),
			usage: "return rate limit headers to Envoy"},
		{name: "rls.limit_header", flag: "rls-limit-header", value: text(&c.RLS.LimitHeader, "name"),
			usage: "name of the header with the limit"},
		{name: "rls.remaining_header", flag: "rls-remaining-header",
			value: text(&c.RLS.RemainingHeader, "name"),
			usage: "name of the header with what remains"},
		{name: "rls.reset_header", flag: "rls-reset-header", value: text(&c.RLS.ResetHeader, "name"),
			usage: "name of the header with the seconds to the reset"},
		{name: "rls.dynamic_metadata", flag: "rls-dynamic-metadata",
			value: boolean(&c.RLS.DynamicMetadata),
			usage: "return the request and its rules' metadata to Envoy"},
	}
}

// ofCluster begins the names of the settings that mean nothing to a daemon
// alone.
var ofCluster = []string{"name", "peer.", "swim.", "regions", "gossip.", "rights.", "strict.", "hot_key."}

func clusterFields(c *Config) []field {
	const otherwise = "what is listened on"
	return append([]field{
		{name: "region", flag: "region", value: given(&c.Region, "name", "a daemon alone"),
			usage: "region the daemon lives in; without one it is alone"},
		{name: "name", flag: "name", value: given(&c.Name, "name", "the name of the host"),
			usage: "name of the daemon; that of the host without it"},
		{name: "cluster.secret_file", flag: "cluster-secret-file",
			value: path(&c.Cluster.SecretFile, "a random secret"),
			usage: "file with the secret of the cluster, which keys are hashed with; random without it"},
		{name: "peer.addr", flag: "peer-addr", value: text(&c.Peer.Addr, "host:port"),
			usage: "where the streams of other daemons are answered"},
		{name: "peer.advertise", flag: "peer-advertise", value: given(&c.Peer.Advertise, "host:port", otherwise),
			usage: "address that other daemons dial for that"},
		{name: "peer.tls.cert", flag: "peer-tls-cert", value: path(&c.Peer.TLS.Cert, "plain streams"),
			usage: "PEM file with the certificate of the streams"},
		{name: "peer.tls.key", flag: "peer-tls-key", value: path(&c.Peer.TLS.Key, "plain streams"),
			usage: "PEM file with its private key"},
		{name: "peer.tls.ca", flag: "peer-tls-ca", value: path(&c.Peer.TLS.CA, "plain streams"),
			usage: "PEM file with the authority that other daemons' certificates are signed by"},
		{name: "swim.addr", flag: "swim-addr", value: text(&c.Swim.Addr, "host:port"),
			usage: "where the daemons of the region find each other, UDP and TCP"},
		{name: "swim.advertise", flag: "swim-advertise", value: given(&c.Swim.Advertise, "host:port", otherwise),
			usage: "address that other daemons use for that"},
		{name: "swim.seeds", flag: "swim-seeds", value: addresses(&c.Swim.Seeds),
			usage: "daemons of the region to join, separated by commas; a DNS name stands for all its addresses"},
		{name: "swim.rejoin", flag: "swim-rejoin", value: duration(&c.Swim.Rejoin),
			usage: "time between two tries to reach seeds and members that were lost"},
		{name: "swim.keys_file", flag: "swim-keys-file",
			value: path(&c.Swim.KeysFile, "a key made from the cluster's secret"),
			usage: "file with the keys of the membership, in base64, one a line; the first encrypts"},
		{name: "regions", value: regionMap(&c.Regions),
			usage: "regions of the cluster, each with peers and weight"},
		{name: "gossip.interval", flag: "gossip-interval", value: duration(&c.Gossip.Interval),
			usage: "time between two messages to a daemon of the region"},
		{name: "gossip.wan_interval", flag: "gossip-wan-interval", value: duration(&c.Gossip.WANInterval),
			usage: "time between two messages to a daemon of another region"},
		{name: "gossip.quiet", flag: "gossip-quiet", value: duration(&c.Gossip.Quiet),
			usage: "how long counts far from their limits may wait; 0 for no longer than the interval"},
		{name: "gossip.ready_within", flag: "gossip-ready-within", value: duration(&c.Gossip.ReadyWithin),
			usage: "how long a new daemon waits at most to hear the others of its region"},
	}, slices.Concat(rightsFields(c), strictFields(c))...)
}

func rightsFields(c *Config) []field {
	return []field{
		{name: "rights.dir", flag: "rights-dir", value: path(&c.Rights.Dir, "no rules with rights"),
			usage: "folder for what a daemon promised of its rights, which must outlive restarts"},
		{name: "rights.first_start", flag: "rights-first-start", value: boolean(&c.Rights.FirstStart),
			usage: "say once that no daemon of this name was ever in the cluster; leave it out from then on"},
		{name: "rights.daemons", flag: "rights-daemons", value: names(&c.Rights.Daemons),
			usage: "names of the daemons that the region began with, the same at each of them"},
		{name: "rights.daemon_horizon", flag: "rights-daemon-horizon", value: horizon(&c.Rights.DaemonHorizon),
			usage: "time after which the others share out what a dead daemon of the region held; off for never"},
		{name: "rights.region_horizon", flag: "rights-region-horizon", value: horizon(&c.Rights.RegionHorizon),
			usage: "the same for a region: off, for a region that is cut off keeps its share"},
		{name: "rights.period", flag: "rights-period", value: duration(&c.Rights.Period),
			usage: "time between two looks at whether regions' shares should follow demand"},
	}
}

func strictFields(c *Config) []field {
	s := &c.Strict
	return []field{
		{name: "strict.replicas", flag: "strict-replicas", value: names(&s.Replicas),
			usage: "daemons of the region that hold what homes have used; the first three of rights.daemons without it"},
		{name: "strict.headroom", flag: "strict-headroom", value: whole(&s.Headroom),
			usage: "hits of a key that a home has them hold ahead, and that a takeover may lose"},
		{name: "strict.prefetch", flag: "strict-prefetch", value: whole(&s.Prefetch),
			usage: "rights that a daemon keeps to a key it is asked for now and then, where few are used up; 0 for none"},
		{name: "strict.forward_timeout", flag: "strict-forward-timeout", value: duration(&s.ForwardTimeout),
			usage: "how long a call waits for a home of its region"},
		{name: "strict.forward_margin", flag: "strict-forward-margin", value: duration(&s.ForwardMargin),
			usage: "how long beyond the round trip a call waits for a home of another region"},
		{name: "strict.breaker.errors", flag: "strict-breaker-errors", value: ratio(&s.Breaker.Errors),
			usage: "share of failed asks from which on a home is not asked any more"},
		{name: "strict.breaker.window", flag: "strict-breaker-window", value: duration(&s.Breaker.Window),
			usage: "time that this share is taken over"},
		{name: "strict.breaker.calls", flag: "strict-breaker-calls", value: whole(&s.Breaker.Calls),
			usage: "asks in that time below which nothing follows from it"},
		{name: "strict.breaker.open", flag: "strict-breaker-open", value: duration(&s.Breaker.Open),
			usage: "time after which one ask tries whether the home answers again"},
		{name: "hot_key.threshold", flag: "hot-key-threshold", value: whole(&c.HotKey.Threshold),
			usage: "hits a second from which on a key is hot: larger grants, counts told at once; 0 for never"},
	}
}

func processFields(c *Config) []field {
	return []field{
		{name: "max_keys", flag: "max-keys", value: whole(&c.MaxKeys),
			usage: "live keys that are tracked; new ones beyond it share overflow counters"},
		{name: "shards", flag: "shards", value: whole(&c.Shards),
			usage: "parts the keys are split into, a power of two up to 64; 0 picks by max_keys"},
		{name: "clock.max_offset", flag: "clock-max-offset", value: duration(&c.Clock.MaxOffset),
			usage: "how far ahead another daemon's clock may be"},
		{name: "log.level", flag: "log-level",
			value: choice(&c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError),
			usage: "least severe level that is logged: debug, info, warn or error"},
		{name: "log.format", flag: "log-format", value: choice(&c.Log.Format, FormatText, FormatJSON),
			usage: "form of a log line: text or json"},
		{name: "drain", flag: "drain", value: duration(&c.Drain),
			usage: "how long a stopping daemon waits for calls in flight"},
	}
}
