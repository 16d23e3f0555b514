// Package revocation is the list of the daemons whose certificates do not count
// any more.
package revocation

import (
	"fmt"
	"slices"
	"strings"
)

// Max bounds the daemons of a List, and MaxName the length of each part of a
// Name in bytes.
const (
	Max     = 256
	MaxName = 63
)

// Name is a daemon as its certificate names it.
type Name struct {
	Region string `json:"region"`
	Daemon string `json:"name"`
}

// String returns region/name.
func (n Name) String() string { return n.Region + "/" + n.Daemon }

// Parse reads region/name.
func Parse(text string) (Name, error) {
	region, daemon, _ := strings.Cut(text, "/")
	n := Name{region, daemon}
	return n, n.check()
}

// check returns an error unless both parts are such as a certificate may have.
func (n Name) check() error {
	for _, part := range []string{n.Region, n.Daemon} {
		if part == "" || len(part) > MaxName || strings.ContainsFunc(part, foreign) || strings.ContainsAny(part[:1], "._-") {
			return fmt.Errorf("daemon %.140q: want REGION/NAME, as its certificate has it (spiffe://rld/REGION/NAME)", n.String())
		}
	}
	return nil
}

func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// Entry is a revoked daemon, since a time in Unix milliseconds.
type Entry struct {
	Name
	At int64 `json:"at"`
}

// List is all revoked daemons, ordered by name. It is immutable.
type List []Entry

// Change adds a daemon to a List, or takes it off again.
type Change struct {
	Name
	Undo bool `json:"undo,omitempty"`
}

// String returns a text for the history.
func (c Change) String() string {
	if c.Undo {
		return fmt.Sprintf("daemon %s is not revoked any more", c.Name)
	}
	return fmt.Sprintf("daemon %s is revoked", c.Name)
}

func (l List) find(n Name) (int, bool) {
	return slices.BinarySearchFunc(l, n, func(e Entry, n Name) int { return strings.Compare(e.String(), n.String()) })
}

// Has reports whether a daemon is revoked.
func (l List) Has(n Name) bool {
	_, is := l.find(n)
	return is
}

// After returns the list after a change at a time in Unix milliseconds. A full
// list takes no more, and each change must have an effect.
func (l List) After(c Change, at int64) (List, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	i, is := l.find(c.Name)
	switch {
	case c.Undo && !is:
		return nil, fmt.Errorf("daemon %s is not revoked", c.Name)
	case c.Undo && len(l) == 1:
		return nil, nil
	case c.Undo:
		return slices.Delete(slices.Clone(l), i, i+1), nil
	case is:
		return nil, fmt.Errorf("daemon %s is revoked already", c.Name)
	case len(l) >= Max:
		return nil, fmt.Errorf("%d daemons are revoked, want at most %d: unrevoke those with expired certificates", len(l), Max)
	}
	return slices.Insert(slices.Clone(l), i, Entry{c.Name, at}), nil
}

// Validate returns an error if the list breaks an invariant.
func (l List) Validate() error {
	if len(l) > Max {
		return fmt.Errorf("%d revoked daemons: want at most %d", len(l), Max)
	}
	for i, e := range l {
		if err := e.check(); err != nil {
			return fmt.Errorf("revoked: %w", err)
		}
		if i > 0 && l[i-1].String() >= e.String() {
			return fmt.Errorf("revoked daemon %s at place %d: want them in order, each once", e.Name, i)
		}
	}
	return nil
}
