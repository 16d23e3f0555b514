package config

import (
	"slices"
	"strings"
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
	for i := range table {
		f := &table[i]
		out[i] = Field{Name: f.name, Flag: f.flag, Env: f.env(), Group: f.group, Usage: f.usage, Kind: f.kind, Default: f.get()}
	}
	return out
}

// field is one setting bound to a Config. The flag follows from the name unless
// it is given: grpc.addr is --grpc-addr. Maps have none.
type field struct {
	name, flag, usage string
	group             string
	value
}

// env returns the variable of a flag: --grpc-addr is RLD_GRPC_ADDR.
func (f *field) env() string {
	if f.flag == "" {
		return ""
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.flag, "-", "_"))
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
			f.group = g.name
			if f.flag == "" && f.kind != "map" {
				f.flag = flagOf.Replace(f.name)
			}
			out = append(out, f)
		}
	}
	return out
}

func listenerFields(c *Config) []field {
	return []field{
		{
			name: "grpc.addr", value: text(&c.GRPC.Addr, "host:port"),
			usage: "listening address of gRPC (Envoy RLS, native API, health); port 0 takes a free one",
		},
		{
			name: "grpc.uds", value: path(&c.GRPC.UDS, "no unix socket"),
			usage: "path of a unix socket to serve gRPC on as well",
		},
		{
			name: "grpc.max_connection_age", value: duration(&c.GRPC.MaxConnectionAge),
			usage: "age at which a gRPC connection is closed gracefully, 1s or more; 0 disables this",
		},
		{
			name: "grpc.max_connection_age_grace", value: duration(&c.GRPC.MaxConnectionAgeGrace),
			usage: "time for the calls of such a connection to end, 1s or more",
		},
		{
			name: "http.addr", value: text(&c.HTTP.Addr, "host:port"),
			usage: "listening address of HTTP (/v1/check, /json, /healthcheck); port 0 takes a free one",
		},
		{
			name: "http.headers", value: choice(&c.HTTP.Headers, HeadersStandard, HeadersLegacy),
			usage: "rate limit headers of HTTP responses: standard, or legacy for X-RateLimit-* too",
		},
		{
			name: "http.documentation_url", value: text(&c.HTTP.DocumentationURL, "url"),
			usage: "URL of a page about the limits, for the body of a denial",
		},
		{
			name: "http.rate_limit_api", value: mapping(&c.HTTP.RateLimitAPI),
			usage: "how the parameters of /api/v1/rate_limit become descriptors",
		},
		{
			name: "admin.addr", value: text(&c.Admin.Addr, "host:port"),
			usage: "listening address of metrics, health and pprof; port 0 takes a free one",
		},
		{
			name: "insecure", value: boolean(&c.Insecure),
			usage: "allow listeners and streams without TLS on other addresses than loopback",
		},
	}
}

func limitFields(c *Config) []field {
	return []field{
		{
			name: "limits.path", flag: "limits", value: path(&c.Limits.Path, "the embedded examples"),
			usage: "file or folder of limits; the embedded examples without it",
		},
		{
			name: "limits.names", value: choice(&c.Limits.Names, NamesYAML, NamesVisible, NamesAll),
			usage: "files of that folder to read: yaml, visible (all but dotfiles) or all",
		},
		{
			name: "limits.poll", value: duration(&c.Limits.Poll),
			usage: "time between two checks of the limits for changes, 100ms to 1h",
		},
		{
			name: "limits.merge_domains", flag: "merge-domains", value: boolean(&c.Limits.MergeDomains),
			usage: "allow rules of one domain in several files",
		},
		{
			name: "limits.charge_denied", flag: "charge-denied", value: boolean(&c.Limits.ChargeDenied),
			usage: "charge denied hits too, as envoyproxy/ratelimit does",
		},
		{
			name: "limits.near_limit_ratio", flag: "near-limit-ratio", value: ratio(&c.Limits.NearRatio),
			usage: "part of a limit above which metrics count hits as near the limit, up to 1",
		},
	}
}

func answerFields(c *Config) []field {
	return []field{
		{
			name: "shadow", value: boolean(&c.Shadow),
			usage: "admit every call and only report denials",
		},
		{
			name: "quota_all", value: boolean(&c.QuotaAll),
			usage: "treat every descriptor as a quota: deny a call only when all of them are over their limit",
		},
		{
			name: "rls.headers", value: boolean(&c.RLS.Headers),
			usage: "return rate limit headers to Envoy",
		},
		{
			name: "rls.limit_header", value: text(&c.RLS.LimitHeader, "name"),
			usage: "name of the header with the limit",
		},
		{
			name: "rls.remaining_header", value: text(&c.RLS.RemainingHeader, "name"),
			usage: "name of the header with the remaining hits",
		},
		{
			name: "rls.reset_header", value: text(&c.RLS.ResetHeader, "name"),
			usage: "name of the header with the seconds until the reset",
		},
		{
			name: "rls.dynamic_metadata", value: boolean(&c.RLS.DynamicMetadata),
			usage: "return the request and the metadata of its rules to Envoy",
		},
	}
}

// ofCluster holds the names, or their beginnings, of the settings without
// effect for a daemon alone.
var ofCluster = []string{"name", "peer.", "swim.", "regions", "gossip.", "rights.", "strict.", "hot_key."}

func clusterFields(c *Config) []field {
	const otherwise = "the listening address"
	return append([]field{
		{
			name: "region", value: given(&c.Region, "name", "a daemon alone"),
			usage: "region of the daemon; a daemon without one is alone",
		},
		{
			name: "name", value: given(&c.Name, "name", "the name of the host"),
			usage: "name of the daemon, unique in the cluster; the host name without it",
		},
		{
			name: "cluster.secret_file", value: path(&c.Cluster.SecretFile, "a random secret"),
			usage: "file with the secret of the cluster, which hashes keys; random without it",
		},
		{
			name: "peer.addr", value: text(&c.Peer.Addr, "host:port"),
			usage: "listening address of the streams between daemons; port 0 takes a free one",
		},
		{
			name: "peer.advertise", value: given(&c.Peer.Advertise, "host:port", otherwise),
			usage: "address of these streams for other daemons",
		},
		{
			name: "peer.tls.cert", value: path(&c.Peer.TLS.Cert, "plain streams"),
			usage: "PEM file with the certificate of the streams",
		},
		{
			name: "peer.tls.key", value: path(&c.Peer.TLS.Key, "plain streams"),
			usage: "PEM file with its private key",
		},
		{
			name: "peer.tls.ca", value: path(&c.Peer.TLS.CA, "plain streams"),
			usage: "PEM file with the authority that signs the certificates of all daemons",
		},
		{
			name: "swim.addr", value: text(&c.Swim.Addr, "host:port"),
			usage: "listening address of the region's membership, UDP and TCP; port 0 takes a free one",
		},
		{
			name: "swim.advertise", value: given(&c.Swim.Advertise, "host:port", otherwise),
			usage: "address of the membership for other daemons",
		},
		{
			name: "swim.seeds", value: addresses(&c.Swim.Seeds),
			usage: "daemons of the region to join, separated by commas, at most 256; a DNS name means all its addresses",
		},
		{
			name: "swim.rejoin", value: duration(&c.Swim.Rejoin),
			usage: "time between two attempts to reach lost seeds and members, 100ms to 10m",
		},
		{
			name: "swim.keys_file", value: path(&c.Swim.KeysFile, "a key made from the cluster's secret"),
			usage: "file with the keys of the membership, in base64, one a line; the first encrypts",
		},
		{
			name: "regions", value: regionMap(&c.Regions),
			usage: "regions of the cluster, each with peers and weight, at most 64",
		},
		{
			name: "gossip.interval", value: duration(&c.Gossip.Interval),
			usage: "time between two messages to a daemon of the region, 10ms to 10s",
		},
		{
			name: "gossip.wan_interval", value: duration(&c.Gossip.WANInterval),
			usage: "time between two messages to a daemon of another region, 10ms to 1m",
		},
		{
			name: "gossip.quiet", value: duration(&c.Gossip.Quiet),
			usage: "how long counts far from their limits may wait, up to 1m; 0 for no longer than the interval",
		},
		{
			name: "gossip.ready_within", value: duration(&c.Gossip.ReadyWithin),
			usage: "how long a new daemon waits for the others of its region before it is ready, 1ms to 1m",
		},
	}, slices.Concat(rightsFields(c), strictFields(c))...)
}

func rightsFields(c *Config) []field {
	return []field{
		{
			name: "rights.dir", value: path(&c.Rights.Dir, "no rules with rights"),
			usage: "folder for the daemon's durable state of rights, which must outlive restarts",
		},
		{
			name: "rights.first_start", value: boolean(&c.Rights.FirstStart),
			usage: "declare once that no daemon of this name was ever in the cluster; leave it out afterwards",
		},
		{
			name: "rights.daemons", value: names(&c.Rights.Daemons),
			usage: "names of the first daemons of the region, the same at each of them, at most 256",
		},
		{
			name: "rights.daemon_horizon", value: horizon(&c.Rights.DaemonHorizon),
			usage: "time after which others take over the rights of an unreachable daemon, 5s to 1h, or off",
		},
		{
			name: "rights.region_horizon", value: horizon(&c.Rights.RegionHorizon),
			usage: "the same for a region: only off, since an unreachable region keeps its share",
		},
		{
			name: "rights.period", value: duration(&c.Rights.Period),
			usage: "time between two adjustments of the regions' shares to demand, 5s to 10m",
		},
	}
}

func strictFields(c *Config) []field {
	s := &c.Strict
	return []field{
		{
			name: "strict.replicas", value: names(&s.Replicas),
			usage: "strict voters of the region, which store the consumption of strict keys; the first three of rights.daemons without it",
		},
		{
			name: "strict.headroom", value: whole(&s.Headroom),
			usage: "hits of a key that the voters store in advance, 1 to 10000; a failover may lose as many",
		},
		{
			name: "strict.prefetch", value: whole(&s.Prefetch),
			usage: "hits to lease ahead per strict key, up to 1000; 0 disables this",
		},
		{
			name: "strict.forward_timeout", value: duration(&s.ForwardTimeout),
			usage: "how long a call waits for an owner in its region, 5ms to 5s",
		},
		{
			name: "strict.forward_margin", value: duration(&s.ForwardMargin),
			usage: "how long beyond the round trip a call waits for an owner in another region, 5ms to 5s",
		},
		{
			name: "strict.breaker.errors", value: ratio(&s.Breaker.Errors),
			usage: "part of failed lease requests that opens the circuit breaker of an owner, up to 1",
		},
		{
			name: "strict.breaker.window", value: duration(&s.Breaker.Window),
			usage: "time over which the circuit breaker counts, 1s to 10m",
		},
		{
			name: "strict.breaker.calls", value: whole(&s.Breaker.Calls),
			usage: "lease requests in that time below which the circuit breaker stays closed, 1 to 1000000",
		},
		{
			name: "strict.breaker.open", value: duration(&s.Breaker.Open),
			usage: "time until an open circuit breaker tries one request, 1s to 1h",
		},
		{
			name: "hot_key.threshold", value: whole(&c.HotKey.Threshold),
			usage: "hits a second that make a key hot: larger leases, counts sent at once; 0 disables this",
		},
	}
}

func processFields(c *Config) []field {
	return []field{
		{
			name: "max_keys", value: whole(&c.MaxKeys),
			usage: "live keys that are tracked, 1 to 100000000; further ones share overflow counters",
		},
		{
			name: "shards", value: whole(&c.Shards),
			usage: "parts of the keys, each with its own lock, a power of two up to 64; 0 derives it from max_keys",
		},
		{
			name: "clock.max_offset", value: duration(&c.Clock.MaxOffset),
			usage: "how far ahead the clock of another daemon may be, 1ms to 10s",
		},
		{
			name: "log.level", value: choice(&c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError),
			usage: "lowest severity to log: debug, info, warn or error",
		},
		{
			name: "log.format", value: choice(&c.Log.Format, FormatText, FormatJSON),
			usage: "format of a log line: text or json",
		},
		{
			name: "drain", value: duration(&c.Drain),
			usage: "how long a stopping daemon waits for running calls, up to 10m",
		},
	}
}
