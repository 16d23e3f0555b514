package daemon

import (
	"fmt"
	"strings"
)

// banner is what a person who starts a daemon sees.
type banner struct {
	version string
	edges   *edges
	exposed []string
	limits  string
}

func (b *banner) text() string {
	var s strings.Builder
	e := b.edges
	fmt.Fprintf(&s, "rld %s: %s\n\n", b.version, b.limits)
	fmt.Fprintf(&s, "  gRPC   %s   Envoy RLS v3, rld.v1.RateLimiter, health, reflection\n", e.grpcAddr())
	if path := e.udsPath(); path != "" {
		fmt.Fprintf(&s, "  gRPC   unix:%s\n", path)
	}
	fmt.Fprintf(&s, "  HTTP   %s   /v1/check, /api/v1/rate_limit, /json, /healthcheck\n", e.httpAddr())
	fmt.Fprintf(&s, "  admin  %s   /metrics, /healthz, /readyz, /rlconfig, /debug/pprof\n\n", e.adminAddr())
	for _, l := range b.exposed {
		fmt.Fprintf(&s, "  WARNING: %s answers anybody who can reach it, without TLS or login.\n", l)
	}
	if len(b.exposed) > 0 {
		s.WriteString("\n")
	}
	s.WriteString("Ask it:\n\n")
	fmt.Fprintf(&s, "  curl -i 'http://%s/v1/check?domain=edge&tier=free&user_id=abc&endpoint=/login'\n", e.httpAddr())
	fmt.Fprintf(&s, "  rld check --addr %s --domain edge tier=free user_id=abc endpoint=/login\n\n", e.grpcAddr())
	return s.String()
}
