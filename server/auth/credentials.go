package auth

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// FromGRPC returns the credentials of a call over gRPC: its metadata
// authorization and its connection.
func FromGRPC(ctx context.Context) Credentials {
	var c Credentials
	if v := metadata.ValueFromIncomingContext(ctx, "authorization"); len(v) == 1 {
		c.Token = bearer(v[0])
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return c
	}
	info, _ := p.AuthInfo.(credentials.TLSInfo)
	c.Trusted = verified(&info.State) || onSocket(p.LocalAddr)
	c.From = p.Addr
	return c
}

// FromHTTP returns the credentials of a request.
func FromHTTP(r *http.Request) Credentials {
	var c Credentials
	if v := r.Header["Authorization"]; len(v) == 1 {
		c.Token = bearer(v[0])
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	c.Trusted = r.TLS != nil && verified(r.TLS) || onSocket(local)
	c.From = remote(r.RemoteAddr)
	return c
}

// remote is an address as text.
type remote string

func (r remote) Network() string { return "tcp" }
func (r remote) String() string  { return string(r) }

// verified reports whether the listener has verified a client certificate.
func verified(s *tls.ConnectionState) bool { return len(s.VerifiedChains) > 0 }

func onSocket(a net.Addr) bool { return a != nil && a.Network() == "unix" }

// bearer returns the token of a field authorization. A field of another scheme
// is an unknown token.
func bearer(field string) string {
	const scheme = "bearer "
	if len(field) > len(scheme) && strings.EqualFold(field[:len(scheme)], scheme) {
		return strings.TrimSpace(field[len(scheme):])
	}
	return field
}
