package bench

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http/httpguts"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// keyVariable stands for the key of a call.
const keyVariable = "{key}"

// keyName returns the value of a key; all are of one length.
func keyName(i int) string { return fmt.Sprintf("key-%07d", i) }

// with returns a text for a key.
func with(text, key string) string { return strings.ReplaceAll(text, keyVariable, key) }

// entry is an entry of a descriptor; its value may have the key variable.
type entry struct{ key, value string }

// request is what every call asks, but for its key.
type request struct {
	domain      string
	descriptors [][]entry
	// http is the request of forward-auth after its first line, and before the
	// headers of the target; method and path are those of the client.
	method, path string
	http         string
}

// newRequest reads the flags of the request. Its error is one of usage.
func (o *options) newRequest(args []string) (request, error) {
	if o.protocol == protocolForward {
		return o.newHTTPRequest()
	}
	q := request{domain: o.domain}
	switch {
	case o.domain == "":
		return q, errors.New("no domain: use --domain DOMAIN, as in the file of limits")
	case !utf8.ValidString(o.domain):
		return q, fmt.Errorf("the domain %+q is not UTF-8", o.domain)
	}
	var all [][]string
	if len(args) > 0 {
		all = append(all, args)
	}
	for _, d := range o.descriptors {
		all = append(all, strings.Split(d, ","))
	}
	if len(all) == 0 {
		return q, errors.New("nothing to ask about: use KEY=VALUE, as in the file of limits, such as user_id={key}")
	}
	for _, texts := range all {
		var entries []entry
		for _, text := range texts {
			key, value, ok := strings.Cut(text, "=")
			if !ok || key == "" {
				return q, fmt.Errorf("%q is no KEY=VALUE", text)
			}
			if !utf8.ValidString(text) {
				return q, fmt.Errorf("%+q is not UTF-8", text)
			}
			if strings.Contains(key, keyVariable) {
				return q, fmt.Errorf("%q: %s can be in a value alone", text, keyVariable)
			}
			entries = append(entries, entry{key, value})
		}
		q.descriptors = append(q.descriptors, entries)
	}
	return q, nil
}

// newHTTPRequest reads the flags of forward-auth.
func (o *options) newHTTPRequest() (request, error) {
	q := request{method: o.method, path: o.path}
	if !httpguts.ValidHeaderFieldName(o.method) { // a method is a token, too
		return q, fmt.Errorf("--method %q is no method of HTTP", o.method)
	}
	if u, err := url.ParseRequestURI(with(o.path, "k")); err != nil || !strings.HasPrefix(o.path, "/") ||
		strings.ContainsAny(o.path, " \t\r\n#") || u.Host != "" {
		return q, fmt.Errorf("--path %q: want a path such as /v1/orders?id={key}", o.path)
	}
	if o.gateway != "" && url.PathEscape(o.gateway) != o.gateway {
		return q, fmt.Errorf("--gateway %q is no name of a mapping", o.gateway)
	}
	var b strings.Builder
	agent := false
	for _, text := range o.headers {
		name, value, ok := strings.Cut(text, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			return q, fmt.Errorf("--header %q is no NAME: VALUE", text)
		case strings.EqualFold(name, "Host") || strings.EqualFold(name, "Content-Length") ||
			strings.EqualFold(name, "Transfer-Encoding") || strings.EqualFold(name, "Connection"):
			return q, fmt.Errorf("--header %s: it belongs to the connection, and rld bench writes it", name)
		case strings.EqualFold(name, "Authorization") && o.credentials.Token != "":
			return q, fmt.Errorf("--header %s: --token-file writes it", name)
		case strings.EqualFold(name, "X-Forwarded-Method") && o.gateway != "":
			return q, fmt.Errorf("--header %s: with --gateway it has --method", name)
		case strings.EqualFold(name, "X-Forwarded-Uri") && o.gateway != "":
			return q, fmt.Errorf("--header %s: with --gateway it has --path", name)
		}
		agent = agent || strings.EqualFold(name, "User-Agent")
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	if !agent {
		b.WriteString("User-Agent: rld-bench\r\n")
	}
	q.http = b.String()
	return q, nil
}

// varies reports whether calls of two keys differ.
func (q *request) varies() bool {
	for _, d := range q.descriptors {
		for _, e := range d {
			if strings.Contains(e.value, keyVariable) {
				return true
			}
		}
	}
	return strings.Contains(q.path+q.http, keyVariable)
}

// rls returns the request of Envoy's service for a key.
func (q *request) rls(key string) *ratelimitv3.RateLimitRequest {
	out := &ratelimitv3.RateLimitRequest{Domain: q.domain}
	for _, entries := range q.descriptors {
		d := &commonv3.RateLimitDescriptor{}
		for _, e := range entries {
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: e.key, Value: with(e.value, key)})
		}
		out.Descriptors = append(out.Descriptors, d)
	}
	return out
}

// native returns the request of the native service for a key.
func (q *request) native(key string) *rldv1.CheckRequest {
	out := &rldv1.CheckRequest{Domain: q.domain}
	for _, entries := range q.descriptors {
		d := &rldv1.Descriptor{}
		for _, e := range entries {
			d.Entries = append(d.Entries, &rldv1.Entry{Key: e.key, Value: with(e.value, key)})
		}
		out.Descriptors = append(out.Descriptors, d)
	}
	return out
}
