package api

import "time"

// BreakerState is the state of a circuit breaker.
type BreakerState string

// The states of a circuit breaker.
const (
	// BreakerClosed: calls are sent to the owner.
	BreakerClosed BreakerState = "closed"
	// BreakerOpen: too many calls failed. on_failure applies at once.
	BreakerOpen BreakerState = "open"
	// BreakerHalfOpen: one call probes whether the owner answers again.
	BreakerHalfOpen BreakerState = "half_open"
)

// Breaker is the circuit breaker between this daemon and an owner.
type Breaker struct {
	Owner DaemonRef    `json:"owner"`
	State BreakerState `json:"state"`
	// Since is when it entered this state, null if it never changed.
	Since *time.Time `json:"since"`
	// Calls and Errors are those of the interval that the breaker looks at.
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors"`
}

// StrictKey describes a key whose limit one owner consumes.
type StrictKey struct {
	// Layout is the number of the layout that assigns the owner, 0 for none.
	Layout uint64 `json:"layout"`
	// Region is the home region. Pinned reports that a pin assigns it.
	Region string `json:"home_region"`
	Pinned bool   `json:"pinned"`
	// Owner is the owner, null if no live daemon can be. Self reports that it
	// is the daemon that answers.
	Owner *DaemonRef `json:"owner"`
	Self  bool       `json:"owner_is_self"`
	// Reachable reports that a call now would be sent to the owner, or be
	// decided here; WhyNot is the reason why not.
	Reachable bool     `json:"reachable"`
	WhyNot    string   `json:"why_not"`
	Breaker   *Breaker `json:"circuit_breaker"`
	// Source is the origin of Ballot, Watermark and Leases, which are absent
	// for SourceNone.
	Source    KeySource       `json:"source"`
	Ballot    *BallotState    `json:"ballot"`
	Watermark *WatermarkState `json:"watermark"`
	// Leases are those of all lessees, the largest first; Omitted is the number
	// of further ones.
	Leases  []GrantedLease `json:"leases"`
	Omitted int            `json:"leases_omitted"`
	// Lease is the lease of the daemon that answers.
	Lease *Lease `json:"lease"`
}

// KeySource is the origin of the state of a strict key.
type KeySource string

// The origins.
const (
	SourceNone KeySource = ""
	// SourceOwner: the current state of the owner itself.
	SourceOwner KeySource = "owner"
	// SourceAcceptor: the acceptor of this daemon. A majority may be ahead.
	SourceAcceptor KeySource = "acceptor"
	// SourceGrants: the ballot of the latest grant, and nothing else.
	SourceGrants KeySource = "grants"
)

// BallotState is a ballot. The owner of the greatest round prevails.
type BallotState struct {
	Round uint64    `json:"round"`
	Owner DaemonRef `json:"owner"`
}

// WatermarkState is the consumption of a strict key and its watermark.
type WatermarkState struct {
	// Window is the start of the window, null for a bucket and a log, where the
	// fields below are of all hits that count now.
	Window *time.Time `json:"window"`
	// Watermark is the hits of the window that the owner may consume, as stored
	// by a majority. Null if unknown.
	Watermark *uint64 `json:"watermark_hits"`
	// Drained is when a bucket will have drained all hits below the watermark.
	Drained *time.Time `json:"drained_at"`
	// Consumed is the consumed hits, Limit the limit of the window.
	Consumed *uint64 `json:"consumed_hits"`
	Limit    *uint64 `json:"limit_hits"`
}

// GrantedLease is the lease of one lessee in the current window.
type GrantedLease struct {
	Lessee   DaemonRef `json:"lessee"`
	Granted  uint64    `json:"granted_hits"`
	Returned uint64    `json:"returned_hits"`
}

// Lease is the lease of this daemon in the current window.
type Lease struct {
	Granted  uint64 `json:"granted_hits"`
	Used     uint64 `json:"used_hits"`
	Returned uint64 `json:"returned_hits"`
	Left     uint64 `json:"left_hits"`
	// Until is when it ends.
	Until *time.Time `json:"until"`
	// Requested reports a lease request that has no answer yet.
	Requested bool `json:"requested"`
	// Denied is the least number of hits that is denied without a request until
	// DeniedUntil, null for none.
	Denied      *uint64    `json:"denied_hits"`
	DeniedUntil *time.Time `json:"denied_until"`
}
