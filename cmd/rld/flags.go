package main

import (
	"errors"
	"fmt"
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

// Type is the name of the value in the help.
func (h *hits) Type() string { return "uint" }

// outputForm is the value of -o.
type outputForm string

// The forms.
const (
	formTable outputForm = "table"
	formJSON  outputForm = "json"
)

// String, Set and Type make it a flag.
func (f *outputForm) String() string { return string(*f) }

// Set takes one of the forms.
func (f *outputForm) Set(s string) error {
	switch v := outputForm(s); v {
	case formTable, formJSON:
		*f = v
		return nil
	}
	return fmt.Errorf("use %s or %s", formTable, formJSON)
}

// Type is the name of the value in the help.
func (f *outputForm) Type() string { return "form" }
