package journal

import (
	"errors"
	"fmt"
)

// ErrFull is the error of Append and Rewrite when the journal would exceed its
// bound. Its content stays, and a Rewrite with less makes room.
var ErrFull = errors.New("journal: full: rewrite it with what still matters")

// ErrClosed is the error of all methods after Close.
var ErrClosed = errors.New("journal: closed")

// DamagedError is the error of a file that was changed since it was written.
// Its content is lost to the owner: see Begin.
type DamagedError struct {
	File   string
	Offset int64 // in bytes, of the damaged header or batch
	What   string
}

// Error returns the position and the fault.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal: %s is damaged at byte %d: %s: what it kept cannot be relied on", e.File, e.Offset, e.What)
}

// ForeignError is the error of a file that is not the journal of its owner.
type ForeignError struct {
	File string
	What string
}

// Error returns the fault and its remedy.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("journal: %s is not this daemon's: %s: give the daemon its own folder", e.File, e.What)
}

// FailedError is the error of a journal after a failed write or sync. The
// content on disk is then unknown, and a second attempt would not reveal it.
// Open does.
type FailedError struct {
	File string
	Err  error // the first failure
}

// Error returns the failure.
func (e *FailedError) Error() string {
	return fmt.Sprintf("journal: %s takes no more since it could not be written: %v: open it again", e.File, e.Err)
}

// Unwrap returns the failure.
func (e *FailedError) Unwrap() error { return e.Err }
