package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// Field is a header field of an answer. Names are in the canonical form of
// net/http; the wire does not care.
type Field struct{ Name, Value string }

// fields returns the header fields of a decision.
func (v *verdict) fields() []Field {
	out := []Field{{"Cache-Control", "no-store"}}
	add := func(name string, value any) { out = append(out, Field{name, fmt.Sprint(value)}) }
	if v.allowed {
		add("Content-Type", jsonType)
	} else {
		add("Content-Type", problemType)
		add("Retry-After", v.retryAfter)
	}
	if policies, limits := v.rateLimit(); len(policies) > 0 {
		add("Ratelimit-Policy", strings.Join(policies, ", "))
		add("Ratelimit", strings.Join(limits, ", "))
	}
	if s := v.limited(); s != nil && v.x.legacy {
		add("X-Ratelimit-Limit", s.Limit.Requests)
		add("X-Ratelimit-Remaining", s.Remaining)
		add("X-Ratelimit-Reset", v.resetAt(s))
		add("X-Ratelimit-Window", windowSeconds(s))
		add("X-Ratelimit-Policy", fmt.Sprintf("%d;w=%d", s.Limit.Requests, windowSeconds(s)))
	}
	switch {
	case v.settings.Shadow:
		add("X-Ratelimit-Status", "disabled")
	case v.degraded != node.NotDegraded:
		add("X-Ratelimit-Status", "degraded")
	}
	if v.delay > 0 {
		add("X-Ratelimit-Delay-Ms", server.Millis(v.delay))
	}
	return out
}

// rateLimit returns the items of RateLimit-Policy and RateLimit, one for each
// name of a limit. Of more than maxItems the first are listed, and the binding
// one in any case.
func (v *verdict) rateLimit() (policies, limits []string) {
	statuses := v.x.call.Statuses
	var items []int
	for i := range statuses {
		if statuses[i].Limit == nil {
			continue
		}
		// To the caller of a list, a name is one limit.
		name := displayName(&statuses[i])
		at := slices.IndexFunc(items, func(k int) bool { return displayName(&statuses[k]) == name })
		switch {
		case at >= 0:
			if v.binds(i, items[at]) {
				items[at] = i
			}
		case len(items) < maxItems:
			items = append(items, i)
		case i == v.binding:
			items[maxItems-1] = i
		}
	}
	for _, i := range items {
		s := &statuses[i]
		policies = append(policies, policyItem(displayName(s), uint64(s.Limit.Requests), windowSeconds(s)))
		limits = append(limits, limitItem(displayName(s), s.Remaining, effective(s)))
	}
	return policies, limits
}

// binds reports whether status i binds the call more than status k: the
// binding one, then one that refuses, then the tighter one.
func (v *verdict) binds(i, k int) bool {
	a, b := &v.x.call.Statuses[i], &v.x.call.Statuses[k]
	switch {
	case i == v.binding || k == v.binding:
		return i == v.binding
	case a.Refuses() != b.Refuses():
		return a.Refuses()
	}
	return tighter(a, b)
}

// effective returns the end of the window that the remaining hits last for, in
// seconds. Where the hits did not fit, it is the time at which they would: by
// the draft, Retry-After must not come before the end of the effective window.
// Hits that never fit have no such time; the remaining ones last until the
// reset.
func effective(s *node.Status) uint64 {
	if s.Over && !s.Never {
		return max(1, server.Seconds(s.Retry))
	}
	return server.Seconds(s.Reset)
}

// windowSeconds is the length of the window; units are whole seconds.
func windowSeconds(s *node.Status) uint64 { return uint64(s.Limit.Window()) / 1_000 }
