package config

import (
	"fmt"
	"strings"

	"github.com/georld/rld/config/upstream"
)

// upstreamXDS applies the variables of an xDS server, and reports whether they
// select one as the source of the limits. Without CONFIG_TYPE they have no
// effect, as there.
func (l *loader) upstreamXDS(env map[string]string) bool {
	const kind, url = "CONFIG_TYPE", "CONFIG_GRPC_XDS_SERVER_URL"
	switch v := env[kind]; v {
	case "", "FILE":
		return false
	case "GRPC_XDS_SOTW":
	default:
		l.fault("", fromEnv(kind), fmt.Sprintf("%q is no source of limits: it is FILE or GRPC_XDS_SOTW", v))
		return false
	}
	server, from := "localhost:18000", fromEnv(kind)
	if v := env[url]; v != "" {
		server, from = strings.TrimPrefix(v, "dns:///"), fromEnv(url)
	}
	l.set("limits.xds.server", server, from)
	l.upstreamSame(env, upstream.XDS)
	// Upstream ignores files of TLS that are not switched on, and uses plain
	// text. Here that is a fault, unless plain text is asked for.
	const use = "CONFIG_GRPC_XDS_SERVER_USE_TLS"
	if env[use] == "" || l.cfg.Limits.XDS.TLS.Enabled {
		l.upstreamSame(env, upstream.XDSTLS)
	}
	const healthy = "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED"
	if l.upstreamBool(env, healthy) {
		l.set("limits.xds.start_without_limits", "false", fromEnv(healthy))
	}
	l.upstreamHeaders(env)
	return true
}

// upstreamHeaders applies the variable of headers. They may be secrets, so they
// are no setting.
func (l *loader) upstreamHeaders(env map[string]string) {
	const name = "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS"
	if env[name] == "" {
		return
	}
	headers := make(map[string]string)
	for _, h := range strings.Split(env[name], ",") {
		key, value, ok := strings.Cut(h, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		problem := "want NAME:VALUE,NAME:VALUE"
		if ok && key != "" {
			problem = headerFault(key, value)
		}
		if problem != "" {
			l.fault("", fromEnv(name), problem)
			return
		}
		headers[strings.ToLower(key)] = value
	}
	l.xdsHeaders = headers
}
