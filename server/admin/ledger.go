package admin

import "time"

// DaemonRef names one incarnation of a daemon. Name is "" where only the
// incarnation is known.
type DaemonRef struct {
	Region      string `json:"region"`
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
}

// CircuitState says whether calls are sent to a home.
type CircuitState string

// The states of a circuit.
const (
	// CircuitClosed: calls go to the home.
	CircuitClosed CircuitState = "closed"
	// CircuitOpen: too many failed, and on_failure answers at once.
	CircuitOpen CircuitState = "open"
	// CircuitHalfOpen: one call probes whether it is well again.
	CircuitHalfOpen CircuitState = "half_open"
)

// Circuit is the breaker between this daemon and a home.
type Circuit struct {
	Owner DaemonRef    `json:"owner"`
	State CircuitState `json:"state"`
	// Since is when it came into this state, null for never left.
	Since *time.Time `json:"since"`
	// Calls and Errors are those of the time that the breaker looks at.
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors"`
}

// StrictKey is where the rights to a key are that are not spread over all daemons,
// and what is known of them.
type StrictKey struct {
	// Layout is the number of the layout that this follows from, 0 for none.
	Layout uint64 `json:"layout"`
	// Region is the home region, Pinned says that a pin makes it that.
	Region string `json:"home_region"`
	Pinned bool   `json:"pinned"`
	// Owner is the home daemon, null when none is known to live. Self says that it
	// is the daemon that answers.
	Owner *DaemonRef `json:"owner"`
	Self  bool       `json:"owner_is_self"`
	// Reachable says that a call that came now would be sent there, or is decided
	// here; WhyNot why it would not.
	Reachable bool     `json:"reachable"`
	WhyNot    string   `json:"why_not"`
	Circuit   *Circuit `json:"circuit_breaker"`
	// Source is whose word ballot, mark and batches are; SourceNone when nobody
	// told them, and then there are none.
	Source    LedgerSource    `json:"source"`
	Ballot    *BallotState    `json:"ballot"`
	Watermark *WatermarkState `json:"watermark"`
	Batches   []Batch         `json:"leases"` // never null; the largest first
	// LeftOut is how many batches more there are.
	LeftOut int    `json:"leases_omitted"`
	Lease   *Lease `json:"lease"`
}

// LedgerSource is who told of a ledger.
type LedgerSource string

// The sources.
const (
	SourceNone LedgerSource = ""
	// SourceOwner: the home itself, now.
	SourceOwner LedgerSource = "owner"
	// SourceReplica: this daemon's replica, which a majority may be ahead of.
	SourceReplica LedgerSource = "replica"
	// SourceGrants: the latest grant that came here, with its ballot and no more.
	SourceGrants LedgerSource = "grants"
)

// BallotState is a ballot: the home of the greatest round prevails.
type BallotState struct {
	Round uint64    `json:"round"`
	Owner DaemonRef `json:"owner"`
}

// WatermarkState is how far a ledger may consume, and has.
type WatermarkState struct {
	// Window is the start of the label that it is of, null for a bucket and a log: what
	// follows is then of all that counts now.
	Window *time.Time `json:"window"`
	// Watermark is how many hits of the label may be consumed under what a majority
	// holds. Null where it is not known.
	Watermark *uint64 `json:"watermark_hits"`
	// Drained is, of a bucket, when all that may be in use will have drained.
	Drained *time.Time `json:"drained_at"`
	// Consumed is how much of it is, and Limit what the ledger has of the label.
	Consumed *uint64 `json:"consumed_hits"`
	Limit    *uint64 `json:"limit_hits"`
}

// Batch is what a ledger granted to one holder in the label that runs.
type Batch struct {
	Holder   DaemonRef `json:"lessee"`
	Granted  uint64    `json:"granted_hits"`
	Returned uint64    `json:"returned_hits"`
}

// Lease is what this daemon was granted in the label that runs, and spends
// without asking.
type Lease struct {
	Granted  uint64 `json:"granted_hits"`
	Used     uint64 `json:"used_hits"`
	Returned uint64 `json:"returned_hits"`
	Left     uint64 `json:"left_hits"`
	// Until is when it ends.
	Until *time.Time `json:"until"`
	// Asking says that more was asked for and no answer has come yet.
	Asking bool `json:"asking"`
	// Denied is the least number of hits that is refused unasked until DeniedUntil,
	// null for none.
	Denied      *uint64    `json:"denied_hits"`
	DeniedUntil *time.Time `json:"denied_until"`
}

// fill makes lists of what is missing.
func (l *StrictKey) fill() {
	if l != nil && l.Batches == nil {
		l.Batches = []Batch{}
	}
}
