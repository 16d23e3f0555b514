package web

import (
	"fmt"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// message returns the sentence of a refusal: "rate limit exceeded: 100 of 100
// requests per minute used; retry in 17s".
func (v *verdict) message() string {
	s, use := v.limited(), ""
	switch {
	case v.closed:
		return fmt.Sprintf("%s; retry in %ds", failedText(s), v.retryAfter)
	case s != nil && s.Blocked:
		return "this key is blocked: everything is refused"
	case s != nil && v.never:
		return neverMessage(v.hits(), quota.Of(s.Limit).Capacity())
	case s != nil && s.Gate == node.RightsGate && (s.Degraded == node.NoRights || s.Degraded == node.NoCluster):
		return fmt.Sprintf("this daemon has no allotment of this limit at present, however much of it is used (%s: rld status has the cause); "+
			"retry in %ds", s.Degraded, v.retryAfter)
	case s != nil && (s.Gate == node.RightsGate || s.Gate == node.BothGates && s.Limit.Consistency == rules.Partition):
		use = fmt.Sprintf(": this daemon has rights to %d more of %s", s.Remaining, amountOf(s))
		if hits := v.hits(); hits > 1 {
			use += fmt.Sprintf(", %d asked for", hits)
		}
	case s != nil && server.ReasonOf(s) == server.ReasonEstimate:
		use = ": by estimate, " + useOf(s)
	case s != nil:
		use = ": " + useOf(s)
		if hits := v.hits(); hits > 1 {
			use += fmt.Sprintf(", %d more asked for", hits)
		}
	}
	if s != nil && s.Degraded == node.KeysFull {
		use += " by keys that share a counter, without room for one more key of this rule"
	}
	return fmt.Sprintf("rate limit exceeded%s; retry in %ds", use, v.retryAfter)
}

// failedText describes a refusal because no owner decided, nil for an unknown
// limit.
func failedText(s *node.Status) string {
	why, then := "no owner of this key answers", ", so the call is denied"
	if s == nil {
		return why + then
	}
	switch s.Degraded {
	case node.CircuitOpen:
		why = "the owner of this key failed too often, and is not asked"
	case node.KeysFull:
		why = "this daemon, the owner of this key or its strict voters have no room for one more key of this rule"
	}
	return why + ": on_failure denies the call"
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
	used, per := size-min(s.Remaining, size), perOf(s.Limit)
	switch {
	case f.Delays():
		return fmt.Sprintf("%d of %d places in the queue taken, emptied by %d per %s", used, size, s.Limit.Requests, per)
	case f.Drains():
		return fmt.Sprintf("%d of %d tokens used, refilled with %d per %s", used, size, s.Limit.Requests, per)
	}
	return fmt.Sprintf("%d of %d requests per %s used", used, size, per)
}

// amountOf describes all of a limit, in the terms of its algorithm.
func amountOf(s *node.Status) string {
	f, per := quota.Of(s.Limit), perOf(s.Limit)
	switch size := f.Capacity(); {
	case f.Delays():
		return fmt.Sprintf("%d places in the queue, emptied by %d per %s", size, s.Limit.Requests, per)
	case f.Drains():
		return fmt.Sprintf("%d tokens, refilled with %d per %s", size, s.Limit.Requests, per)
	default:
		return fmt.Sprintf("%d requests per %s", size, per)
	}
}

// perOf returns the window of a limit: "minute" or "10 seconds".
func perOf(l *rules.Limit) string {
	if l.Multiplier > 1 {
		return fmt.Sprintf("%d %ss", l.Multiplier, l.Unit)
	}
	return l.Unit.String()
}
