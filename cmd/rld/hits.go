package main

import (
	"errors"
	"strconv"
)

// hits is the value of --hits. It takes 0 too, which asks for a word of its
// own.
type hits uint64

// String, Set and Type make it a flag.
func (h *hits) String() string { return strconv.FormatUint(uint64(*h), 10) }

// Set takes a whole number.
func (h *hits) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return errors.New(printable(s) + " is not a whole number from 1 to 18446744073709551615")
	}
	*h = hits(n)
	return nil
}

// Type is what the help calls the value.
func (h *hits) Type() string { return "uint" }
