package hlc

import (
	"fmt"
	"time"
)

// DriftError is returned for a peer's stamp that is too far ahead: its clock is
// fast, or the local one is slow.
type DriftError struct {
	Remote Timestamp     // the rejected stamp
	Local  Timestamp     // the physical reading of that time
	Max    time.Duration // the maximum lead
}

// Ahead returns the lead of the stamp over the local reading.
func (e *DriftError) Ahead() time.Duration { return e.Remote.Sub(e.Local) }

// Error contains both readings and the accepted range.
func (e *DriftError) Error() string {
	return fmt.Sprintf("hlc: stamp %v of a peer is %v ahead of the local reading %d, at most %v is adopted",
		e.Remote, e.Ahead(), e.Local.Millis(), e.Max)
}
