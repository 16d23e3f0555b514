package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
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

// outputForm is the form of an answer or a report.
type outputForm string

// The forms.
const (
	formTable outputForm = "table"
	formYAML  outputForm = "yaml"
	formJSON  outputForm = "json"
)

// formFlag is the value of -o: JSON, or the form that is the default.
type formFlag struct {
	form  *outputForm
	usual outputForm
}

// addFormFlag adds -o.
func addFormFlag(f *pflag.FlagSet, form *outputForm, usual outputForm, of string) {
	*form = usual
	f.VarP(formFlag{form, usual}, "output", "o", fmt.Sprintf("form of the %s: %s or %s", of, usual, formJSON))
}

// String, Set and Type make it a flag.
func (f formFlag) String() string {
	if f.form == nil { // as pflag asks for the zero value
		return ""
	}
	return string(*f.form)
}

// Set accepts one of the forms.
func (f formFlag) Set(s string) error {
	v := outputForm(s)
	if v != f.usual && v != formJSON {
		return fmt.Errorf("use %s or %s", f.usual, formJSON)
	}
	*f.form = v
	return nil
}

// Type is the name of the value in the help.
func (f formFlag) Type() string { return "form" }
