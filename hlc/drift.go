package hlc

import (
	"fmt"
	"time"
)

// DriftError is the refusal of a peer's stamp that is too far ahead to be
// trusted: its clock is fast, or ours is slow.
type DriftError struct {
	Remote Timestamp     // the refused stamp
	Local  Timestamp     // the physical reading it was held against
	Max    time.Duration // how far ahead it might have been
}

// Ahead returns how far the stamp is ahead of the local reading.
func (e *DriftError) Ahead() time.Duration { return e.Remote.Sub(e.Local) }

// Error names both readings and what would have been accepted.
func (e *DriftError) Error() string {
	return fmt.Sprintf("hlc: stamp %v of a peer is %v ahead of the local reading %d, at most %v is adopted",
		e.Remote, e.Ahead(), e.Local.Millis(), e.Max)
}
