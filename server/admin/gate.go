package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/internal/unixsocket"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/server/origin"
)

// gate decides which requests reach the pages and commands.
type gate struct {
	o      *Options
	mux    *http.ServeMux
	routes []string
}

// handle adds a route, which is that of rights.
func (g *gate) handle(route string, h http.HandlerFunc) {
	g.routes = append(g.routes, route)
	g.mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		asked := route
		if route == "GET /v1/top" && r.URL.Query().Get("reveal") == "true" {
			asked = reveal
		}
		need := roleFor(asked)
		r = begin(r, asked, need)
		s, err := g.admit(r, need)
		switch {
		case err != nil:
			g.refuse(w, r, s, need, err)
		case need == auth.View:
			h(w, r)
		default:
			noted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
			h(noted, r)
			g.o.Audit.done(r, s, noted.status)
		}
	})
}

// ServeHTTP refuses the requests that may not come from whom they seem to.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := cmp.Or(because(reasonBrowser, origin.CrossSite(r)), because(reasonProxy, origin.Proxied(r)))
	if err == nil && !shows(r) {
		err = because(reasonHost, origin.Host(r, g.o.Hosts))
	}
	if to := r.Header.Get(api.AddrHeader); err == nil && to != "" && !sameAddr(to, g.o.Addr) {
		err = &refusal{statusError{http.StatusMisdirectedRequest, fmt.Errorf("the request is for the daemon at %s, and this is that at %s",
			api.Clip(to), g.o.Addr)}, reasonHost}
	}
	if err != nil {
		g.refuse(w, begin(r, "", auth.None), sender{}, auth.None, err)
		return
	}
	g.mux.ServeHTTP(w, r)
}

// sameAddr reports whether a dialed address may be that of a listener.
func sameAddr(dialed string, own netip.AddrPort) bool {
	to, err := netip.ParseAddrPort(dialed)
	return err == nil && to.Port() == own.Port() && (own.Addr().IsUnspecified() || to.Addr().Unmap() == own.Addr().Unmap())
}

// shows reports whether a request has credentials that no browser adds to it.
func shows(r *http.Request) bool { return r.Header.Get("Authorization") != "" }

// reason is why a request was refused, and a value of metrics.
type reason int

const (
	reasonBrowser reason = iota
	reasonProxy
	reasonHost
	reasonNoCredentials
	reasonUnknownToken
	reasonRole
	reasons
)

// String returns it as metrics have it.
func (r reason) String() string {
	return [...]string{"browser", "proxy", "host", "no_credentials", "unknown_token", "role"}[r]
}

// refusal is the error of a request that may not be.
type refusal struct {
	statusError
	reason reason
}

// because returns the refusal of an error with status 403, nil for nil.
func because(why reason, err error) error {
	if err == nil {
		return nil
	}
	return &refusal{statusError{http.StatusForbidden, err}, why}
}

// sender is who sent a request.
type sender struct {
	role auth.Role
	// name is for the audit log: "uid 1000", "token ann", "certificate ann"; ""
	// for none.
	name string
}

// admit returns the sender of a request, and an error if it may not send it.
func (g *gate) admit(r *http.Request, need auth.Role) (sender, error) {
	s, err := g.sender(r)
	if err != nil {
		return s, err
	}
	if need > auth.View {
		if err := origin.Browser(r); err != nil {
			return s, because(reasonBrowser, err)
		}
	}
	if s.role >= need {
		return s, nil
	}
	if s.name != "" {
		return s, because(reasonRole, fmt.Errorf("%s has the role %s, and this needs the role %s", s.name, s.role, need))
	}
	return s, &refusal{statusError{http.StatusUnauthorized, g.missing(need)}, reasonNoCredentials}
}

// missing is the error of a request without credentials.
func (g *gate) missing(need auth.Role) error {
	way := "run rld on the machine of the daemon, as its user or as root"
	if g.o.Socket == "" {
		way = "give the daemon a unix socket (admin.uds)"
	}
	return fmt.Errorf("this needs the role %s: %s; or send the token of an operator (--token-file; admin.tokens_file), "+
		"or use an operator's certificate (--tls-cert; admin.tls.client_ca_file)", need, way)
}

// sender finds the sender of a request. The error is that of credentials that
// are wrong.
func (g *gate) sender(r *http.Request) (sender, error) {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && at.Network() == "unix" {
		return sender{auth.Admin, userOf(r.Context())}, nil
	}
	if token := auth.FromHTTP(r).Token; token != "" && g.o.Operators != nil {
		name, role, ok := g.o.Operators.Operator(token)
		if !ok {
			return sender{}, &refusal{statusError{http.StatusUnauthorized, errors.New("the token is not one of an operator here: " +
				"rld token new --role makes one, and admin.tokens_file holds its hash")}, reasonUnknownToken}
		}
		return sender{role, "token " + name}, nil
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		role, name := auth.OperatorOf(r.TLS.PeerCertificates[0])
		if name == "" {
			return sender{role, "a certificate without the URI spiffe://rld-operator/ROLE/NAME"}, nil
		}
		return sender{role, "certificate " + name}, nil
	}
	if g.o.Operators == nil && !g.o.Certificates {
		return sender{role: auth.View}, nil
	}
	return sender{}, nil
}

// refuse answers a request that may not be.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, s sender, need auth.Role, err error) {
	var why *refusal
	errors.As(err, &why)
	if why.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", auth.Challenge)
		if g.o.Socket != "" && fromHere(r) {
			w.Header().Set(api.SocketHeader, g.o.Socket)
		}
	}
	g.o.Audit.refused(r, s, need, why)
	respondJSON(w, why.status, api.Failure{Error: why.Error()})
}

// fromHere reports whether a connection begins on this machine. One from the
// address at which it arrives does: no answer leaves the machine.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return err == nil && (from.Addr().Unmap().IsLoopback() || at != nil && from.Addr().Unmap() == at.AddrPort().Addr().Unmap())
}

// userKey is the context key of the user at the other end of a unix socket.
type userKey struct{}

// ConnContext is that of an http.Server with a handler of New.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if bounded, ok := c.(*connlimit.Conn); ok {
		c = bounded.Conn
	}
	if uid, ok := unixsocket.PeerUID(c); ok {
		return context.WithValue(ctx, userKey{}, uid)
	}
	return ctx
}

// userOf returns the user at the other end of a unix socket.
func userOf(ctx context.Context) string {
	if uid, ok := ctx.Value(userKey{}).(uint32); ok {
		return fmt.Sprintf("uid %d", uid)
	}
	return "a user of the unix socket"
}
