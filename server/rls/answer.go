package rls

import (
	"math"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/message"
)

// The fields of RateLimitResponse, its DescriptorStatus and its RateLimit.
const (
	responseOverall  = 1<<3 | message.Varint
	responseStatuses = 2<<3 | message.Len
	responseHeaders  = 3<<3 | message.Len
	responseMetadata = 6<<3 | message.Len

	statusCode      = 1<<3 | message.Varint
	statusLimit     = 2<<3 | message.Len
	statusRemaining = 3<<3 | message.Varint
	statusReset     = 4<<3 | message.Len

	limitRequests   = 1<<3 | message.Varint
	limitUnitField  = 2<<3 | message.Varint
	limitName       = 3<<3 | message.Len
	limitMultiplier = 4<<3 | message.Len
)

const (
	codeOK   = uint64(ratelimitv3.RateLimitResponse_OK)
	codeOver = uint64(ratelimitv3.RateLimitResponse_OVER_LIMIT)
)

// responseBytes is the approximate size of a response per descriptor.
const responseBytes = 64

// unlimitedRemaining is the remaining of an unlimited rule in an answer.
const unlimitedRemaining = math.MaxUint32

// appendResponse appends the answer to a decided question.
func (s *Service) appendResponse(b []byte, q *question) []byte {
	c := q.draft.Call
	overall := codeOver
	if c.Decision.Allowed || s.settings.Shadow {
		overall = codeOK
	}
	b = message.AppendUint(b, responseOverall, overall)
	for i := range c.Statuses {
		b = appendStatus(b, &c.Statuses[i])
	}
	b = s.appendHeaders(b, c, overall == codeOver)
	if s.settings.DynamicMetadata {
		b = message.AppendBytes(b, responseMetadata, metadata(q))
	}
	return b
}

func appendStatus(b []byte, st *node.Status) []byte {
	b, at := message.Open(b, responseStatuses)
	b = message.AppendUint(b, statusCode, codeOf(st))
	if st.Limit != nil {
		b = appendLimit(b, st.Limit)
	}
	b = message.AppendUint(b, statusRemaining, uint64(remaining(st)))
	if st.Limit != nil {
		var reset int
		b, reset = message.Open(b, statusReset)
		b = message.AppendUint(b, 1<<3|message.Varint, server.Seconds(st.Reset))
		b = message.Close(b, reset)
	}
	return message.Close(b, at)
}

func appendLimit(b []byte, l *rules.Limit) []byte {
	b, at := message.Open(b, statusLimit)
	b = message.AppendUint(b, limitRequests, uint64(l.Requests))
	b = message.AppendUint(b, limitUnitField, limitUnit(l.Unit))
	b = message.AppendText(b, limitName, l.Name)
	if l.Multiplier > 1 {
		var wrapper int
		b, wrapper = message.Open(b, limitMultiplier)
		b = message.AppendUint(b, wrapperValue, uint64(l.Multiplier))
		b = message.Close(b, wrapper)
	}
	return message.Close(b, at)
}

// codeOf returns a descriptor's code: OK for one whose rule is in shadow mode.
func codeOf(st *node.Status) uint64 {
	if st.Refuses() {
		return codeOver
	}
	return codeOK
}

// remaining returns limit_remaining: 0 when over, in shadow mode too.
func remaining(st *node.Status) uint32 {
	switch {
	case st.Unlimited:
		return unlimitedRemaining
	case st.Over:
		return 0
	}
	return uint32(min(st.Remaining, math.MaxUint32))
}
