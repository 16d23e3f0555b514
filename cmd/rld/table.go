package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

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
