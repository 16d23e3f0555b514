package config

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Field describes one setting, for lists and command lines.
type Field struct {
	// Name is its name in the file, "grpc.addr".
	Name string
	// Flag is its flag without the dashes, "grpc-addr"; "" for a setting that
	// only a file can give.
	Flag string
	// Env is its environment variable, "RLD_GRPC_ADDR"; "" without a flag.
	Env string
	// Group is its heading in a list. Settings of one group are adjacent.
	Group string
	// Usage is one line about its effect with unit and range, Kind the kind of
	// its value.
	Usage, Kind string
	// Default is the value without any source.
	Default string
}

// Fields returns every setting in the order of the file.
func Fields() []Field {
	c := Default()
	table := fields(&c)
	out := make([]Field, len(table))
	for i, f := range table {
		out[i] = f.Field
		out[i].Default = f.get()
	}
	return out
}

// field is one setting bound to a Config, without its Default. The flag follows
// from the name unless it is given: grpc.addr is --grpc-addr. Maps have none.
type field struct {
	Field
	value
}

// set returns the setting of that name, which reads and writes v.
func set(name string, v value, usage string) field {
	return field{Field: Field{Name: name, Usage: usage, Kind: v.kind}, value: v}
}

// flagged returns f with a flag that does not follow from its name.
func (f field) flagged(flag string) field {
	f.Flag = flag
	return f
}

// fields binds every setting to c.
func fields(c *Config) []field {
	var out []field
	flagOf := strings.NewReplacer(".", "-", "_", "-")
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
			f.Group = g.name
			if f.Kind != "map" {
				f.Flag = cmp.Or(f.Flag, flagOf.Replace(f.Name))
				f.Env = envPrefix + strings.ToUpper(strings.ReplaceAll(f.Flag, "-", "_"))
			}
			out = append(out, f)
		}
	}
	return out
}

func listenerFields(c *Config) []field {
	g, h := &c.GRPC, &c.HTTP
	return slices.Concat(
		[]field{
			set("grpc.addr", text(&g.Addr, "host:port"),
				"listening address of gRPC (Envoy RLS, native API, health); port 0 takes a free one"),
		},
		callerFields("grpc", "gRPC", &g.Insecure, &g.UDS, &g.UDSMode, &g.TLS),
		[]field{
			set("grpc.max_connection_age", orZero(between(&g.MaxConnectionAge, time.Second, noBound)),
				"age at which a gRPC connection is closed gracefully, 1s or more; 0 disables this"),
			set("grpc.max_connection_age_grace", between(&g.MaxConnectionAgeGrace, time.Second, noBound),
				"time for the calls of such a connection to end, 1s or more"),
		},
		connectionFields("grpc", "gRPC", &g.Connections),
		[]field{
			set("grpc.max_cancelled_calls", number(&g.MaxCancelledCalls, 10, 1_000_000),
				"calls that a gRPC connection may cancel within 10ms of their start, in a second, 10 to 1000000"),
			set("grpc.reflection", boolean(&g.Reflection),
				"serve gRPC reflection, for grpcurl and other tools without the .proto files"),
			set("http.addr", text(&h.Addr, "host:port"),
				"listening address of HTTP (/v1/check, /json, /healthcheck); port 0 takes a free one"),
		},
		callerFields("http", "HTTP", &h.Insecure, &h.UDS, &h.UDSMode, &h.TLS),
		[]field{
			set("http.headers", choice(&h.Headers, HeadersDraft, HeadersLegacy),
				"rate limit headers of HTTP responses: draft, or legacy for X-RateLimit-* too"),
			set("http.documentation_url", text(&h.DocumentationURL, "url"),
				"URL of a page about the limits, for the body of a denial"),
			set("http.rate_limit_api", mapping(&h.RateLimitAPI),
				"how the parameters of /api/v1/rate_limit become descriptors"),
		},
		connectionFields("http", "HTTP", &h.Connections),
		[]field{
			set("gateways", gatewayMap(&c.Gateways),
				"how the requests of gateways at /v1/forward-auth/ become descriptors, by name"),
			set("admin.addr", text(&c.Admin.Addr, "host:port"),
				"listening address of metrics, health, status and commands; port 0 takes a free one"),
			set("admin.insecure", boolean(&c.Admin.Insecure),
				"allow admin.addr off loopback without tokens or certificates of operators"),
			set("admin.uds", path(&c.Admin.UDS, "admin.sock in state.dir, or in a new temporary folder"),
				"path of the unix socket for commands, of mode 0600"),
			set("admin.tokens_file", path(&c.Admin.TokensFile, "no tokens"),
				"file with the hashed tokens of operators, see rld token new --role"),
			set("admin.tls.cert_file", path(&c.Admin.TLS.CertFile, "plain text"),
				"PEM file with the certificate of admin.addr"),
			set("admin.tls.key_file", path(&c.Admin.TLS.KeyFile, "plain text"),
				"PEM file with its private key"),
			set("admin.tls.client_ca_file", path(&c.Admin.TLS.ClientCAFile, "no client certificates"),
				"PEM file with the authority that signs the certificates of operators"),
			set("admin.pprof", boolean(&c.Admin.Pprof),
				"serve profiles of the process at /debug/pprof/ of admin.addr"),
			set("probe.addr", given(&c.Probe.Addr, "host:port", "no such listener"),
				"listening address of /healthz, /readyz and /metrics alone, for everyone; port 0 takes a free one"),
			set("probe.metrics_path", text(&c.Probe.MetricsPath, "path"),
				"path of the metrics at probe.addr"),
			set("probe.upstream_metrics", boolean(&c.Probe.UpstreamMetrics),
				"serve metrics at probe.addr under the names of envoyproxy/ratelimit, too"),
			set("auth.tokens_file", path(&c.Auth.TokensFile, "callers without tokens"),
				"file with the hashed tokens of callers, see rld token new"),
		})
}

// callerFields returns the settings that protect a listener for callers.
func callerFields(name, protocol string, insecure *bool, uds *string, udsMode *fs.FileMode, tls *ServerTLS) []field {
	return []field{
		set(name+".insecure", boolean(insecure),
			"allow "+name+".addr off loopback without TLS and tokens"),
		set(name+".uds", path(uds, "no unix socket"),
			"path of a unix socket to serve "+protocol+" on as well, without TLS and tokens"),
		set(name+".uds_mode", mode(udsMode),
			"mode of that socket, which states its callers"),
		set(name+".tls.cert_file", path(&tls.CertFile, "plain text"),
			"PEM file with the certificate of "+name+".addr"),
		set(name+".tls.key_file", path(&tls.KeyFile, "plain text"),
			"PEM file with its private key"),
		set(name+".tls.client_ca_file", path(&tls.ClientCAFile, "no client certificates"),
			"PEM file with the authority that signs the certificates of callers"),
		set(name+".tls.client_san", given(&tls.ClientSAN, "name", "any certificate of the authority"),
			"DNS name or URI that these certificates must have"),
	}
}

// connectionFields returns the settings that bound the connections of a
// listener.
func connectionFields(name, protocol string, c *Connections) []field {
	return []field{
		set(name+".max_connections", number(&c.Max, 1, maxConnections),
			protocol+" connections, 1 to 100000; the limit of open files may allow fewer"),
		set(name+".max_connections_per_source", number(&c.MaxPerSource, 1, maxConnections),
			protocol+" connections of one IPv4 address or one /64 of IPv6 addresses, 1 to 100000"),
	}
}

func limitFields(c *Config) []field {
	return append([]field{
		set("limits.path", path(&c.Limits.Path, "the embedded examples"),
			"file or folder of limits; the embedded examples without it").flagged("limits"),
		set("limits.names", choice(&c.Limits.Names, NamesYAML, NamesVisible, NamesAll),
			"files of that folder to read: yaml, visible (all but dotfiles) or all"),
		set("limits.poll", between(&c.Limits.Poll, 100*time.Millisecond, time.Hour),
			"time between two checks of the limits for changes, 100ms to 1h"),
		set("limits.merge_domains", boolean(&c.Limits.MergeDomains),
			"allow rules of one domain in several files").flagged("merge-domains"),
		set("limits.charge_denied", boolean(&c.Limits.ChargeDenied),
			"charge denied hits too, as envoyproxy/ratelimit does").flagged("charge-denied"),
		set("limits.near_limit_ratio", ratio(&c.Limits.NearRatio),
			"part of a limit above which metrics count hits as near the limit, up to 1").flagged("near-limit-ratio"),
	}, xdsFields(&c.Limits.XDS)...)
}

func answerFields(c *Config) []field {
	return []field{
		set("shadow", boolean(&c.Shadow),
			"admit every call and only report denials"),
		set("quota_all", boolean(&c.QuotaAll),
			"treat every descriptor as a quota: deny a call only when all of them are over their limit"),
		set("rls.headers", boolean(&c.RLS.Headers),
			"return rate limit headers to Envoy"),
		set("rls.limit_header", text(&c.RLS.LimitHeader, "name"),
			"name of the header with the limit"),
		set("rls.remaining_header", text(&c.RLS.RemainingHeader, "name"),
			"name of the header with the remaining hits"),
		set("rls.reset_header", text(&c.RLS.ResetHeader, "name"),
			"name of the header with the seconds until the reset"),
		set("rls.dynamic_metadata", boolean(&c.RLS.DynamicMetadata),
			"return the request and the metadata of its rules to Envoy"),
		set("rls.negative_hits", boolean(&c.RLS.NegativeHits),
			"accept descriptors of Envoy that give hits back (is_negative_hits)"),
	}
}

// ofCluster holds the names, or their beginnings, of the settings without
// effect for a daemon alone.
var ofCluster = []string{"name", "peer.", "swim.", "regions", "gossip.", "cluster.founders", "state.", "control.", "rights.", "strict.", "hot_key."}

func clusterFields(c *Config) []field {
	const otherwise = "the listening address"
	return append([]field{
		set("region", given(&c.Region, "name", "a daemon alone"),
			"region of the daemon; a daemon without one is alone"),
		set("name", given(&c.Name, "name", "the name of the host"),
			"name of the daemon, unique in the cluster; the host name without it"),
		set("cluster.secret_file", path(&c.Cluster.SecretFile, "a random secret"),
			"file with the secret of the cluster, which hashes keys; random without it"),
		set("cluster.founders", names(&c.Cluster.Founders),
			"names of the daemons that found the cluster, 1 to 5 with a state.dir, the same in all settings"),
		set("peer.addr", text(&c.Peer.Addr, "host:port"),
			"listening address of the streams between daemons; port 0 takes a free one"),
		set("peer.advertise", given(&c.Peer.Advertise, "host:port", otherwise),
			"address of these streams for other daemons"),
		set("peer.tls.cert", path(&c.Peer.TLS.Cert, "plain streams"),
			"PEM file with the certificate of the streams"),
		set("peer.tls.key", path(&c.Peer.TLS.Key, "plain streams"),
			"PEM file with its private key"),
		set("peer.tls.ca", path(&c.Peer.TLS.CA, "plain streams"),
			"PEM file with the authority that signs the certificates of all daemons"),
		set("peer.insecure", boolean(&c.Peer.Insecure),
			"allow streams and membership in plain text off loopback"),
		set("swim.addr", text(&c.Swim.Addr, "host:port"),
			"listening address of the region's membership, UDP and TCP; port 0 takes a free one"),
		set("swim.advertise", given(&c.Swim.Advertise, "host:port", otherwise),
			"address of the membership for other daemons"),
		set("swim.seeds", addresses(&c.Swim.Seeds),
			"daemons of the region to join, separated by commas, at most 256; a DNS name means all its addresses"),
		set("swim.rejoin", between(&c.Swim.Rejoin, 100*time.Millisecond, 10*time.Minute),
			"time between two attempts to reach lost seeds and members, 100ms to 10m"),
		set("swim.keys_file", path(&c.Swim.KeysFile, "a key made from the cluster's secret"),
			"file with the keys of the membership, in base64, one a line; the first encrypts"),
		set("regions", regionMap(&c.Regions),
			"regions of the cluster, each with peers and weight, at most 64"),
		set("gossip.interval", between(&c.Gossip.Interval, 10*time.Millisecond, 10*time.Second),
			"time between two messages to a daemon of the region, 10ms to 10s"),
		set("gossip.wan_interval", between(&c.Gossip.WANInterval, 10*time.Millisecond, time.Minute),
			"time between two messages to a daemon of another region, 10ms to 1m"),
		set("gossip.quiet", between(&c.Gossip.Quiet, 0, time.Minute),
			"how long counts far from their limits may wait, up to 1m; 0 for no longer than the interval"),
		set("gossip.ready_within", between(&c.Gossip.ReadyWithin, time.Millisecond, time.Minute),
			"how long a new daemon waits for the others of its region before it is ready, 1ms to 1m"),
		set("state.dir", path(&c.State.Dir, "no rules with rights"),
			"folder for all that must outlive a restart: rights, strict keys and the control log"),
		set("state.diskless", boolean(&c.State.Diskless),
			"declare that the daemon has no such folder on purpose"),
		set("control.voter", choice(&c.Control.Voter, VoterAuto, VoterOnly),
			"only makes a witness: it votes in the control log and decides nothing, in a region of its own; else auto"),
	}, slices.Concat(rightsFields(c), strictFields(c))...)
}

func rightsFields(c *Config) []field {
	return []field{
		set("rights.daemon_horizon", horizon(&c.Rights.DaemonHorizon),
			"time after which others take over the rights of an unreachable daemon, 5s to 1h, or off"),
		set("rights.region_horizon", horizon(&c.Rights.RegionHorizon),
			"the same for a region: only off, since an unreachable region keeps its share"),
		set("rights.period", between(&c.Rights.Period, 5*time.Second, 10*time.Minute),
			"time between two adjustments of the regions' shares to demand, 5s to 10m"),
	}
}

func strictFields(c *Config) []field {
	s := &c.Strict
	return []field{
		set("strict.replicas", names(&s.Replicas),
			"durable daemons of the region, by whose number rules in files are placed: 1, 2, 3, 5, 7 or 9 names, the same at all of it"),
		set("strict.headroom", number(&s.Headroom, 1, 10_000),
			"hits of a key that the voters store in advance, 1 to 10000; a failover may lose as many"),
		set("strict.prefetch", number(&s.Prefetch, 0, 1_000),
			"hits to lease ahead per strict key, up to 1000; 0 disables this"),
		set("strict.forward_timeout", between(&s.ForwardTimeout, 5*time.Millisecond, 5*time.Second),
			"how long a call waits for an owner in its region, 5ms to 5s"),
		set("strict.forward_margin", between(&s.ForwardMargin, 5*time.Millisecond, 5*time.Second),
			"how long beyond the round trip a call waits for an owner in another region, 5ms to 5s"),
		set("strict.breaker.errors", ratio(&s.Breaker.Errors),
			"part of failed lease requests that opens the circuit breaker of an owner, up to 1"),
		set("strict.breaker.window", between(&s.Breaker.Window, time.Second, 10*time.Minute),
			"time over which the circuit breaker counts, 1s to 10m"),
		set("strict.breaker.calls", number(&s.Breaker.Calls, 1, 1_000_000),
			"lease requests in that time below which the circuit breaker stays closed, 1 to 1000000"),
		set("strict.breaker.open", between(&s.Breaker.Open, time.Second, time.Hour),
			"time until an open circuit breaker tries one request, 1s to 1h"),
		set("hot_key.threshold", number(&c.HotKey.Threshold, 0, 1_000_000_000),
			"hits a second that make a key hot: larger leases, counts sent at once; 0 disables this"),
	}
}

func processFields(c *Config) []field {
	return []field{
		set("max_keys", number(&c.MaxKeys, 1, 100_000_000),
			"live keys that are tracked, 1 to 100000000; further ones share overflow counters"),
		set("key_reserve", portion(&c.KeyReserve),
			"part of max_keys that is kept, in equal parts, for rules with few keys, 0 to 1; a rule with more has no room for new ones first"),
		set("shards", whole(&c.Shards),
			"parts of the keys, each with its own lock, a power of two up to 64; 0 derives it from max_keys"),
		set("clock.max_offset", between(&c.Clock.MaxOffset, time.Millisecond, 10*time.Second),
			"how far ahead the clock of another daemon may be, 1ms to 10s"),
		set("log.level", choice(&c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError),
			"lowest severity to log: debug, info, warn or error"),
		set("log.format", choice(&c.Log.Format, FormatText, FormatJSON),
			"format of a log line: text or json"),
		set("shutdown.delay", between(&c.Shutdown.Delay, 0, 10*time.Minute),
			"how long a stopping daemon goes on to serve although it is not ready, up to 10m"),
		set("drain", between(&c.Drain, 0, 10*time.Minute),
			"how long a stopping daemon waits for running calls, up to 10m"),
	}
}
