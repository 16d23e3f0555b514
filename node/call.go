package node

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
)

// Call is one question of a gateway and its answer: all descriptors are
// checked, then all are charged, or none is. A Call may be used again after
// Reset; it is owned by one goroutine at a time.
type Call struct {
	// Domain and Descriptors are the question, filled in by the edge.
	Domain      string
	Descriptors []rules.Descriptor
	// Peek asks what the call would get, and charges nothing.
	Peek bool

	// Statuses is the answer, one a descriptor in the same order. It is
	// valid until the next Reset or check.
	Statuses []Status
	// Decision is the answer to the whole call.
	Decision Decision

	hits      []Hit
	overrides []rules.Limit
	key       []byte
}

// Reset empties the call and keeps its memory for the next one.
func (c *Call) Reset() {
	c.Domain, c.Peek = "", false
	clear(c.Descriptors)
	c.Descriptors = c.Descriptors[:0]
	// Resolve writes these whole. What they point to until then is the node's.
	c.Statuses, c.hits, c.overrides = c.Statuses[:0], c.hits[:0], c.overrides[:0]
	c.Decision = Decision{}
}

// Decision is the verdict on a whole call.
type Decision struct {
	// Allowed is false when the call is refused. It does not know of the
	// global shadow mode, which is for the edge to apply.
	Allowed bool
	// Refused is the index of the first descriptor that refused, -1 when
	// the call is allowed.
	Refused int
}

// Status is what is known of one descriptor of a call.
type Status struct {
	// Rule is the rule that matched, nil when none did or when an override
	// stands in for a descriptor that no rule matches.
	Rule *rules.Rule
	// Limit is the limit that was applied: the rule's or the override. Nil
	// when nothing limits the descriptor: no match, a whitelist entry, a
	// rule dropped by replaces, or an unlimited one (see Unlimited).
	// It is valid as long as the Statuses.
	Limit *rules.Limit
	// Unlimited says that the rule passes everything and counts nothing.
	Unlimited bool
	// Over says that the hits do not fit the limit, whatever the call's
	// decision and the rule's mode. See Code for what to tell the caller.
	Over bool
	// Never is set when Over: the hits are more than the limit ever holds, so
	// that waiting does not help.
	Never bool
	// Wait says that the hits are for a home to decide that has not been asked,
	// or has not answered: Owner is its incarnation and Within how long it is
	// worth waiting for. Over is false then, and means nothing. See Node.Seek.
	Wait bool
	// Sampled says that the hits are in the sample that Node.Hottest knows.
	Sampled bool
	// Gate says which gates refused the hits, when Over.
	Gate Gate
	// Degraded says why the answer is less than exact, or NotDegraded.
	Degraded Degraded

	charge  bool // set by Decide
	passed  bool // likewise: the call is allowed
	peek    bool // likewise: nothing is tallied
	bounded bool // set by Probe: the rights gate applies
	homed   bool // likewise: a home grants the rights

	// Remaining is what may still pass after the hits of the call up to this
	// descriptor's, rounded down and never optimistic. A refused call leaves it
	// as it is, so it may exceed 0 beside Over when fewer hits would fit. Of
	// what a home elsewhere decides it is as that said, up to ten seconds ago.
	Remaining uint64
	// Reset is the time until the whole limit is available again if nothing
	// more is admitted (fixed windows: until the window ends).
	Reset time.Duration
	// Retry is set when Over and not Never: the time after which the same hits
	// would fit if nothing else came, rounded up to the millisecond.
	Retry time.Duration
	// Delay is how long to hold a passed request back (leaky_bucket), 0 for
	// at once.
	Delay time.Duration
	// Owner and Within are of Wait.
	Owner  crdt.Incarnation
	Within time.Duration

	ref   ref    // set by Probe
	ahead uint64 // likewise: hits of the call that go first on the counter
	// likewise: hits that others are estimated to have been granted
	elsewhere uint64
	room      uint64       // set by Charge: hits that still fit the estimate
	account   *account     // set by Probe; nil if the hit has none or needs none
	rights    uint64       // likewise: that are left, when bounded
	lease     lease.Answer // likewise, when homed
}

// Refuses reports whether the status is an over-limit one to tell the caller:
// over, and not in the rule's shadow mode.
func (s *Status) Refuses() bool { return s.Over && !s.Limit.Shadow }

// Degraded is the reason why an answer is less than exact.
type Degraded uint8

// The reasons. The set grows with the cluster.
const (
	NotDegraded Degraded = iota
	// KeysFull: max_keys live keys are tracked, and this key is new; it
	// shares its rule's overflow counter and may be refused falsely.
	KeysFull
	// CellsFull: the key's log is full of cells, and hits were counted under
	// a later instant than their own and stay counted longer; or there is no
	// room to share the hits with other daemons, which do not know of them.
	CellsFull
	// ClockOff: more than half of the peers have another time, so that this
	// daemon's labels are not theirs and its answers know little of theirs.
	ClockOff
	// NoRights: the daemon holds no part of its own in the rights to the label,
	// and refused what it had not been given: it started a moment ago, has
	// lost its file, was retired, or hears too few of its region.
	NoRights
	// OwnerUnreachable: the home of a strict key did not answer in time, is not
	// known to live, or has too few replicas; on_failure decided.
	OwnerUnreachable
	// CircuitOpen: the home was not asked, as it failed too often; on_failure
	// decided.
	CircuitOpen

	degradedKinds = iota
)

var degradedNames = [...]string{"", "keys_full", "cells_full", "clock_off", "no_rights", "owner_unreachable", "circuit_breaker_open"}

// DegradedReasons lists the reasons, without NotDegraded.
func DegradedReasons() []Degraded {
	return []Degraded{KeysFull, CellsFull, ClockOff, NoRights, OwnerUnreachable, CircuitOpen}
}

// String returns the reason as metrics and answers carry it, "" for none.
func (d Degraded) String() string {
	if int(d) >= len(degradedNames) {
		return "unknown"
	}
	return degradedNames[d]
}
