package report

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/rules"
)

// Banner is the text that a daemon prints when it serves.
type Banner struct {
	Program string // the command that started the daemon, for example calls
	Version string
	// GRPC, HTTP and Admin are the addresses of the listeners; UDS and AdminUDS
	// are the paths of unix sockets, and Probe is an address, "" for none.
	GRPC, UDS, HTTP, Admin, AdminUDS, Probe string
	// MetricsPath is the path of the metrics at Probe.
	MetricsPath string
	// Reflection reports that gRPC has it.
	Reflection bool
	// Region and Name identify the daemon, Peer and Swim are its addresses for
	// peers and membership. "" for a daemon alone.
	Region, Name, Peer, Swim string
	// TLS and HTTPTLS report that the gRPC and HTTP listeners have TLS, and
	// Tokens that callers need one.
	TLS, HTTPTLS, Tokens bool
	// Exposed are the listeners that others can reach without TLS or login.
	Exposed []string
	// Limits is the path of the limits, "" for the embedded examples.
	Limits string
	Rules  *rules.Set
}

// Text returns the banner.
func (b *Banner) Text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "rld %s: %s in %s from %s\n\n", b.Version,
		suggest.Plural(len(b.Rules.Rules()), "rule"), suggest.Plural(len(b.Rules.Domains()), "domain"), cmp.Or(b.Limits, "the embedded examples"))
	services := "Envoy RLS v3, RLQS v3, rld.v1.RateLimiter, health"
	if b.Reflection {
		services += ", reflection"
	}
	fmt.Fprintf(&s, "  gRPC   %s   %s\n", b.GRPC, services)
	if b.UDS != "" {
		fmt.Fprintf(&s, "  gRPC   unix:%s\n", b.UDS)
	}
	fmt.Fprintf(&s, "  HTTP   %s   /v1/check, /api/v1/rate_limit, /json, /healthcheck\n", b.HTTP)
	fmt.Fprintf(&s, "  admin  %s   /metrics, /healthz, /readyz, /rlconfig, /v1/status\n", b.Admin)
	if b.AdminUDS != "" {
		fmt.Fprintf(&s, "  admin  unix:%s   commands\n", b.AdminUDS)
	}
	if b.Probe != "" {
		fmt.Fprintf(&s, "  probe  %s   %s, /healthz, /readyz\n", b.Probe, b.MetricsPath)
	}
	if b.Region != "" {
		fmt.Fprintf(&s, "  peers  %s   %s of region %s; see rld daemon list, rld netcheck\n", b.Peer, b.Name, b.Region)
		fmt.Fprintf(&s, "  swim   %s   membership of the region\n", b.Swim)
	}
	s.WriteString("\n")
	for _, l := range b.Exposed {
		fmt.Fprintf(&s, "  WARNING: %s is open to every client that can reach it, without TLS or login.\n", l)
	}
	if len(b.Exposed) > 0 {
		s.WriteString("\n")
	}
	if call, ok := newExampleCall(b.Rules); ok {
		s.WriteString("Try it:\n\n")
		curl, flags, scheme := "", "", "http"
		if b.HTTPTLS {
			curl, scheme = " --cacert ca.pem", "https"
		}
		if b.TLS {
			flags = " --tls-ca ca.pem"
		}
		if b.Tokens {
			curl += ` -H "authorization: Bearer $(cat token)"`
			flags += " --token-file token"
		}
		fmt.Fprintf(&s, "  curl -i%s '%s://%s/v1/check?%s'\n", curl, scheme, reachable(b.HTTP), call.query())
		fmt.Fprintf(&s, "  %s check --addr %s%s %s\n\n",
			shellQuote(b.Program), shellQuote(reachable(b.GRPC)), flags, call.arguments())
	}
	return s.String()
}

// reachable returns the address of a listener on its own machine. A listener on
// all addresses is reachable over IPv4, even if it is on [::].
func reachable(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsUnspecified() {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(at.Port()))
}
