package web

import (
	"strconv"

	"github.com/georld/rld/node"
)

// appendFields sets the header fields of a decision.
func (v *verdict) appendFields(f *fields) {
	f.set("Cache-Control", "no-store")
	if v.allowed {
		f.set("Content-Type", jsonType)
	} else {
		f.set("Content-Type", problemType)
		f.text = strconv.AppendUint(f.text, v.retryAfter, 10)
		f.end("Retry-After")
	}
	v.appendRateLimit(f)
	if v.x.ask.legacy {
		v.appendLegacy(f)
	}
	switch {
	case v.settings.Shadow:
		f.set("X-Ratelimit-Status", "disabled")
	case v.degraded != node.NotDegraded:
		f.set("X-Ratelimit-Status", "degraded")
	}
	if v.delay > 0 {
		f.text = strconv.AppendUint(f.text, millis(v.delay), 10)
		f.end("X-Ratelimit-Delay-Ms")
	}
}

// appendRateLimit sets RateLimit-Policy and RateLimit, an item for each name
// of a limit. Of more than maxItems the first are listed, and the binding one
// in any case.
func (v *verdict) appendRateLimit(f *fields) {
	statuses := v.x.call.Statuses
	var space [maxItems]int
	items := space[:0]
	for i := range statuses {
		if statuses[i].Limit == nil {
			continue
		}
		at := v.listed(items, i)
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
	if len(items) == 0 {
		return
	}
	start := len(f.text)
	for _, i := range items {
		f.text = appendPolicyItem(f.text, start, policy(&statuses[i]))
	}
	f.end("Ratelimit-Policy")
	start = len(f.text)
	for _, i := range items {
		f.text = appendLimitItem(f.text, start, serviceLimit(&statuses[i]))
	}
	f.end("Ratelimit")
}

// listed returns where items has a status with the name of status i, -1 when
// it has none: to the caller of a list, a name is one limit.
func (v *verdict) listed(items []int, i int) int {
	statuses := v.x.call.Statuses
	name := displayName(&statuses[i])
	for at, k := range items {
		if displayName(&statuses[k]) == name {
			return at
		}
	}
	return -1
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

func policy(s *node.Status) policyItem {
	return policyItem{
		Name:   displayName(s),
		Quota:  uint64(s.Limit.Requests),
		Window: windowSeconds(s),
	}
}

// serviceLimit returns the remaining hits and the end of their window. Where
// the hits did not fit, it is the time at which they would: by the draft,
// Retry-After must not come before the end of the effective window. Hits that
// never fit have no such time; the remaining ones last until the reset.
func serviceLimit(s *node.Status) limitItem {
	effective := seconds(s.Reset)
	if s.Over && !s.Never {
		effective = max(1, seconds(s.Retry))
	}
	return limitItem{Name: displayName(s), Remaining: s.Remaining, Effective: effective}
}

// windowSeconds is the length of the window; units are whole seconds.
func windowSeconds(s *node.Status) uint64 { return uint64(s.Limit.Window()) / 1_000 }

// appendLegacy sets the X-RateLimit-* of the binding descriptor.
func (v *verdict) appendLegacy(f *fields) {
	s := v.limited()
	if s == nil {
		return
	}
	f.text = strconv.AppendUint(f.text, uint64(s.Limit.Requests), 10)
	f.end("X-Ratelimit-Limit")
	f.text = strconv.AppendUint(f.text, s.Remaining, 10)
	f.end("X-Ratelimit-Remaining")
	f.text = strconv.AppendInt(f.text, v.resetAt(s), 10)
	f.end("X-Ratelimit-Reset")
	f.text = strconv.AppendUint(f.text, windowSeconds(s), 10)
	f.end("X-Ratelimit-Window")
	f.text = strconv.AppendUint(f.text, uint64(s.Limit.Requests), 10)
	f.text = append(f.text, ";w="...)
	f.text = strconv.AppendUint(f.text, windowSeconds(s), 10)
	f.end("X-Ratelimit-Policy")
}
