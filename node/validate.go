package node

import (
	"fmt"
	"unicode/utf8"

	"github.com/georld/rld/rules"
)

// Bounds on one call. They are far above real calls and bound the cost of a
// hostile one: a quarter of a millisecond for as many new keys.
const (
	MaxDescriptors = 256   // descriptors of a call
	MaxEntries     = 32    // entries of a descriptor
	MaxTextBytes   = 4_096 // bytes of a domain, a key or a value
)

// InputError is the fault of a call and its place. Nothing was charged.
type InputError struct {
	Descriptor int // index, -1 if the fault is not in a descriptor
	Entry      int // index in the descriptor, -1 likewise
	Problem    string
}

// Error contains the descriptor and entry, counted from 0 as in the request.
func (e *InputError) Error() string {
	switch {
	case e.Descriptor < 0:
		return e.Problem
	case e.Entry < 0:
		return fmt.Sprintf("descriptor %d: %s", e.Descriptor, e.Problem)
	}
	return fmt.Sprintf("descriptor %d, entry %d: %s", e.Descriptor, e.Entry, e.Problem)
}

// Validate returns an *InputError for the first fault of the call that Resolve
// would find, nil for a good one.
func (c *Call) Validate() error { return validate(c) }

// validate returns an *InputError for the first fault of a call, nil for a
// good one.
func validate(c *Call) error {
	if c.Domain == "" {
		return &InputError{-1, -1, "rate limit domain must not be empty"}
	}
	if len(c.Domain) > MaxTextBytes {
		return &InputError{-1, -1, "domain " + textProblem(c.Domain)}
	}
	if len(c.Descriptors) == 0 {
		return &InputError{-1, -1, "rate limit descriptor list must not be empty"}
	}
	if n := len(c.Descriptors); n > MaxDescriptors {
		return &InputError{-1, -1, fmt.Sprintf("%d descriptors in one call, at most %d", n, MaxDescriptors)}
	}
	for i := range c.Descriptors {
		if err := validateDescriptor(i, &c.Descriptors[i]); err != nil {
			return err
		}
	}
	return nil
}

func validateDescriptor(i int, d *rules.Descriptor) error {
	if n := len(d.Entries); n > MaxEntries {
		return &InputError{i, -1, fmt.Sprintf("%d entries, at most %d", n, MaxEntries)}
	}
	if d.Override.Unit > rules.Year {
		return &InputError{i, -1, "limit override with an unknown unit"}
	}
	for j := range d.Entries {
		e := &d.Entries[j]
		if len(e.Key) > MaxTextBytes {
			return &InputError{i, j, "key " + textProblem(e.Key)}
		}
		if len(e.Value) > MaxTextBytes {
			return &InputError{i, j, "value " + textProblem(e.Value)}
		}
	}
	return nil
}

// CheckText returns an *InputError for the first text of the call that is not
// UTF-8. Any bytes make a valid counter, so a check does not look for this.
// Edges reject such a call, since callers and logs could not show it.
func (c *Call) CheckText() error {
	if !utf8.ValidString(c.Domain) {
		return &InputError{-1, -1, "domain " + textProblem(c.Domain)}
	}
	for i := range c.Descriptors {
		for j := range c.Descriptors[i].Entries {
			e := &c.Descriptors[i].Entries[j]
			if !utf8.ValidString(e.Key) {
				return &InputError{i, j, "key " + textProblem(e.Key)}
			}
			if !utf8.ValidString(e.Value) {
				return &InputError{i, j, "value " + textProblem(e.Value)}
			}
		}
	}
	return nil
}

// textProblem describes a text that is too long or not UTF-8.
func textProblem(s string) string {
	if len(s) > MaxTextBytes {
		return fmt.Sprintf("is %d bytes long, at most %d", len(s), MaxTextBytes)
	}
	return "is not valid UTF-8"
}
