package web

import (
	"strconv"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
)

// appendMessage appends the sentence of a refusal: "rate limit exceeded: 100
// of 100 requests per minute used; retry in 17s". It holds nothing that JSON
// would have to escape.
func (v *verdict) appendMessage(b []byte) []byte {
	if v.closed {
		b = append(b, "the owner of this strict key does not answer, and on_failure denies the call; retry in "...)
		return append(strconv.AppendUint(b, v.retryAfter, 10), 's')
	}
	if s := v.limited(); s != nil && v.never {
		return appendNever(b, v.hits(), quota.Of(s.Limit).Capacity())
	}
	b = append(b, "rate limit exceeded"...)
	if s := v.limited(); s != nil {
		b = appendUse(append(b, ": "...), s)
		if hits := v.hits(); hits > 1 {
			b = append(b, ", "...)
			b = strconv.AppendUint(b, hits, 10)
			b = append(b, " more asked for"...)
		}
	}
	b = append(b, "; retry in "...)
	b = strconv.AppendUint(b, v.retryAfter, 10)
	return append(b, 's')
}

// appendNever appends the sentence of a refusal that no waiting helps. Hits
// that are fewer than the limit holds never fit with others of their call on
// the same counter.
func appendNever(b []byte, hits, size uint64) []byte {
	if size == 0 {
		return append(b, "this limit is 0: everything is refused"...)
	}
	if hits > size {
		b = append(strconv.AppendUint(b, hits, 10), " hits never fit"...)
	} else {
		b = append(b, "the hits of this call never fit together"...)
	}
	b = append(b, ": the limit holds "...)
	return append(strconv.AppendUint(b, size, 10), "; ask for fewer"...)
}

// hits is the number of hits of the binding descriptor.
func (v *verdict) hits() uint64 {
	if v.binding >= len(v.x.call.Descriptors) {
		return 0
	}
	return v.x.call.Descriptors[v.binding].Hits
}

// appendUse describes the used part of a limit, in the terms of its algorithm.
func appendUse(b []byte, s *node.Status) []byte {
	size := quota.Of(s.Limit).Capacity()
	used := size - min(s.Remaining, size)
	b = strconv.AppendUint(b, used, 10)
	b = append(b, " of "...)
	b = strconv.AppendUint(b, size, 10)
	switch f := quota.Of(s.Limit); {
	case f.Delays():
		b = append(b, " places in the queue taken, emptied by "...)
		b = strconv.AppendUint(b, uint64(s.Limit.Requests), 10)
	case f.Drains():
		b = append(b, " tokens used, refilled with "...)
		b = strconv.AppendUint(b, uint64(s.Limit.Requests), 10)
	default:
		b = append(b, " requests"...)
	}
	b = append(b, " per "...)
	if m := s.Limit.Multiplier; m > 1 {
		b = strconv.AppendUint(b, uint64(m), 10)
		b = append(b, ' ')
		b = append(append(b, s.Limit.Unit.String()...), 's')
	} else {
		b = append(b, s.Limit.Unit.String()...)
	}
	if quota.Of(s.Limit).Drains() {
		return b
	}
	return append(b, " used"...)
}
