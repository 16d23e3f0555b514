package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// maxCommandBytes bounds the body of a command.
const maxCommandBytes = 16 << 10

// readCommand decodes the body of a command that comes from this machine.
func (r request) readCommand(max int64, want string, v any) error {
	if err := fromHere(r.Request); err != nil {
		return failed(http.StatusForbidden, err)
	}
	return r.readJSON(max, want, v)
}

// readSigned decodes the body of a command that comes from this machine, or
// from a sender that has the secret of the cluster.
func (r request) readSigned(max int64, want string, v any) error {
	signature := r.Header.Get(api.SignatureHeader)
	if signature == "" {
		return r.readCommand(max, want, v)
	}
	body, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, max))
	if err != nil {
		return fmt.Errorf("want %s: %w", want, err)
	}
	if r.o.Secret == nil {
		return failed(http.StatusForbidden, errors.New("this daemon has no secret, and accepts no signed commands"))
	}
	if err := api.Verify(r.o.Secret, signature, r.URL.Path, body, time.Now()); err != nil {
		return failed(http.StatusForbidden, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r.readJSON(max, want, v)
}

// localAddr returns the address at which a request arrived. A connection from
// the same address begins on this machine: no answer leaves it.
func localAddr(r *http.Request) netip.Addr {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return at.AddrPort().Addr().Unmap()
}

// fromHere returns an error unless a request comes from this machine and not
// from a web page, under any host name: a command cannot be undone by repeating
// it.
func fromHere(r *http.Request) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() && from.Addr().Unmap() != localAddr(r) {
		return errors.New("commands are accepted only from the machine of the daemon: use 127.0.0.1 there")
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && host != "localhost" {
		return fmt.Errorf("%q is not a name of this machine: use an address such as 127.0.0.1", api.Clip(host))
	}
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return errors.New("commands are not accepted from browsers")
	}
	return nil
}
