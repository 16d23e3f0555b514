package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/georld/rld/gateway"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/web"
)

// Printed settings load as the same settings, in YAML and JSON, in full or in
// short, with origins or without.
func TestPrintedSettingsLoad(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		if err := c.Validate(); err != nil {
			t.Fatalf("drew settings that are not valid: %v", err)
		}
		o := PrintOptions{Effective: rapid.Bool().Draw(t, "effective"), JSON: rapid.Bool().Draw(t, "json")}
		if !o.JSON {
			o.Origins = rapid.Bool().Draw(t, "origins")
		}
		from := Origin(rapid.String().Draw(t, "origin"))
		l := &Loaded{Config: c, origins: map[string]Origin{"max_keys": from, "regions": from}}
		printed, err := l.Print(o)
		if err != nil {
			t.Fatal(err)
		}
		if o.JSON && !json.Valid([]byte(printed)) {
			t.Fatalf("no JSON:\n%s", printed)
		}
		path := filepath.Join(dir, "rld.yaml")
		if err := os.WriteFile(path, []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Load(Sources{File: path})
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if diff := cmp.Diff(c, again.Config); diff != "" {
			t.Fatalf("(-printed +loaded)\n%s\n%s", diff, printed)
		}
	})
}

// drawConfig returns valid settings, each at its default or any other value.
func drawConfig(t *rapid.T) Config {
	c := Default()
	d := drawer{t}
	c.GRPC.Addr = d.addr("grpc", c.GRPC.Addr)
	c.GRPC.UDS = d.text("uds")
	c.GRPC.MaxConnectionAge = d.duration("age", 0, time.Second, 1000*time.Hour)
	c.GRPC.MaxConnectionAgeGrace = d.duration("grace", c.GRPC.MaxConnectionAgeGrace, time.Second, 1000*time.Hour)
	c.HTTP.Headers = rapid.SampledFrom([]HeaderStyle{HeadersDraft, HeadersLegacy}).Draw(t, "headers")
	if d.other("mapping") {
		c.HTTP.RateLimitAPI = web.Mapping{Domain: d.text("domain") + "x", Descriptors: [][]web.MappedEntry{
			{{Param: "p" + d.text("param"), Key: d.text("key")}, {
				Param: "q", Fallback: "f" + d.text("fallback"),
				FallbackKey: d.text("fallback_key"),
			}},
			{{Param: "r"}},
		}}
	}
	if d.other("gateways") {
		e := gateway.Entry{Key: "k" + d.text("key"), Source: gateway.Source{Constant: "x" + d.text("constant")}}
		e.WhenMissing.Constant = d.text("missing")
		c.Gateways = map[string]gateway.Settings{"edge": {
			Domain: "d" + d.text("domain"), Descriptors: [][]gateway.Entry{{e}}, Answers: gateway.Answers{DenyStatus: 403},
		}}
	}
	c.GRPC.Insecure, c.HTTP.Insecure, c.Admin.Insecure = d.other("grpc"), d.other("http"), d.other("admin")
	c.GRPC.UDSMode = rapid.SampledFrom([]fs.FileMode{0o600, 0o660, 0o777}).Draw(t, "mode")
	if d.other("tls") {
		c.HTTP.TLS = ServerTLS{"c" + d.text("cert"), "k" + d.text("key"), "ca" + d.text("ca"), d.text("san")}
	}
	c.Auth.TokensFile = d.text("tokens")
	c.Limits.Path = d.text("limits")
	c.Limits.Names = rapid.SampledFrom([]Names{NamesYAML, NamesVisible, NamesAll}).Draw(t, "names")
	c.Limits.Poll = d.duration("poll", c.Limits.Poll, 100*time.Millisecond, time.Hour)
	c.Limits.NearRatio = rules.PPM(rapid.IntRange(1, 1_000_000).Draw(t, "near"))
	c.MaxKeys = rapid.IntRange(1, 100_000_000).Draw(t, "max_keys")
	c.Shards = 1 << rapid.IntRange(0, 6).Draw(t, "shards")
	c.Shadow, c.QuotaAll, c.RLS.Headers = d.other("shadow"), d.other("quota"), d.other("rls")
	c.RLS.ResetHeader = rapid.StringMatching("[!#$%&'*+.^_`|~A-Za-z0-9-]{1,20}").Draw(t, "reset") + "-R"
	c.Log.Level = rapid.SampledFrom([]LogLevel{LevelDebug, LevelInfo, LevelWarn, LevelError}).Draw(t, "level")
	c.Shutdown.Delay = d.duration("delay", c.Shutdown.Delay, 0, 10*time.Minute)
	c.Drain = d.duration("drain", c.Drain, 0, 10*time.Minute)
	c.Cluster.SecretFile = d.text("secret")
	if d.other("region") {
		d.cluster(&c)
	}
	return c
}

type drawer struct{ t *rapid.T }

func (d drawer) other(name string) bool { return rapid.Bool().Draw(d.t, name) }

// text is "" or anything without the one byte that no path holds.
func (d drawer) text(name string) string {
	if !d.other(name) {
		return ""
	}
	odd := []string{
		"null", "~", "true", "no", "012", "1e3", "- a", "a: b", "# c", "\u2028\x7f\u0085\ufeff", "\xf0\x9f\xa6\x86", "\U000e0001",
		" ", "\n", `"`, "'", "\\", "{}", "[", "&a", "*a", "!!str", "%", "@", "`", "|", "a\tb", "\r\n", "\x01", "\ufffe", ".",
	}
	s := rapid.OneOf(rapid.SampledFrom(odd), rapid.StringN(1, 20, 60)).Draw(d.t, name)
	return strings.ReplaceAll(s, "\x00", "")
}

func (d drawer) duration(name string, usual, least, most time.Duration) time.Duration {
	if !d.other(name) {
		return usual
	}
	return time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(d.t, name))
}

func (d drawer) addr(name, usual string) string {
	if !d.other(name) {
		return usual
	}
	return d.host(name) + ":0"
}

func (d drawer) host(name string) string {
	return rapid.SampledFrom([]string{"127.0.0.1", "[::1]", "localhost", "127.1.2.3"}).Draw(d.t, name)
}

func (d drawer) name(name string) string {
	return rapid.OneOf(rapid.StringMatching("[A-Za-z0-9][A-Za-z0-9._-]{0,62}"),
		rapid.SampledFrom([]string{"no", "null", "1", "0x1", "1e3", "true", "y", "2024-01-01"})).Draw(d.t, name)
}

func (d drawer) addrs(name string, port int) []string {
	var out []string
	for i := range rapid.IntRange(0, 3).Draw(d.t, name) {
		out = append(out, fmt.Sprintf("%s:%d", d.host(name), port+i))
	}
	return out
}

func (d drawer) cluster(c *Config) {
	c.Region = d.name("region")
	if d.other("name") {
		c.Name = d.name("name")
	}
	c.Cluster.SecretFile = d.text("secret") + "s"
	c.Peer.Addr, c.Swim.Addr = d.addr("peer", c.Peer.Addr), d.addr("swim", c.Swim.Addr)
	if d.other("advertise") {
		c.Peer.Advertise, c.Swim.Advertise = d.host("peer")+":1", d.host("swim")+":2"
	}
	if d.other("tls") {
		c.Peer.TLS = TLS{"c" + d.text("cert"), "k" + d.text("key"), "a" + d.text("ca")}
	}
	c.Swim.Seeds = d.addrs("seeds", 7946)
	c.Swim.Rejoin = d.duration("rejoin", c.Swim.Rejoin, 100*time.Millisecond, 10*time.Minute)
	c.Swim.KeysFile = d.text("keys")
	c.Gossip.Interval = d.duration("interval", c.Gossip.Interval, 10*time.Millisecond, 10*time.Second)
	c.Gossip.WANInterval = d.duration("wan", c.Gossip.WANInterval, 10*time.Millisecond, time.Minute)
	c.Gossip.Quiet = d.duration("quiet", 0, 0, time.Minute)
	c.Gossip.ReadyWithin = d.duration("ready", c.Gossip.ReadyWithin, time.Millisecond, time.Minute)
	if d.other("rights") {
		d.rights(c)
	}
	d.strict(c)
	other := d.name("other")
	if other == c.Region {
		other += "x"
		other = other[len(other)-min(len(other), maxName):]
	}
	if !alphanumeric(other[0]) || other == c.Region {
		return
	}
	c.Regions = []Region{{other, d.addrs("peers", 8000), []string{"10.2.0.0/16", "fd00:2::/32"}}, {c.Region, d.addrs("own", 9000), nil}}
}

func (d drawer) rights(c *Config) {
	r := &c.Rights
	c.State.Dir = d.text("state") + "s"
	c.Strict.Replicas = []string{d.name("daemon")}
	if other := d.name("daemon"); other != c.Strict.Replicas[0] {
		c.Strict.Replicas = append(c.Strict.Replicas, other)
	}
	c.Cluster.Founders = c.Strict.Replicas
	r.DaemonHorizon = d.duration("horizon", 0, 5*time.Second, time.Hour)
	r.Period = d.duration("period", r.Period, 5*time.Second, 10*time.Minute)
}

func (d drawer) strict(c *Config) {
	s := &c.Strict
	s.Headroom = rapid.IntRange(1, 10_000).Draw(d.t, "headroom")
	s.Prefetch = rapid.IntRange(0, 1_000).Draw(d.t, "prefetch")
	s.ForwardTimeout = d.duration("forward", s.ForwardTimeout, 5*time.Millisecond, 5*time.Second)
	s.ForwardMargin = d.duration("margin", s.ForwardMargin, 5*time.Millisecond, 5*time.Second)
	s.Breaker.Errors = rules.PPM(rapid.IntRange(1, 1_000_000).Draw(d.t, "errors"))
	s.Breaker.Window = d.duration("window", s.Breaker.Window, time.Second, 10*time.Minute)
	s.Breaker.Calls = rapid.IntRange(1, 1_000_000).Draw(d.t, "calls")
	s.Breaker.Open = d.duration("open", s.Breaker.Open, time.Second, time.Hour)
	c.HotKey.Threshold = rapid.IntRange(0, 1_000_000_000).Draw(d.t, "hot")
}

func TestPrintRefusesWhatIsNotUTF8(t *testing.T) {
	c := Default()
	c.Limits.Path = "a\xff"
	for _, o := range []PrintOptions{{}, {JSON: true, Origins: true}} {
		got, err := (&Loaded{Config: c}).Print(o)
		if err == nil || got != "" || err.Error() != `limits.path: "a\xff" is not UTF-8, which a settings file must be` {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestPrintOfDefaults(t *testing.T) {
	l := &Loaded{Config: Default()}
	if got, err := l.Print(PrintOptions{}); got != "# every setting has its default\n" || err != nil {
		t.Errorf("YAML: got %q, %v", got, err)
	}
	if got, err := l.Print(PrintOptions{JSON: true}); got != "{}\n" || err != nil {
		t.Errorf("JSON: got %q, %v", got, err)
	}
}
