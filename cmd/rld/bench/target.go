package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/internal/load"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// address is a parsed address of a target.
type address struct {
	network, addr string // to dial
	host          string // as HTTP has it
	tls           bool
	path          string // of a URL, "" for none
}

// parse reads the address of a target. Its error is one of usage.
func (o *options) parse(text string) (address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok && path != "" {
		return address{network: "unix", addr: path, host: "localhost", tls: o.credentials.CA != ""}, nil
	}
	u, err := url.Parse(text)
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	switch {
	case isURL && o.protocol != protocolForward:
		return address{}, fmt.Errorf("%q is a URL, and --protocol %s takes host:port or unix:PATH", text, o.protocol)
	case isURL && (u.User != nil || u.RawQuery != "" || u.Fragment != ""):
		return address{}, fmt.Errorf("%q: want a URL without a user, a query and a fragment; --path has those of the client", text)
	case isURL:
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if o.gateway != "" && strings.Trim(u.Path, "/") != "" {
			return address{}, fmt.Errorf("%q has a path: with --gateway the target is the daemon, and has none", text)
		}
		if u.Scheme == "http" && o.credentials.CA != "" {
			return address{}, fmt.Errorf("%q is plain text, and --tls-ca is for TLS: use https", text)
		}
		return address{
			network: "tcp", addr: net.JoinHostPort(u.Hostname(), port), host: u.Host, tls: u.Scheme == "https",
			path: strings.TrimSuffix(u.EscapedPath(), "/"),
		}, nil
	}
	_, port, err := net.SplitHostPort(text)
	if n, numErr := strconv.ParseUint(port, 10, 16); err == nil && numErr == nil && n > 0 {
		return address{network: "tcp", addr: text, host: text, tls: o.credentials.CA != ""}, nil
	}
	if o.protocol == protocolForward {
		return address{}, fmt.Errorf("%q is neither a URL nor host:port nor unix:PATH", text)
	}
	return address{}, fmt.Errorf("%q is neither host:port nor unix:PATH", text)
}

// target has the Calls to an address.
type target struct {
	addr    string
	calls   []load.Call
	closing []func()
}

func (t *target) close() {
	for _, f := range t.closing {
		f()
	}
}

// open returns a target after it answered a first call.
func (o *options) open(ctx context.Context, addr string) (*target, error) {
	t := &target{addr: addr}
	var err error
	if o.protocol == protocolForward {
		err = o.openHTTP(t)
	} else {
		err = o.openGRPC(ctx, t)
	}
	if err == nil {
		if _, err = t.calls[0](ctx); err != nil {
			err = o.explain(addr, err)
		}
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// names returns a function for each caller that chooses keys and returns
// their names.
func (o *options) names() func(i int) func() string {
	keys := load.NewKeys(o.keys, o.zipf)
	return func(i int) func() string {
		next := keys.Chooser(o.seed + uint64(i))
		return func() string { return keyName(next()) }
	}
}

// bounded returns a Call that ends after the timeout, and not before with the
// load: an answer that was waited for counts.
func (o *options) bounded(call load.Call) load.Call {
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.timeout)
		defer cancel()
		return call(ctx)
	}
}

func (o *options) openGRPC(ctx context.Context, t *target) error {
	dial, err := o.credentials.DialOptions()
	if err != nil {
		return err
	}
	var conns []*grpc.ClientConn
	var streams []*load.Stream
	for range o.connections {
		conn, err := grpc.NewClient(t.addr, append(dial, grpc.WithNoProxy())...)
		if err != nil {
			return fmt.Errorf("%q is no address of a daemon: use host:port or unix:PATH: %w", t.addr, err)
		}
		conns = append(conns, conn)
		if o.protocol == protocolStream {
			s := load.NewStream(context.WithoutCancel(ctx), conn)
			streams = append(streams, s)
			t.closing = append(t.closing, s.Close)
		}
		t.closing = append(t.closing, func() { conn.Close() })
	}
	names := o.names()
	for i := range o.inFlight {
		name, at := names(i), i%len(conns)
		native := func() *rldv1.CheckRequest { return o.request.native(name()) }
		var call load.Call
		switch o.protocol {
		case protocolStream:
			call = streams[at].Call(native)
		case protocolCheck:
			call = load.Check(conns[at], native)
		default:
			next := func() *ratelimitv3.RateLimitRequest { return o.request.rls(name()) }
			call = load.RLS(conns[at], next, load.HasCode)
		}
		t.calls = append(t.calls, o.bounded(call))
	}
	return nil
}

func (o *options) openHTTP(t *target) error {
	a, err := o.parse(t.addr)
	if err != nil {
		return err
	}
	head, err := o.head(&a)
	if err != nil {
		return err
	}
	config, err := o.credentials.TLS()
	if err != nil {
		return err
	}
	method := o.request.method
	if o.gateway != "" {
		method = "" // the daemon is asked with GET
	}
	h := &load.HTTP{Method: method, Denied: o.denyStatus, Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		if !a.tls {
			return d.DialContext(ctx, a.network, a.addr)
		}
		return (&tls.Dialer{NetDialer: &d, Config: config}).DialContext(ctx, a.network, a.addr)
	}}
	names := o.names()
	for i := range o.inFlight {
		name := names(i)
		call, closing := h.Call(func() []byte { return []byte(with(head, name())) })
		t.calls = append(t.calls, o.bounded(call))
		t.closing = append(t.closing, closing)
	}
	return nil
}

// gatewayPath is the path of the mappings of a daemon.
const gatewayPath = "/v1/forward-auth/"

// head returns the request of a call, with key variables.
func (o *options) head(a *address) (string, error) {
	token, err := o.credentials.Bearer()
	if err != nil {
		return "", err
	}
	q := &o.request
	var b strings.Builder
	if o.gateway != "" {
		fmt.Fprintf(&b, "GET %s%s HTTP/1.1\r\nHost: %s\r\n", gatewayPath, o.gateway, a.host)
		fmt.Fprintf(&b, "X-Forwarded-Method: %s\r\nX-Forwarded-Uri: %s\r\n", q.method, q.path)
	} else {
		fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", q.method, a.path+q.path, a.host)
	}
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	b.WriteString(q.http)
	b.WriteString("\r\n")
	return b.String(), nil
}

// explain returns why the first call to a target failed, in one line.
func (o *options) explain(addr string, err error) error {
	if c, ok := errors.AsType[load.Code](err); ok {
		hint := ""
		switch {
		case c.Code() == load.NoHTTP:
			return fmt.Errorf("the answer of %s is no HTTP/1.1: is it a daemon's gRPC address? forward-auth takes its HTTP address", addr)
		case c.Code() == "HTTP 404" && o.gateway != "":
			hint = fmt.Sprintf(": the daemon has no mapping %q (gateways in its settings)", o.gateway)
		}
		return fmt.Errorf("the first call to %s failed: %s: %w%s", addr, c.Code(), err, hint)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no answer from %s in %s: is it the address of a daemon for %s?", addr, o.timeout, o.protocol)
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unavailable:
		// golang.org/x/net/http2 has no error of its own for it.
		if strings.Contains(s.Message(), "looked like an HTTP/1.1 header") {
			return fmt.Errorf("%s answers in HTTP/1.1: is it a daemon's HTTP address? %s takes its gRPC address", addr, o.protocol)
		}
		return fmt.Errorf("cannot reach a daemon at %s over gRPC: %s", addr, s.Message())
	case codes.DeadlineExceeded:
		return fmt.Errorf("no answer from %s in %s: is it a daemon's gRPC address?", addr, o.timeout)
	case codes.Unimplemented:
		return fmt.Errorf("%s has no service for --protocol %s: is it a daemon's gRPC address?", addr, o.protocol)
	case codes.Unauthenticated, codes.PermissionDenied:
		return fmt.Errorf("%s refuses this caller: %s (%s); use --token-file or --tls-cert", addr, s.Message(), s.Code())
	}
	return fmt.Errorf("the first call to %s failed: %s (%s)", addr, s.Message(), s.Code())
}
