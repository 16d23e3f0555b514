package journal

import (
	"errors"
	"fmt"
)

// ErrFull is what Append and Rewrite return when the journal would exceed its
// bound. What is in it stays, and a Rewrite with less makes room.
var ErrFull = errors.New("journal: full: rewrite it with what still matters")

// ErrClosed is what all methods return after Close.
var ErrClosed = errors.New("journal: closed")

// DamagedError is the refusal of a file that was changed since it was written.
// What it kept is lost to who opens it: see Begin.
type DamagedError struct {
	File   string
	Offset int64 // in bytes, of the header or batch that is wrong
	What   string
}

// Error says where it is and what is wrong.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal: %s is damaged at byte %d: %s: what it kept cannot be relied on", e.File, e.Offset, e.What)
}

// ForeignError is the refusal of a file that is not the journal of its owner.
type ForeignError struct {
	File string
	What string
}

// Error says what is wrong and what would be right.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("journal: %s is not this daemon's: %s: give the daemon its own folder", e.File, e.What)
}

// FailedError is the refusal of a journal that could not write or sync once:
// what is on disk since is not known, and asking again would not tell. Open
// finds out.
type FailedError struct {
	File string
	Err  error // the first failure
}

// Error names the failure.
func (e *FailedError) Error() string {
	return fmt.Sprintf("journal: %s takes no more since it could not be written: %v: open it again", e.File, e.Err)
}

// Unwrap returns the failure.
func (e *FailedError) Unwrap() error { return e.Err }
