package config

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/georld/rld/config/upstream"
)

// The settings of envoyproxy/ratelimit, which reads them from the environment
// only. Those that apply without a store have the same effect here, so that a
// migration only changes the address, with three differences: listeners stay on
// loopback unless a host is given, a unix socket is served beside TCP and not
// instead of it, and settings that rld would implement less securely are
// rejected.

// upstreamLevels maps log levels with other names.
var upstreamLevels = map[string]string{
	"trace": "debug", "warning": "warn", "fatal": "error", "panic": "error",
}

// upstream applies the variables of envoyproxy/ratelimit. With ownPath a
// stronger source names the limits, so RUNTIME_* is ignored.
func (l *loader) upstream(env map[string]string, ownPath bool) {
	l.upstreamSame(env, upstream.Always)
	if v := env["LOG_LEVEL"]; v != "" {
		if ours, ok := upstreamLevels[strings.ToLower(v)]; ok {
			v = ours
		}
		l.set("log.level", v, fromEnv("LOG_LEVEL"))
	}
	l.upstreamAddr("http.addr", &l.cfg.HTTP.Addr, env, "HOST", "PORT")
	l.upstreamAddr("grpc.addr", &l.cfg.GRPC.Addr, env, "GRPC_HOST", "GRPC_PORT")
	l.upstreamAddr("admin.addr", &l.cfg.Admin.Addr, env, "DEBUG_HOST", "DEBUG_PORT")
	if xds := l.upstreamXDS(env); !xds && !ownPath {
		l.upstreamRuntime(env)
	}
	l.upstreamTLS(env)
}

// upstreamSame applies the variables of a group that have the same values as a
// setting.
func (l *loader) upstreamSame(env map[string]string, g upstream.Group) {
	for _, u := range upstream.Settings(g) {
		if v := env[u.Name]; v != "" {
			l.set(u.Setting, v, fromEnv(u.Name))
		}
	}
}

// UpstreamName is the name of the program of envoyproxy/ratelimit.
const UpstreamName = "ratelimit"

// asUpstream sets the defaults of envoyproxy/ratelimit for the listeners of
// callers. That of operators stays on loopback. That of the limits depends on
// other sources: see upstreamRuntime.
func (l *loader) asUpstream() {
	const by Origin = "name " + UpstreamName
	l.named = true
	l.set("http.addr", "0.0.0.0:8080", by)
	l.set("http.insecure", "true", by)
	l.set("grpc.addr", "0.0.0.0:8081", by)
	l.set("grpc.insecure", "true", by)
}

// upstreamPrometheus serves metrics at the address of the variables, with
// upstream's names, unless the settings of probe.addr are given. An address
// without a host is on loopback, unless callers reach HTTP from elsewhere: so
// it comes after the address of HTTP.
func (l *loader) upstreamPrometheus(env map[string]string) {
	const use, addr, path, mapper = "USE_PROMETHEUS", "PROMETHEUS_ADDR", "PROMETHEUS_PATH", "PROMETHEUS_MAPPER_YAML"
	if !l.upstreamBool(env, use) {
		return
	}
	from, text := fromEnv(use), ":9090"
	if v := env[addr]; v != "" {
		from, text = fromEnv(addr), v
	}
	if port, ok := strings.CutPrefix(text, ":"); ok {
		host := "127.0.0.1"
		if h, _, err := net.SplitHostPort(l.cfg.HTTP.Addr); err == nil && !loopback(h) {
			host = h
		}
		text = net.JoinHostPort(host, port)
	}
	unlessGiven := func(field, value string, from Origin) {
		if _, given := l.origins[field]; !given {
			l.set(field, value, from)
		}
	}
	unlessGiven("probe.addr", text, from)
	unlessGiven("probe.upstream_metrics", "true", fromEnv(use))
	if v := env[path]; v != "" {
		unlessGiven("probe.metrics_path", v, fromEnv(path))
	}
	if env[mapper] != "" {
		l.warnings = append(l.warnings, "not used, metrics have the names of the default mapping of envoyproxy/ratelimit: "+mapper)
	}
}

// upstreamLast applies the variables that depend on other settings, and the one
// that overrides an RLD_ variable: it requests less charging than
// RLD_CHARGE_DENIED does.
func (l *loader) upstreamLast(env map[string]string) {
	l.upstreamPrometheus(env)
	const name = "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"
	if l.upstreamBool(env, name) {
		l.set("limits.charge_denied", "false", fromEnv(name))
	}
}

// upstreamBool reads a variable that does not correspond to one setting.
func (l *loader) upstreamBool(env map[string]string, name string) bool {
	v := env[name]
	if v == "" {
		return false
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		l.fault("", fromEnv(name), fmt.Sprintf("%q is neither true nor false", v))
	}
	return b
}

// upstreamAddr replaces the host and the port of an address, each only where
// its variable is set.
func (l *loader) upstreamAddr(field string, addr *string, env map[string]string, hostVar, portVar string) {
	var names []string
	host, port, err := net.SplitHostPort(*addr)
	if err != nil {
		return // an invalid one in the file, which Validate reports
	}
	if v := env[hostVar]; v != "" {
		names, host = append(names, hostVar), strings.Trim(v, "[]")
	}
	if v := env[portVar]; v != "" {
		if err := checkPort(v); err != nil {
			l.fault(field, fromEnv(portVar), err.Error())
			return
		}
		names, port = append(names, portVar), v
	}
	if len(names) > 0 {
		l.set(field, net.JoinHostPort(host, port), fromEnv(names...))
	}
}

// upstreamRuntime composes the folder of limits as envoyproxy/ratelimit does,
// where every file counts. Its default is for a daemon of that name, which has
// no other source of limits. RUNTIME_WATCH_ROOT selects the watched folder
// there; rld compares contents, which covers both.
func (l *loader) upstreamRuntime(env map[string]string) {
	l.upstreamBool(env, "RUNTIME_WATCH_ROOT")
	ignoreDotfiles := l.upstreamBool(env, "RUNTIME_IGNOREDOTFILES")
	parts := []struct{ name, value string }{
		{"RUNTIME_ROOT", "/srv/runtime_data/current"},
		{"RUNTIME_SUBDIRECTORY", ""},
		{"RUNTIME_APPDIRECTORY", "config"},
	}
	var names, path []string
	for _, p := range parts {
		if v := env[p.name]; v != "" {
			names, p.value = append(names, p.name), v
		}
		path = append(path, p.value)
	}
	kind, from := NamesAll, fromEnv(names...)
	if len(names) == 0 {
		if !l.named || l.cfg.Limits.Source() != "" {
			return
		}
		from = "name " + UpstreamName + ", without RUNTIME_ROOT"
	}
	l.set("limits.path", filepath.Join(path...), from)
	if ignoreDotfiles {
		kind, from = NamesVisible, fromEnv("RUNTIME_IGNOREDOTFILES")
	}
	l.set("limits.names", string(kind), from)
}

// upstreamTLS applies the variables of TLS. Upstream ignores those of files
// without GRPC_SERVER_USE_TLS and answers in plain text, which is rejected here
// unless it is false.
func (l *loader) upstreamTLS(env map[string]string) {
	const use = "GRPC_SERVER_USE_TLS"
	if env[use] != "" && !l.upstreamBool(env, use) {
		return
	}
	on := env[use] != ""
	var given []string
	if on {
		l.upstreamSame(env, upstream.ServerTLS)
	}
	for _, u := range upstream.Settings(upstream.ServerTLS) {
		if env[u.Name] != "" && !on {
			given = append(given, u.Name)
		}
	}
	switch {
	case len(given) > 0:
		l.fault("", fromEnv(given...), "has no effect without "+use+"=true, and rld does not answer in plain text where a certificate "+
			"is given: set "+use+"=true, or false for plain text")
	case on && (env["GRPC_SERVER_TLS_CERT"] == "" || env["GRPC_SERVER_TLS_KEY"] == ""):
		l.fault("", fromEnv(use), "needs GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY, the PEM files of the certificate and its key")
	}
}

// upstreamUnused warns once of each group of settings without effect.
func (l *loader) upstreamUnused(env map[string]string) {
	store := slices.DeleteFunc(slices.Sorted(maps.Keys(env)), func(name string) bool {
		return !upstream.OfStore(name)
	})
	stats := slices.DeleteFunc([]string{"USE_STATSD", "USE_DOG_STATSD"}, func(name string) bool {
		return !isOn(env[name])
	})
	if len(store) > 0 {
		l.warnings = append(l.warnings, "not used, rld has no store: "+listNames(store))
	}
	if len(stats) > 0 {
		l.warnings = append(l.warnings,
			"not used, metrics are served at /metrics of the admin listener: "+listNames(stats))
	}
	jitter := slices.DeleteFunc([]string{"XDS_CLIENT_BACKOFF_JITTER", "XDS_CLIENT_BACKOFF_RANDOM_FACTOR"}, func(name string) bool {
		return env[name] == ""
	})
	if len(jitter) > 0 {
		l.warnings = append(l.warnings, "not used, attempts to reach an xDS server always have jitter: "+listNames(jitter))
	}
	if isOn(env["TRACING_ENABLED"]) {
		l.warnings = append(l.warnings, "not used, rld has no tracing: TRACING_ENABLED")
	}
}

// isOn reports whether a boolean variable is true.
func isOn(v string) bool {
	on, err := strconv.ParseBool(v)
	return err == nil && on
}
