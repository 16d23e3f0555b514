package gateway

import (
	"slices"
	"strings"
)

// Headers by which gateways describe a request: nginx and its ingress, those
// that Caddy and Traefik set, and the one of oauth2-proxy.
const (
	originalURI     = "X-Original-Uri"
	originalURL     = "X-Original-Url"
	originalMethod  = "X-Original-Method"
	forwardedURI    = "X-Forwarded-Uri"
	forwardedMethod = "X-Forwarded-Method"
	forwardedHost   = "X-Forwarded-Host"
	forwardedFor    = "X-Forwarded-For"
	forwarded       = "Forwarded"
	authRedirect    = "X-Auth-Request-Redirect"
)

// descriptive are the headers that no page can make a browser send.
var descriptive = []string{
	originalURI, originalURL, originalMethod, forwardedURI, forwardedMethod, forwardedHost, forwardedFor, forwarded, authRedirect,
}

// Described reports whether a gateway describes another request. Before a
// browser sends such headers for a page it asks rld for the permission, and
// gets none.
func (r *Request) Described() bool {
	return slices.ContainsFunc(descriptive, func(name string) bool { return len(r.Header[name]) > 0 })
}

// methods are the values of the source method. Others are otherMethod, so that
// clients cannot make up keys.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}

const otherMethod = "OTHER"

// method returns the method in upper case: some servers take get for GET.
func (r *Request) method() (string, Reason) {
	text, fault := "", noFault
	if r.Line != nil {
		text = r.Line.Method
	} else {
		text, fault = r.agreed(originalMethod, forwardedMethod)
	}
	if fault != noFault || text == "" {
		return "", fault
	}
	for _, m := range methods {
		if strings.EqualFold(m, text) {
			return m, noFault
		}
	}
	return otherMethod, noFault
}

// agreed returns the value of two headers that must not differ.
func (r *Request) agreed(first, second string) (string, Reason) {
	a, fault := r.one(first)
	if fault != noFault {
		return "", fault
	}
	b, fault := r.one(second)
	switch {
	case fault != noFault:
		return "", fault
	case a == "":
		return b, noFault
	case b != "" && a != b:
		return "", Conflict
	}
	return a, noFault
}

// target returns path and query of the request, "" if no gateway states them.
// Gateways pass on headers that they do not set themselves. So a second header
// must state the same: a client may have sent it.
func (r *Request) target() (string, Reason) {
	if r.Line != nil {
		return r.Line.target()
	}
	found := ""
	for _, name := range [...]string{originalURI, originalURL, forwardedURI, authRedirect} {
		if name == authRedirect && found != "" {
			break // not about the request in every installation
		}
		uri, fault := r.one(name)
		switch {
		case fault != noFault:
			return "", fault
		case uri == "":
			continue
		case len(uri) > maxURI:
			return "", TooLong
		}
		_, target, ok := splitURI(uri)
		switch {
		case !ok:
			return "", BadURI
		case found != "" && found != target:
			return "", Conflict
		}
		found = target
	}
	return found, noFault
}

// target returns path and query, without a fragment. A question without them
// comes from a gateway that does not append the path, which is a fault.
func (l *Line) target() (string, Reason) {
	target, _, _ := strings.Cut(l.Target, "#")
	switch {
	case len(l.Target) > maxURI:
		return "", TooLong
	case !strings.HasPrefix(target, "/"):
		return "", BadURI
	}
	return target, noFault
}

// splitURI returns the host of a URI, "" for one without, and its path and
// query without a fragment. A client may send the whole URI as request target.
func splitURI(uri string) (host, target string, ok bool) {
	uri, _, _ = strings.Cut(uri, "#")
	if uri == "*" || strings.HasPrefix(uri, "/") {
		return "", uri, true
	}
	_, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return "", "", false
	}
	at := strings.IndexAny(rest, "/?")
	if at < 0 {
		return rest, "/", true
	}
	host, target = rest[:at], rest[at:]
	if target[0] == '?' {
		target = "/" + target
	}
	return host, target, true
}

// host returns the host that gateways state, and else the header Host.
func (r *Request) host() (string, Reason) {
	if r.Line != nil {
		if r.Host == "" {
			return "", noFault
		}
		return cleanHost(r.Host)
	}
	text, fault := r.one(forwardedHost)
	if fault != noFault {
		return "", fault
	}
	url, fault := r.one(originalURL)
	if fault != noFault {
		return "", fault
	}
	stated, _, _ := splitURI(url)
	if at := strings.LastIndexByte(stated, '@'); at >= 0 {
		stated = stated[at+1:]
	}
	if text != "" && stated != "" && !strings.EqualFold(text, stated) {
		return "", Conflict
	}
	for _, other := range [...]string{stated, r.Host} {
		if text == "" {
			text = other
		}
	}
	if text == "" {
		return "", noFault
	}
	return cleanHost(text)
}

// maxHost is the longest name of a host, in bytes.
const maxHost = 253

// cleanHost returns a host in lower case, without port and final dot.
func cleanHost(text string) (string, Reason) {
	host := text
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 || end+1 < len(text) && text[end+1] != ':' {
			return "", BadHost
		}
		host = text[1:end]
	} else if at := strings.IndexByte(text, ':'); at >= 0 {
		host = text[:at]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > maxHost {
		return "", BadHost
	}
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '-', c == '_', c == ':' && text[0] == '[':
		default:
			return "", BadHost
		}
	}
	return host, noFault
}
