package node

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
)

// Call is one question of a gateway and its answer: all descriptors are
// checked, then all are charged, or none is. A Call may be used again after
// Reset. One goroutine owns it at a time.
type Call struct {
	// Domain and Descriptors are the question. The edge sets them.
	Domain      string
	Descriptors []rules.Descriptor
	// Peek requests the answer without a charge.
	Peek bool
	// Refundable requests Receipts, unless Peek is set.
	Refundable bool

	// Statuses is the answer, one per descriptor in the same order. It is valid
	// until the next Reset or check.
	Statuses []Status
	// Decision is the answer to the whole call.
	Decision Decision
	// Receipts are the refund tokens of a refundable call, one a descriptor;
	// those without hits refund nothing. They are as long valid as Statuses.
	Receipts []Receipt

	hits      []Hit
	overrides []rules.Limit
	key       []byte
	resets    bool    // a key was reset
	twins     []int32 // the descriptors of the hits behind those of Descriptors
}

// Reset empties the call and keeps its memory for the next one.
func (c *Call) Reset() {
	c.Domain, c.Peek, c.Refundable = "", false, false
	clear(c.Descriptors)
	c.Descriptors = c.Descriptors[:0]
	// Resolve overwrites these. Until then they point to data of the node.
	c.Statuses, c.hits, c.overrides = c.Statuses[:0], c.hits[:0], c.overrides[:0]
	c.Decision, c.Receipts, c.twins = Decision{}, c.Receipts[:0], c.twins[:0]
}

// Decision is the verdict on a whole call.
type Decision struct {
	// Allowed is false if the call is denied. The edge applies the global
	// shadow mode after this.
	Allowed bool
	// WouldDeny is set if the call is allowed because of the shadow mode of a
	// rule alone.
	WouldDeny bool
	// Refused is the index of the first descriptor that denied the call, -1 if
	// it is allowed.
	Refused int
}

// Status is the answer to one descriptor of a call.
type Status struct {
	// Rule is the rule that matched. It is nil if none did, also if an override
	// replaces the missing rule.
	Rule *rules.Rule
	// Limit is the applied limit: the rule's, the override, or that of a
	// blocked key. It is nil if nothing limits the descriptor: no match, a
	// whitelist entry, a rule dropped by replaces, or an unlimited one (see
	// Unlimited). It is valid as long as the Statuses.
	Limit *rules.Limit
	// Unlimited is set if the rule admits everything and counts nothing.
	Unlimited bool
	// Blocked is set if an operator blocked the key: Limit then admits nothing,
	// and the hits are denied in every mode.
	Blocked bool
	// ResetAt is the time, in Unix milliseconds, from which the hits of the key
	// count, because an operator reset it then. It is 0 for other keys.
	ResetAt int64
	// Over is set if the hits do not fit the limit, whatever the decision on
	// the call and the rule's mode.
	Over bool
	// Never is set if Over is, and the hits exceed the capacity of the limit,
	// so that waiting does not help.
	Never bool
	// Wait is set if the owner of the key must decide the hits, and was not
	// asked or has not answered yet. Owner is its incarnation, and Within the
	// time that waiting is worth. Over is then meaningless. See
	// Node.RequestLease.
	Wait bool
	// Sampled is set if the hits are in the sample of Node.Hottest.
	Sampled bool
	// Gate is the set of gates that denied the hits, if Over.
	Gate Gate
	// Estimated is set if the estimate denied the hits, and the counted hits
	// leave room: those that other daemons have probably admitted do not.
	Estimated bool
	// Degraded is the reason for an answer that is less than exact.
	Degraded Degraded

	// Remaining is the hits that still fit after those of the call up to this
	// descriptor, rounded down and never optimistic. A denied call leaves it
	// unchanged, so it may exceed 0 beside Over if fewer hits would fit. For a
	// key with an owner elsewhere it is the owner's latest report, up to ten
	// seconds old.
	Remaining uint64
	// Reset is the time until the whole limit is available again if nothing
	// more is admitted. For fixed windows it is the time until the window ends.
	Reset time.Duration
	// Retry is set if Over is, and Never is not: the time after which the same
	// hits would fit if no others came, rounded up to the millisecond.
	Retry time.Duration
	// Delay is the time for which to hold back an admitted request
	// (leaky_bucket), 0 for none.
	Delay time.Duration
	// Owner and Within belong to Wait.
	Owner  crdt.Incarnation
	Within time.Duration

	probed  probed
	decided decided
}

// probed is the result of Probe for a hit, for use by Charge.
type probed struct {
	ref       ref
	ahead     uint64       // hits of the call that go first on the counter
	elsewhere uint64       // estimated hits of other daemons
	left      uint64       // the part of them that is left to them at the start of a window
	bounded   bool         // the rights gate applies
	failed    bool         // it cannot be asked, and on_failure admits the hits
	homed     bool         // the key has an owner, which decides
	account   *account     // nil if the hit has none or needs none
	rights    uint64       // rights left, if bounded
	lease     lease.Answer // if homed
	room      uint64       // set by Charge: hits that still fit beside the known counts
}

// decided is the result of Decide for a hit, for use by Charge.
type decided struct {
	charge bool // charge the hit
	passed bool // the call is allowed
	peek   bool // count nothing
}

// Refuses reports whether the status denies the call: it is over the limit, and
// not in the rule's shadow mode.
func (s *Status) Refuses() bool { return s.Over && !s.Limit.Shadow }

// Degraded is the reason why an answer is less than exact.
type Degraded uint8

// The reasons.
const (
	NotDegraded Degraded = iota
	// KeysFull: the rule of this new key has no room for one more key, since
	// it has more than its part of max_keys, and the rest is in use or kept for
	// other rules. The key uses its rule's overflow counter and may be denied
	// falsely.
	KeysFull
	// CellsFull: the key's log is full, and hits were counted under a later
	// time than their own, so they count for longer. Or there is no room to
	// replicate the hits, and other daemons do not have them.
	CellsFull
	// ClockOff: more than half of the peers have another time, so the windows
	// of this daemon are not theirs, and its answers lack most of their counts.
	ClockOff
	// Alone: all peers refuse the counts of this daemon, and it has not theirs.
	Alone
	// NoRights: the daemon has no allotment of its own in the window, and
	// on_failure decided all hits beyond the transfers it received. It has just
	// started, lost its file, was retired, or receives from too few daemons of
	// its region.
	NoRights
	// NoCluster: likewise, since the cluster has not begun, or it has not the
	// region of the daemon.
	NoCluster
	// OwnerUnreachable: the owner of a strict key did not answer in time, is
	// not live, or has too few strict voters. on_failure decided.
	OwnerUnreachable
	// CircuitOpen: the owner was not asked, since it failed too often.
	// on_failure decided.
	CircuitOpen

	degradedKinds = iota
)

var degradedNames = []string{"", "keys_full", "cells_full", "clock_off", "alone", "no_rights", "no_cluster", "owner_unreachable", "circuit_breaker_open"}

// DegradedReasons returns the reasons, without NotDegraded.
func DegradedReasons() []Degraded {
	return []Degraded{KeysFull, CellsFull, ClockOff, Alone, NoRights, NoCluster, OwnerUnreachable, CircuitOpen}
}

// String returns the name for metrics and answers, "" for none.
func (d Degraded) String() string { return enum.Name(d, degradedNames...) }
