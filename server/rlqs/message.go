package rlqs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/rlqs/session"
)

// fillInterval is the time in which a token bucket gets one token more: none
// while an assignment lives. In whole seconds, as Envoy reads no parts of them.
const fillInterval = 365 * 24 * time.Hour

// frame is a RateLimitQuotaUsageReports as it came.
type frame struct{ text string }

// ReadMessage keeps the message for the reader.
func (f *frame) ReadMessage(text string) { f.text = text }

// input returns the fault of a message. Nothing of it is applied.
func input(format string, args ...any) error {
	return &node.InputError{Descriptor: -1, Entry: -1, Problem: fmt.Sprintf(format, args...)}
}

// read reads the reports of a message on a stream of a domain, "" before the
// first message.
func read(text, domain string) (in string, usages []session.Usage, err error) {
	var m quotav3.RateLimitQuotaUsageReports
	if err := proto.Unmarshal([]byte(text), &m); err != nil {
		return "", nil, input("malformed RateLimitQuotaUsageReports: %v", err)
	}
	switch {
	case domain == "" && m.Domain == "":
		return "", nil, input("the first message of a stream has no domain")
	case domain != "" && m.Domain != "" && m.Domain != domain:
		return "", nil, input("domain %q on a stream of domain %q: open another stream for it", m.Domain, domain)
	case len(m.BucketQuotaUsages) == 0:
		return "", nil, input("no bucket_quota_usages, want one at least")
	}
	in = cmp.Or(domain, m.Domain)
	usages = make([]session.Usage, 0, len(m.BucketQuotaUsages))
	for i, r := range m.BucketQuotaUsages {
		u, err := usage(in, r)
		if err != nil {
			return "", nil, input("bucket_quota_usages %d: %v", i, err)
		}
		usages = append(usages, u)
	}
	return in, usages, nil
}

// usage reads the report on a bucket.
func usage(domain string, r *quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage) (u session.Usage, err error) {
	ids := r.GetBucketId().GetBucket()
	if len(ids) == 0 {
		return u, input("no bucket_id, want one entry at least")
	}
	for _, k := range slices.Sorted(maps.Keys(ids)) {
		if k == "" || ids[k] == "" {
			return u, input("bucket_id with an empty key or value")
		}
		u.ID = append(u.ID, rules.Entry{Key: k, Value: ids[k]})
	}
	c := node.Call{Domain: domain, Descriptors: []rules.Descriptor{{Entries: u.ID}}}
	if err := c.Validate(); err != nil {
		return u, err
	}
	if d := r.TimeElapsed; d != nil {
		if err := d.CheckValid(); err != nil {
			return u, input("time_elapsed: %v", err)
		}
		if u.Elapsed = d.AsDuration(); u.Elapsed < 0 {
			return u, input("time_elapsed is %v, want 0 or more", u.Elapsed)
		}
	}
	u.Allowed, u.Denied = r.NumRequestsAllowed, r.NumRequestsDenied
	if most := max(u.Allowed, u.Denied); most > math.MaxUint32 {
		return u, input("%d requests, want at most %d", most, uint64(math.MaxUint32))
	}
	return u, nil
}

// write returns actions as a RateLimitQuotaResponse.
func write(actions []session.Action) ([]byte, error) {
	out := &quotav3.RateLimitQuotaResponse{}
	for i := range actions {
		out.BucketAction = append(out.BucketAction, action(&actions[i]))
	}
	return proto.Marshal(out)
}

func action(a *session.Action) *quotav3.RateLimitQuotaResponse_BucketAction {
	type (
		bucketAction = quotav3.RateLimitQuotaResponse_BucketAction
		assigned     = quotav3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_
		abandoned    = quotav3.RateLimitQuotaResponse_BucketAction_AbandonAction_
	)
	out := &bucketAction{BucketId: &quotav3.BucketId{Bucket: make(map[string]string, len(a.ID))}}
	for _, e := range a.ID {
		out.BucketId.Bucket[e.Key] = e.Value
	}
	if a.Kind == session.Abandon {
		out.BucketAction = &abandoned{AbandonAction: &quotav3.RateLimitQuotaResponse_BucketAction_AbandonAction{}}
		return out
	}
	out.BucketAction = &assigned{QuotaAssignmentAction: &quotav3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
		AssignmentTimeToLive: durationpb.New(a.TTL), RateLimitStrategy: strategy(a),
	}}
	return out
}

func strategy(a *session.Action) *typev3.RateLimitStrategy {
	switch a.Kind {
	case session.AllowAll:
		return blanket(typev3.RateLimitStrategy_ALLOW_ALL)
	case session.DenyAll:
		return blanket(typev3.RateLimitStrategy_DENY_ALL)
	}
	// Envoy keeps the tokens of an equal assignment. It compares the sizes and
	// the nanoseconds of the interval, and fills by its seconds: so these
	// nanoseconds are the number of the assignment.
	serial := time.Duration(a.Serial % uint32(time.Second))
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_TokenBucket{TokenBucket: &typev3.TokenBucket{
		MaxTokens: uint32(a.Hits), TokensPerFill: wrapperspb.UInt32(1), FillInterval: durationpb.New(fillInterval + serial),
	}}}
}

func blanket(r typev3.RateLimitStrategy_BlanketRule) *typev3.RateLimitStrategy {
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_BlanketRule_{BlanketRule: r}}
}
