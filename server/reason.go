package server

import (
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Reason is why hits are over a limit, in the words of the answers.
type Reason string

// The reasons.
const (
	// ReasonLimit: the counted hits use up the limit, or it never holds these.
	ReasonLimit Reason = "limit"
	// ReasonEstimate: the counted hits leave room, and the hits that other
	// daemons have probably admitted since do not.
	ReasonEstimate Reason = "estimate"
	// ReasonRights: this daemon has no rights to what is left of the limit.
	ReasonRights Reason = "rights"
	// ReasonOwner: no owner of the key decided, and on_failure denies.
	ReasonOwner Reason = "owner_unreachable"
	// ReasonBlocked: an operator blocked the key.
	ReasonBlocked Reason = "blocked"
)

// ReasonOf returns why the hits of a status are over its limit, also in shadow
// mode; "" if they are not.
func ReasonOf(s *node.Status) Reason {
	switch {
	case !s.Over:
		return ""
	case s.Blocked:
		return ReasonBlocked
	case s.Never:
		return ReasonLimit
	case s.Gate == node.FailureGate:
		return ReasonOwner
	case s.Gate == node.RightsGate:
		return ReasonRights
	case s.Estimated:
		return ReasonEstimate
	}
	return ReasonLimit
}

// WouldDeny reports whether shadow mode alone admits a decided call: that of
// all calls, or that of a rule.
func WouldDeny(c *node.Call, shadow bool) bool {
	return c.Decision.WouldDeny || shadow && !c.Decision.Allowed
}

// Quota returns a limit as the headers of answers state it: at most hits in
// seconds, rounded up to at least 1. These are those of a window, or the tokens
// of a full bucket and the time in which it fills, so that the remaining hits
// never exceed them.
func Quota(l *rules.Limit) (hits, seconds uint64) {
	f := quota.Of(l)
	length := l.Window()
	if f.Drains() && f.Capacity() > 0 {
		length = f.RefillTime()
	}
	return f.Capacity(), max(1, (uint64(length)+999)/1_000) // no time.Duration: buckets may fill in centuries
}
