package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// Field is a header field of an answer. Names are in the canonical form of
// net/http; the wire does not care.
type Field struct{ Name, Value string }

// setFields sets the header fields of a decision.
func (v *verdict) setFields(header http.Header) {
	var room [8]Field
	fields := v.fields(room[:0])
	values := make([]string, len(fields))
	for i, f := range fields {
		values[i] = f.Value
		header[f.Name] = values[i : i+1 : i+1]
	}
}

// fields appends the header fields of a decision, with names in the form of
// net/http.
func (v *verdict) fields(out []Field) []Field {
	contentType := jsonType
	if !v.allowed {
		contentType = problemType
	}
	out = append(out, Field{"Cache-Control", "no-store"}, Field{"Content-Type", contentType})
	add := func(name string, value any) { out = append(out, Field{name, fmt.Sprint(value)}) }
	if v.retryAfter > 0 {
		add("Retry-After", v.retryAfter)
	}
	out = v.draftFields(out)
	if v.x.legacy {
		out = append(out, v.legacyFields()...)
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

// draftFields appends the fields of draft-ietf-httpapi-ratelimit-headers, none
// without an enforced limit.
func (v *verdict) draftFields(out []Field) []Field {
	var list [maxItems]int
	items := v.rateLimit(list[:0])
	if len(items) == 0 {
		return out
	}
	var room [fieldRoom]byte
	write := func(one func(b []byte, s *node.Status) []byte) string {
		b := room[:0]
		for n, i := range items {
			if n > 0 {
				b = append(b, ", "...)
			}
			b = one(b, &v.x.call.Statuses[i])
		}
		return string(b)
	}
	policies := write(func(b []byte, s *node.Status) []byte {
		hits, seconds := server.Quota(s.Limit)
		return appendPolicy(b, displayName(s), hits, seconds)
	})
	limits := write(func(b []byte, s *node.Status) []byte {
		return appendLimit(b, displayName(s), s.Remaining, effective(s))
	})
	return append(out, Field{"Ratelimit-Policy", policies}, Field{"Ratelimit", limits})
}

// fieldRoom is the length of most fields, in bytes.
const fieldRoom = 256

// legacyFields returns the X-RateLimit-* fields of the binding limit, none if
// it is not enforced.
func (v *verdict) legacyFields() []Field {
	s := v.limited()
	if s == nil || !v.enforced(s) {
		return nil
	}
	hits, seconds := server.Quota(s.Limit)
	return []Field{
		{"X-Ratelimit-Limit", fmt.Sprint(hits)},
		{"X-Ratelimit-Remaining", fmt.Sprint(s.Remaining)},
		{"X-Ratelimit-Reset", fmt.Sprint(v.resetAt(s))},
		{"X-Ratelimit-Window", fmt.Sprint(seconds)},
		{"X-Ratelimit-Policy", fmt.Sprintf("%d;w=%d", hits, seconds)},
	}
}

// enforced reports whether the limit of a status denies calls. The client of
// one in shadow mode gets no headers: they would change what it sends.
func (v *verdict) enforced(s *node.Status) bool {
	return s.Limit != nil && !s.Limit.Shadow && !v.settings.Shadow
}

// rateLimit appends the statuses of the items of RateLimit-Policy and
// RateLimit, one for each name of an enforced limit. Of more than maxItems the
// first are listed, and the binding one in any case.
func (v *verdict) rateLimit(items []int) []int {
	statuses := v.x.call.Statuses
	for i := range statuses {
		if !v.enforced(&statuses[i]) {
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
	return items
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
