package wire

import "fmt"

// StoredKind is the kind of fault of a file of rights.
type StoredKind uint8

// The kinds.
const (
	// Truncated: the file was not written to its end.
	Truncated StoredKind = iota
	// Damaged: the file was changed since it was written.
	Damaged
	// Foreign: the file belongs to another cluster, daemon or release, or is
	// none.
	Foreign
)

// StoredError is the error of an invalid file of rights. Its content is lost to
// this daemon.
type StoredError struct {
	Kind StoredKind
	What string
}

// Error returns the fault and its remedy.
func (e *StoredError) Error() string {
	return "wire: file of rights is " + fmt.Sprintf(storedTexts[e.Kind], e.What)
}

// storedTexts are the texts of the kinds.
var storedTexts = [...]string{
	Truncated: "truncated: %s: the daemon needs a new id",
	Damaged:   "damaged: %s: the daemon needs a new id",
	Foreign:   "not this daemon's: %s: give the daemon its own folder",
}

func stored(kind StoredKind, format string, args ...any) error {
	return &StoredError{Kind: kind, What: fmt.Sprintf(format, args...)}
}
