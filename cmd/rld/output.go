package main

import "fmt"

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
	return fmt.Errorf("say %s or %s", formTable, formJSON)
}

// Type is what the help calls the value.
func (f *outputForm) Type() string { return "form" }
