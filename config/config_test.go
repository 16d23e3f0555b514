package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultIsValid(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if got := c.Exposed(); got != nil {
		t.Errorf("exposed by default: %v", got)
	}
}

// Every value of Config must be settable by flag, environment and file, each by
// a name of its own, and printing a field must return its value.
func TestEveryValueIsAField(t *testing.T) {
	names, flags := make(map[string]bool), make(map[string]bool)
	for _, f := range Fields() {
		if names[f.Name] || f.Flag != "" && flags[f.Flag] {
			t.Errorf("%s (--%s) is there twice", f.Name, f.Flag)
		}
		names[f.Name], flags[f.Flag] = true, true
		if f.Usage == "" || f.Kind == "" {
			t.Errorf("%s has no usage or kind", f.Name)
		}
		if f.Flag != "" && f.Env != "RLD_"+strings.ToUpper(strings.ReplaceAll(f.Flag, "-", "_")) {
			t.Errorf("%s has the variable %s beside the flag --%s", f.Name, f.Env, f.Flag)
		}
	}
	if got, want := len(names), leaves(reflect.TypeFor[Config]()); got != want {
		t.Errorf("%d fields for %d values", got, want)
	}
}

func TestEveryFieldHasAValueOfItsOwn(t *testing.T) {
	other := map[string]string{
		"bool": "true", "mode": "0666", "duration": "42s", "int": "42", "ratio": "0.42", "host:port": "localhost:42",
		"host:port,...": "localhost:42,localhost:43", "name,...": "X42,X43", "key=value,...": "x=42,y=43",
		"path": "x42", "url": "https://x42", "name": "X42",
		"http.headers": "legacy", "limits.names": "all", "log.level": "error", "control.voter": "only", "log.format": "json",
	}
	for i, f := range Fields() {
		if f.Flag == "" {
			continue
		}
		text, ok := other[f.Name]
		if !ok {
			text, ok = other[f.Kind]
		}
		if !ok {
			t.Errorf("%s: no value to try for the kind %s", f.Name, f.Kind)
			continue
		}
		before, after := Default(), Default()
		field := fields(&after)[i]
		if err := field.set(text); err != nil {
			t.Errorf("%s: set %q: %v", f.Name, text, err)
		}
		if got := field.get(); got != text {
			t.Errorf("%s: set %q, got %q back", f.Name, text, got)
		}
		if n := differences(reflect.ValueOf(before), reflect.ValueOf(after)); n != 1 {
			t.Errorf("%s: setting it changed %d values:\n%s", f.Name, n, cmp.Diff(before, after))
		}
	}
}

// leaves counts the values in a struct of structs; the mapping is one, and so
// is a list.
func leaves(t reflect.Type) int {
	if t.Kind() != reflect.Struct || t.Name() == "Mapping" {
		return 1
	}
	n := 0
	for i := range t.NumField() {
		n += leaves(t.Field(i).Type)
	}
	return n
}

func differences(a, b reflect.Value) int {
	if a.Kind() != reflect.Struct || a.Type().Name() == "Mapping" {
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			return 0
		}
		return 1
	}
	n := 0
	for i := range a.NumField() {
		n += differences(a.Field(i), b.Field(i))
	}
	return n
}

// A Config made by hand never passed a parser, so Validate sees to words too.
func TestValidateNamesTheField(t *testing.T) {
	for _, tc := range []struct {
		field  string
		change func(c *Config)
	}{
		{"grpc.addr", func(c *Config) { c.GRPC.Addr = "8081" }},
		{"grpc.uds", func(c *Config) { c.GRPC.UDS = strings.Repeat("x", 108) }},
		{"grpc.max_connection_age", func(c *Config) { c.GRPC.MaxConnectionAge = time.Millisecond }},
		{"grpc.max_connection_age_grace", func(c *Config) { c.GRPC.MaxConnectionAgeGrace = 0 }},
		{"grpc.max_connections", func(c *Config) { c.GRPC.Max = 0 }},
		{"grpc.max_connections_per_source", func(c *Config) { c.GRPC.MaxPerSource = -1 }},
		{"grpc.max_cancelled_calls", func(c *Config) { c.GRPC.MaxCancelledCalls = 9 }},
		{"http.max_connections", func(c *Config) { c.HTTP.Max = 100_001 }},
		{"http.max_connections_per_source", func(c *Config) { c.HTTP.MaxPerSource = 0 }},
		{"http.addr", func(c *Config) { c.HTTP.Addr = "127.0.0.1:99999" }},
		{"http.headers", func(c *Config) { c.HTTP.Headers = "old" }},
		{"http.documentation_url", func(c *Config) { c.HTTP.DocumentationURL = "/limits" }},
		{"http.rate_limit_api", func(c *Config) { c.HTTP.RateLimitAPI.Domain = "" }},
		{"admin.addr", func(c *Config) { c.Admin.Addr = "10.0.0.1:6070" }},
		{"limits.names", func(c *Config) { c.Limits.Names = "json" }},
		{"limits.poll", func(c *Config) { c.Limits.Poll = 0 }},
		{"limits.near_limit_ratio", func(c *Config) { c.Limits.NearRatio = 0 }},
		{"max_keys", func(c *Config) { c.MaxKeys = 0 }},
		{"key_reserve", func(c *Config) { c.KeyReserve = 1_000_001 }},
		{"shards", func(c *Config) { c.Shards = 128 }},
		{"clock.max_offset", func(c *Config) { c.Clock.MaxOffset = time.Minute }},
		{"rls.limit_header", func(c *Config) { c.RLS.LimitHeader = "a b" }},
		{"rls.reset_header", func(c *Config) { c.RLS.ResetHeader = "ratelimit-limit" }},
		{"log.level", func(c *Config) { c.Log.Level = "loud" }},
		{"log.format", func(c *Config) { c.Log.Format = "" }},
		{"drain", func(c *Config) { c.Drain = -1 }},
		{"shutdown.delay", func(c *Config) { c.Shutdown.Delay = time.Hour }},
	} {
		c := Default()
		tc.change(&c)
		err := c.Validate()
		faults, ok := err.(Faults)
		if !ok || len(faults) != 1 || faults[0].Field != tc.field {
			t.Errorf("%s: got %v, want one fault of that field", tc.field, err)
		}
	}
}

func TestExposed(t *testing.T) {
	c := Default()
	c.GRPC.Addr, c.HTTP.Addr, c.Admin.Addr = "0.0.0.0:1", "[::1]:2", "gateway.example:3"
	want := []string{"grpc.addr 0.0.0.0:1", "admin.addr gateway.example:3"}
	if diff := cmp.Diff(want, c.Exposed()); diff != "" {
		t.Error(diff)
	}
	if err := c.Validate(); err == nil {
		t.Error("exposed listeners without insecure are valid")
	}
	c.GRPC.Insecure, c.Admin.Insecure = true, true
	if err := c.Validate(); err != nil {
		t.Errorf("with insecure: %v", err)
	}
}

// Without TLS the messages of daemons are in plain text, and without a key so
// is the membership. A daemon alone has neither.
func TestExposedToPeers(t *testing.T) {
	c := Default()
	c.Peer.Addr, c.Swim.Addr = "10.0.0.1:7070", "10.0.0.1:7946"
	if got := c.Exposed(); got != nil {
		t.Errorf("alone: %v", got)
	}
	c.Region = "r"
	if diff := cmp.Diff([]string{"peer.addr 10.0.0.1:7070", "swim.addr 10.0.0.1:7946"}, c.Exposed()); diff != "" {
		t.Error(diff)
	}
	c.Cluster.SecretFile, c.Peer.TLS = "secret", TLS{"cert", "key", "ca"}
	if got := c.Exposed(); got != nil {
		t.Errorf("encrypted: %v", got)
	}
}
