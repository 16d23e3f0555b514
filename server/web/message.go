package web

import (
	"fmt"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
)

// message returns the sentence of a refusal: "rate limit exceeded: 100 of 100
// requests per minute used; retry in 17s".
func (v *verdict) message() string {
	s, use := v.limited(), ""
	switch {
	case v.closed:
		return fmt.Sprintf("the owner of this strict key does not answer, and on_failure denies the call; retry in %ds",
			v.retryAfter)
	case s != nil && v.never:
		return neverMessage(v.hits(), quota.Of(s.Limit).Capacity())
	case s != nil:
		use = ": " + useOf(s)
		if hits := v.hits(); hits > 1 {
			use += fmt.Sprintf(", %d more asked for", hits)
		}
	}
	return fmt.Sprintf("rate limit exceeded%s; retry in %ds", use, v.retryAfter)
}

// neverMessage returns the sentence of a refusal that no waiting helps. Hits
// that are fewer than the limit holds never fit with others of their call on
// the same counter.
func neverMessage(hits, size uint64) string {
	if size == 0 {
		return "this limit is 0: everything is refused"
	}
	subject := "the hits of this call never fit together"
	if hits > size {
		subject = fmt.Sprintf("%d hits never fit", hits)
	}
	return fmt.Sprintf("%s: the limit holds %d; ask for fewer", subject, size)
}

// hits is the number of hits of the binding descriptor.
func (v *verdict) hits() uint64 {
	if v.binding >= len(v.x.call.Descriptors) {
		return 0
	}
	return v.x.call.Descriptors[v.binding].Hits
}

// useOf describes the used part of a limit, in the terms of its algorithm.
func useOf(s *node.Status) string {
	f := quota.Of(s.Limit)
	size := f.Capacity()
	used := size - min(s.Remaining, size)
	per := s.Limit.Unit.String()
	if m := s.Limit.Multiplier; m > 1 {
		per = fmt.Sprintf("%d %ss", m, per)
	}
	switch {
	case f.Delays():
		return fmt.Sprintf("%d of %d places in the queue taken, emptied by %d per %s", used, size, s.Limit.Requests, per)
	case f.Drains():
		return fmt.Sprintf("%d of %d tokens used, refilled with %d per %s", used, size, s.Limit.Requests, per)
	}
	return fmt.Sprintf("%d of %d requests per %s used", used, size, per)
}
