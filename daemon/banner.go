package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/georld/rld/rules"
)

// banner is what a person who starts a daemon sees.
type banner struct {
	program string // to be called with check
	version string
	edges   *edges
	region  string // "" for a daemon alone
	name    string // of the daemon
	swim    string // address of its membership
	exposed []string
	limits  string
	rules   *rules.Set
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
	fmt.Fprintf(&s, "  admin  %s   /metrics, /healthz, /readyz, /rlconfig, /debug/pprof\n", e.adminAddr())
	if b.region != "" {
		fmt.Fprintf(&s, "  peers  %s   %s of region %s; see rld members, rld netcheck\n", e.peerLis.Addr(), b.name, b.region)
		fmt.Fprintf(&s, "  swim   %s   membership of the region\n", b.swim)
	}
	s.WriteString("\n")
	for _, l := range b.exposed {
		fmt.Fprintf(&s, "  WARNING: %s answers anybody who can reach it, without TLS or login.\n", l)
	}
	if len(b.exposed) > 0 {
		s.WriteString("\n")
	}
	if call, ok := newSample(b.rules); ok {
		s.WriteString("Ask it:\n\n")
		fmt.Fprintf(&s, "  curl -i 'http://%s/v1/check?%s'\n", reachable(e.httpAddr()), call.query())
		fmt.Fprintf(&s, "  %s check --addr %s %s\n\n",
			shellQuote(b.program), shellQuote(reachable(e.grpcAddr())), call.arguments())
	}
	return s.String()
}

// reachable is where a listener is reached from its own machine. One on every
// address is reached over IPv4 too, even where it is on [::].
func reachable(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsUnspecified() {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Port()))
}
