package wire

import "fmt"

// VersionError is the error of a frame in another version of the encoding.
type VersionError struct{ Got, Want byte }

// Error returns both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("wire: frame of version %d, want %d, the only one known here", e.Got, e.Want)
}

// SizeError is the error of a frame that exceeds a bound. The sender must split
// its messages over several frames.
type SizeError struct {
	What     string // "bytes", "cells"
	Got, Max int
}

// Error returns the number and the bound.
func (e *SizeError) Error() string {
	return fmt.Sprintf("wire: frame of %d %s, want at most %d", e.Got, e.What, e.Max)
}

// ChecksumError is the error of a frame that was cut or changed on its way. A
// frame of counts also has it when it is of or for another incarnation than the
// hellos of its stream.
type ChecksumError struct {
	Got  uint32 // of the bytes
	Want uint32 // in the frame
}

// Error returns both checksums.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("wire: frame with checksum %08x, want %08x: it was cut, changed or misdirected",
		e.Got, e.Want)
}

// FormatError is the error of a frame that is not the encoding of messages, or
// of messages that have none.
type FormatError struct {
	// What holds the position, the fault and a correct form.
	What string
}

// Error returns What.
func (e *FormatError) Error() string { return "wire: " + e.What }

func malformed(format string, args ...any) error {
	return &FormatError{What: fmt.Sprintf(format, args...)}
}

// fault is the first fault of a message, nil before one is found.
type fault struct{ err error }

func (f *fault) fail(format string, args ...any) {
	if f.err == nil {
		f.err = malformed(format, args...)
	}
}
