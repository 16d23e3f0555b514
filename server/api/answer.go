package api

import (
	"google.golang.org/grpc/status"

	"github.com/georld/rld/node"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/message"
)

// The fields of CheckResponse, Status, Limit and Error.
const (
	answerID        = 1<<3 | message.Varint
	answerCode      = 2<<3 | message.Varint
	answerStatuses  = 3<<3 | message.Len
	answerRefusedBy = 4<<3 | message.Len
	answerError     = 5<<3 | message.Len
	answerWouldDeny = 6<<3 | message.Varint

	statusCode      = 1<<3 | message.Varint
	statusRule      = 2<<3 | message.Len
	statusLimit     = 3<<3 | message.Len
	statusRemaining = 4<<3 | message.Varint
	statusReset     = 5<<3 | message.Len
	statusRetry     = 6<<3 | message.Len
	statusDelay     = 7<<3 | message.Len
	statusMode      = 8<<3 | message.Varint
	statusDegraded  = 9<<3 | message.Varint
	statusReason    = 10<<3 | message.Len
	statusUnlimited = 11<<3 | message.Varint
	statusRefund    = 12<<3 | message.Len
	statusOver      = 13<<3 | message.Len

	limitRequests   = 1<<3 | message.Varint
	limitUnit       = 2<<3 | message.Varint
	limitMultiplier = 3<<3 | message.Varint
	limitAlgorithm  = 4<<3 | message.Len
	limitBurst      = 5<<3 | message.Varint
	limitName       = 6<<3 | message.Len

	errorCode    = 1<<3 | message.Varint
	errorMessage = 2<<3 | message.Len
)

// answerBytes is about what an answer needs for each descriptor.
const answerBytes = 128

// refusedByOverride stands in for the path of a rule where a limit override
// refused a call that no rule matched.
const refusedByOverride = "override"

// appendAnswer appends the CheckResponse to a decided question. In the global
// shadow mode the call passes, and the statuses stay.
func (s *Service) appendAnswer(b []byte, q *question) []byte {
	c := q.draft.Call
	b = message.AppendUint(b, answerID, q.id)
	allowed := c.Decision.Allowed || s.settings.Shadow
	b = message.AppendUint(b, answerCode, code(allowed))
	for i := range c.Statuses {
		var at int
		b, at = message.Open(b, answerStatuses)
		b = appendStatus(b, &c.Statuses[i])
		if i < len(c.Receipts) && c.Receipts[i].Hits > 0 {
			b = s.appendToken(b, &c.Receipts[i])
		}
		b = message.Close(b, at)
	}
	if !allowed {
		b = message.AppendText(b, answerRefusedBy, refusedBy(c))
	}
	return message.AppendBool(b, answerWouldDeny, server.WouldDeny(c, s.settings.Shadow))
}

// appendFault appends the CheckResponse to a question that was not answered.
func appendFault(b []byte, id uint64, st *status.Status) []byte {
	b = message.AppendUint(b, answerID, id)
	b, at := message.Open(b, answerError)
	b = message.AppendUint(b, errorCode, uint64(st.Code()))
	b = message.AppendText(b, errorMessage, st.Message())
	return message.Close(b, at)
}

// appendToken appends the token of a receipt.
func (s *Service) appendToken(b []byte, r *node.Receipt) []byte {
	b, at := message.Open(b, statusRefund)
	b = s.sealer.Append(b, &replica.RefundToken{Incarnation: s.engine.Incarnation(), Receipt: *r})
	return message.Close(b, at)
}

func appendStatus(b []byte, st *node.Status) []byte {
	b = message.AppendUint(b, statusCode, code(!st.Refuses()))
	if st.Rule != nil {
		b = message.AppendText(b, statusRule, st.Rule.Path)
	}
	if st.Limit != nil {
		b = appendLimit(b, st.Limit)
	}
	b = message.AppendUint(b, statusRemaining, st.Remaining)
	if st.Limit != nil {
		b = message.AppendDuration(b, statusReset, st.Reset)
	}
	if st.Refuses() && !st.Never {
		b = message.AppendDuration(b, statusRetry, st.Retry)
	}
	if st.Delay > 0 {
		b = message.AppendDuration(b, statusDelay, st.Delay)
	}
	b = message.AppendUint(b, statusMode, mode(st.Limit))
	b = message.AppendBool(b, statusDegraded, st.Degraded != node.NotDegraded)
	b = message.AppendText(b, statusReason, st.Degraded.String())
	b = message.AppendText(b, statusOver, string(server.ReasonOf(st)))
	return message.AppendBool(b, statusUnlimited, st.Unlimited)
}

func appendLimit(b []byte, l *rules.Limit) []byte {
	b, at := message.Open(b, statusLimit)
	b = message.AppendUint(b, limitRequests, uint64(l.Requests))
	b = message.AppendUint(b, limitUnit, uint64(l.Unit))
	b = message.AppendUint(b, limitMultiplier, uint64(l.Multiplier))
	b = message.AppendText(b, limitAlgorithm, l.Algorithm.String())
	b = message.AppendUint(b, limitBurst, uint64(l.Burst))
	b = message.AppendText(b, limitName, l.Name)
	return message.Close(b, at)
}

// refusedBy returns the path of the rule that refused a call.
func refusedBy(c *node.Call) string {
	i := c.Decision.Refused
	if i < 0 || i >= len(c.Statuses) {
		return ""
	}
	if r := c.Statuses[i].Rule; r != nil {
		return r.Path
	}
	return refusedByOverride
}

func code(allowed bool) uint64 {
	if allowed {
		return uint64(rldv1.Code_ALLOWED)
	}
	return uint64(rldv1.Code_DENIED)
}

func mode(l *rules.Limit) uint64 {
	switch {
	case l == nil:
	case l.Shadow:
		return uint64(rldv1.Mode_SHADOW)
	case l.Quota:
		return uint64(rldv1.Mode_QUOTA)
	}
	return uint64(rldv1.Mode_ENFORCED)
}
