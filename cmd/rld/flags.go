package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

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

// formFlag is the value of -o, the form of an answer or a report: JSON, or the
// usual form.
type formFlag struct {
	usual string
	json  bool
}

// The usual forms.
const (
	formTable = "table"
	formYAML  = "yaml"
)

// addFormFlag adds -o.
func addFormFlag(f *pflag.FlagSet, form *formFlag, usual, of string) {
	form.usual = usual
	f.VarP(form, "output", "o", fmt.Sprintf("form of the %s: %s or json", of, usual))
}

// String, Set and Type make it a flag.
func (f *formFlag) String() string {
	if f.json {
		return "json"
	}
	return f.usual
}

// Set accepts one of the forms.
func (f *formFlag) Set(s string) error {
	if s != f.usual && s != "json" {
		return fmt.Errorf("use %s or json", f.usual)
	}
	f.json = s == "json"
	return nil
}

// Type is the name of the value in the help.
func (f *formFlag) Type() string { return "form" }

// table aligns rows of cells in columns. It is used by one goroutine.
type table struct {
	text  strings.Builder
	cells *tabwriter.Writer
}

// newTable returns a table with a head.
func newTable(head ...any) *table {
	t := new(table)
	t.cells = tabwriter.NewWriter(&t.text, 0, 0, 3, ' ', 0)
	t.row(head...)
	return t
}

// row adds a row, a cell for each column.
func (t *table) row(cells ...any) {
	fmt.Fprintf(t.cells, strings.Repeat("%v\t", len(cells)-1)+"%v\n", cells...)
}

// String ends the table and returns its lines.
func (t *table) String() string {
	_ = t.cells.Flush() // the writer below is a strings.Builder: nothing can fail
	return t.text.String()
}
