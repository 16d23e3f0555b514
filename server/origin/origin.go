// Package origin finds the requests that the pages of other sites make a
// browser send, and those that did not come straight from their sender.
//
// A browser sends a request for any page to any address, so an address on
// loopback protects from no page. It names the page in the headers Origin and
// Sec-Fetch-Site, which pages cannot set. Clients that are no browsers send
// neither.
package origin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

var (
	errSite   = errors.New("a page of another site may not send requests to rld: its browser says so in Sec-Fetch-Site")
	errOrigin = errors.New("a page of another site may not send requests to rld: its browser says so in Origin")
	errProxy  = errors.New("the request passed a proxy (Forwarded, X-Forwarded-For, Via): " +
		"the admin listener takes requests from their senders alone")
	errBrowser = errors.New("commands are not accepted from browsers")
)

// CrossSite returns an error for a request that a page of another site made a
// browser send. It does not allocate for other requests.
func CrossSite(r *http.Request) error {
	switch site := r.Header["Sec-Fetch-Site"]; {
	case len(site) == 0:
	case len(site) > 1 || site[0] != "same-origin" && site[0] != "none":
		return errSite
	}
	switch from := r.Header["Origin"]; {
	case len(from) == 0:
	case len(from) > 1:
		return errOrigin
	default:
		// The scheme is not compared: a proxy in front may have another one.
		u, err := url.Parse(from[0])
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return errOrigin
		}
	}
	return nil
}

// Gateway reports whether a gateway sent a request for another one. It may copy
// the headers of that one's browser. A page cannot set these headers: its
// browser would ask rld for the permission first, and gets none.
func Gateway(r *http.Request) bool {
	return len(r.Header["X-Forwarded-For"]) > 0 || len(r.Header["Forwarded"]) > 0
}

// Proxied returns an error for a request that passed a proxy. The address of
// its sender is unknown.
func Proxied(r *http.Request) error {
	if Gateway(r) || len(r.Header["Via"]) > 0 || len(r.Header["X-Forwarded-Host"]) > 0 || len(r.Header["X-Real-Ip"]) > 0 {
		return errProxy
	}
	return nil
}

// Browser returns an error for any request of a browser.
func Browser(r *http.Request) error {
	if len(r.Header["Origin"]) > 0 || len(r.Header["Sec-Fetch-Site"]) > 0 {
		return errBrowser
	}
	return nil
}

// Host returns an error for a request whose header Host is neither an address
// nor localhost nor one of the own names. A page can have its own name
// resolve to our address after it was loaded (DNS rebinding): its requests are
// then of the same site, but have that name.
func Host(r *http.Request, own []string) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || strings.EqualFold(host, "localhost") {
		return nil
	}
	if host != "" && slices.ContainsFunc(own, func(name string) bool { return strings.EqualFold(name, host) }) {
		return nil
	}
	return fmt.Errorf("%.100q is not a name of this machine: use an address such as 127.0.0.1", host)
}

// NoPages returns a handler that refuses the requests of the pages of other
// sites with 403.
func NoPages(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := CrossSite(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
