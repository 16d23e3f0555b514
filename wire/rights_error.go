package wire

import "fmt"

// StoredKind says what is wrong with a file of rights.
type StoredKind uint8

// The kinds.
const (
	// Truncated: it was not written to its end.
	Truncated StoredKind = iota
	// Damaged: it was changed since it was written.
	Damaged
	// Foreign: it is of another cluster, daemon or release, or no such file.
	Foreign
)

// StoredError is the refusal of a file of rights. What it kept is lost to this
// daemon.
type StoredError struct {
	Kind StoredKind
	What string
}

// Error says what is wrong and what would be right.
func (e *StoredError) Error() string {
	switch e.Kind {
	case Truncated:
		return "wire: file of rights is truncated: " + e.What +
			": restore the last whole one, or start without it as a daemon that lost its memory"
	case Damaged:
		return "wire: file of rights is damaged: " + e.What +
			": start without it as a daemon that lost its memory"
	}
	return "wire: file of rights is not this daemon's: " + e.What +
		": give the daemon its own folder"
}

func stored(kind StoredKind, format string, args ...any) error {
	return &StoredError{Kind: kind, What: fmt.Sprintf(format, args...)}
}
