package files

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	tometadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	limits "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	setmetadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	kind "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// request is a request at Envoy, and the headers of its response.
type request struct {
	path, address    string
	header, response map[string]string
}

// question is the call of a filter to rld.
type question = service.RateLimitRequest

// asked returns the calls of the HTTP filter for a request: before it is passed
// on, and when its stream is done. Nil is no call.
func (c *envoyConfig) asked(t *testing.T, r request) (before, done *question) {
	t.Helper()
	for _, entry := range c.rateLimits(t, r) {
		d := c.descriptor(t, entry, r)
		if d == nil {
			continue
		}
		to := &before
		if entry.GetApplyOnStreamDone() {
			to = &done
		}
		if *to == nil {
			// Without filter state its hits_addend is 0, which means 1.
			*to = &question{Domain: c.limits.GetDomain()}
		}
		(*to).Descriptors = append((*to).Descriptors, d)
	}
	return before, done
}

// rateLimits returns the rate limits of the first route that matches. Those of
// the route itself have no effect beside those of its filter settings.
func (c *envoyConfig) rateLimits(t *testing.T, r request) []*route.RateLimit {
	t.Helper()
	for _, one := range c.routes.GetVirtualHosts()[0].GetRoutes() {
		if !matches(t, one.GetMatch(), r.path) {
			continue
		}
		if a := one.GetTypedPerFilterConfig()["envoy.filters.http.ratelimit"]; a != nil {
			return unpack(t, a).(*limits.RateLimitPerRoute).GetRateLimits()
		}
		for _, entry := range one.GetRoute().GetRateLimits() {
			if entry.GetHitsAddend() != nil || entry.GetApplyOnStreamDone() {
				t.Fatalf("the route of %s has fields that Envoy reads in its filter settings alone", r.path)
			}
		}
		return one.GetRoute().GetRateLimits()
	}
	t.Fatalf("no route for %s", r.path)
	return nil
}

func matches(t *testing.T, m *route.RouteMatch, path string) bool {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	switch s := m.GetPathSpecifier().(type) {
	case *route.RouteMatch_Path:
		return path == s.Path
	case *route.RouteMatch_Prefix:
		return strings.HasPrefix(path, s.Prefix)
	case *route.RouteMatch_PathSeparatedPrefix:
		return path == s.PathSeparatedPrefix || strings.HasPrefix(path, s.PathSeparatedPrefix+"/")
	case *route.RouteMatch_SafeRegex:
		return fullMatch(s.SafeRegex.GetRegex(), path)
	}
	t.Fatalf("the match %v is not known here", m)
	return false
}

// fullMatch reports whether a text as a whole matches, as Envoy requires.
func fullMatch(regex, text string) bool {
	return regexp.MustCompile("^(?:" + regex + ")$").MatchString(text)
}

// descriptor returns the descriptor of a rate limit, nil if one of its actions
// gives no entry.
func (c *envoyConfig) descriptor(t *testing.T, entry *route.RateLimit, r request) *common.RateLimitDescriptor {
	t.Helper()
	d := new(common.RateLimitDescriptor)
	for _, a := range entry.GetActions() {
		key, value, ok := act(t, a, r)
		if !ok {
			return nil
		}
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	if h := entry.GetHitsAddend(); h != nil {
		hits, ok := c.hits(t, h, r)
		if !ok {
			return nil
		}
		d.HitsAddend = wrapperspb.UInt64(hits)
	}
	if o := entry.GetLimit(); o != nil {
		d.Limit = c.override(t, o)
	}
	return d
}

func act(t *testing.T, a *route.RateLimit_Action, r request) (key, value string, ok bool) {
	t.Helper()
	switch {
	case a.GetRemoteAddress() != nil:
		return "remote_address", r.address, true
	case a.GetGenericKey() != nil:
		return a.GetGenericKey().GetDescriptorKey(), a.GetGenericKey().GetDescriptorValue(), true
	case a.GetRequestHeaders() != nil:
		value, ok = r.header[a.GetRequestHeaders().GetHeaderName()]
		return a.GetRequestHeaders().GetDescriptorKey(), value, ok
	case a.GetHeaderValueMatch() != nil:
		m := a.GetHeaderValueMatch()
		all := true
		for _, h := range m.GetHeaders() {
			all = all && hasHeader(t, h, r)
		}
		return m.GetDescriptorKey(), m.GetDescriptorValue(), all == (m.GetExpectMatch() == nil || m.GetExpectMatch().GetValue())
	}
	t.Fatalf("the action %v is not known here", a)
	return "", "", false
}

// hasHeader reports whether a request has a header as h wants it.
func hasHeader(t *testing.T, h *route.HeaderMatcher, r request) bool {
	t.Helper()
	value, has := r.header[h.GetName()]
	switch m := h.GetHeaderMatchSpecifier().(type) {
	case *route.HeaderMatcher_PresentMatch:
		return has == m.PresentMatch
	case *route.HeaderMatcher_StringMatch:
		regex := m.StringMatch.GetSafeRegex().GetRegex()
		if h.GetName() != ":path" || regex == "" {
			break
		}
		return value == "" && fullMatch(regex, r.path)
	}
	t.Fatalf("%v is not known here", h)
	return false
}

var dynamic = regexp.MustCompile(`^%DYNAMIC_METADATA\((\w+):(\w+)\)%$`)

// hits returns the hits of a descriptor. A format whose value is no number
// leaves the descriptor out.
func (c *envoyConfig) hits(t *testing.T, h *route.RateLimit_HitsAddend, r request) (uint64, bool) {
	t.Helper()
	if h.GetFormat() == "" {
		return h.GetNumber().GetValue(), true
	}
	name := dynamic.FindStringSubmatch(h.GetFormat())
	if name == nil {
		t.Fatalf("the format %s is not known here", h.GetFormat())
	}
	for _, rule := range filterOf[*tometadata.Config](t, c).GetResponseRules() {
		to := rule.GetOnHeaderPresent()
		if to.GetMetadataNamespace() != name[1] || to.GetKey() != name[2] {
			continue
		}
		n, err := strconv.ParseUint(r.response[rule.GetHeader()], 10, 64)
		return n, err == nil
	}
	t.Fatalf("nothing sets %s", h.GetFormat())
	return 0, false
}

// override returns the limit that comes with the request.
func (c *envoyConfig) override(t *testing.T, o *route.RateLimit_Override) *common.RateLimitDescriptor_RateLimitOverride {
	t.Helper()
	at := o.GetDynamicMetadata().GetMetadataKey()
	for _, m := range filterOf[*setmetadata.Config](t, c).GetMetadata() {
		if m.GetMetadataNamespace() != at.GetKey() {
			continue
		}
		value := structpb.NewStructValue(m.GetValue())
		for _, step := range at.GetPath() {
			value = value.GetStructValue().GetFields()[step.GetKey()]
		}
		fields := value.GetStructValue().GetFields()
		unit, ok := kind.RateLimitUnit_value[fields["unit"].GetStringValue()]
		n := fields["requests_per_unit"].GetNumberValue()
		if !ok || n < 1 || n != float64(uint32(n)) {
			t.Fatalf("%v is no limit", value)
		}
		return &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(n), Unit: kind.RateLimitUnit(unit)}
	}
	t.Fatalf("nothing sets %v", at)
	return nil
}

// connection returns the call of the network filter for a connection.
func (c *envoyConfig) connection(address string) *question {
	q := &question{Domain: c.tcp.GetDomain()}
	for _, d := range c.tcp.GetDescriptors() {
		one := new(common.RateLimitDescriptor)
		for _, e := range d.GetEntries() {
			value := strings.ReplaceAll(e.GetValue(), "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", address)
			one.Entries = append(one.Entries, &common.RateLimitDescriptor_Entry{Key: e.GetKey(), Value: value})
		}
		q.Descriptors = append(q.Descriptors, one)
	}
	return q
}

// added returns headers of an answer by their names.
func added(headers []*core.HeaderValue) map[string]string {
	out := make(map[string]string)
	for _, h := range headers {
		out[strings.ToLower(h.GetKey())] = h.GetValue()
	}
	return out
}

func (r request) String() string { return fmt.Sprintf("%s of %s with %v", r.path, r.address, r.header) }
