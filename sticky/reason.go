package sticky

import "github.com/georld/rld/internal/enum"

// Reason is the reason for a request that was not answered or an Accept that
// was refused.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota
	// NotOwner: the daemon is not the owner and knows of none.
	NotOwner
	// NoMajority: too few strict voters are reachable or have answered.
	NoMajority
	// WindowOver: the window has ended on the owner's clock.
	WindowOver
	// UnknownRule: the owner has no such rule in force.
	UnknownRule
	// Full: there is no room for another key.
	Full
	// Outvoted: another owner has a higher ballot, or consumed hits that the
	// Accept does not know of.
	Outvoted
	// OtherLayout: the voter has another layout in force.
	OtherLayout
	// NotVoting: the voter lost its disk and has not copied the others' state.
	NotVoting
	// Ended: the watermarks are of windows that are over.
	Ended

	// MaxReason is the greatest reason.
	MaxReason = Ended
)

var reasonNames = []string{"", "not_owner", "no_majority", "window_over", "unknown_rule", "full", "outvoted", "other_layout", "not_voting", "ended"}

// String returns the name in logs and metrics.
func (r Reason) String() string { return enum.Name(r, reasonNames...) }
