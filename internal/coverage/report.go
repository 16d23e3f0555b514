package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// count is how many statements there are, and how many were reached.
type count struct{ reached, all int }

func (c *count) add(b *block) {
	c.all += b.statements
	if b.reached {
		c.reached += b.statements
	}
}

// percent returns the part that was reached, 100 of none.
func (c count) percent() float64 {
	if c.all == 0 {
		return 100
	}
	return 100 * float64(c.reached) / float64(c.all)
}

// reportOf returns the table of the packages, the functions without a reached
// statement, and the other statements that were not reached. percent is that of
// the core. functions returns the functions of a file.
func reportOf(blocks []block, functions func(file string) []function) (text string, percent float64) {
	packages := make(map[string]*count)
	for i := range blocks {
		dir := path.Dir(blocks[i].file)
		if packages[dir] == nil {
			packages[dir] = new(count)
		}
		packages[dir].add(&blocks[i])
	}
	var b strings.Builder
	row := func(name string, c count) {
		fmt.Fprintf(&b, "%-20s %7d %7d %7.1f %%\n", name, c.all, c.reached, c.percent())
	}
	fmt.Fprintf(&b, "%-20s %7s %7s %9s\n", "package", "all", "reached", "")
	var sum count
	for _, part := range []struct {
		title string
		names []string
	}{{"the core", core}, {"others", others}} {
		var total count
		for _, name := range part.names {
			if c := packages[name]; c != nil {
				row(name, *c)
				total.all, total.reached = total.all+c.all, total.reached+c.reached
			}
		}
		row(part.title+" together", total)
		b.WriteByte('\n')
		if sum.all == 0 {
			sum = total
		}
	}
	var never, missed strings.Builder
	for file := range grouped(blocks) {
		if dir := path.Dir(file[0].file); !slices.Contains(core, dir) && !slices.Contains(others, dir) {
			continue
		}
		unreached(&never, &missed, file, functions(file[0].file))
	}
	b.WriteString("Functions that no seed reached\n\n" + never.String())
	b.WriteString("\nOther statements that no seed reached\n\n" + missed.String())
	return b.String(), sum.percent()
}

// grouped yields the blocks of one file after the other.
func grouped(blocks []block) func(yield func([]block) bool) {
	return func(yield func([]block) bool) {
		for len(blocks) > 0 {
			n := slices.IndexFunc(blocks, func(b block) bool { return b.file != blocks[0].file })
			if n < 0 {
				n = len(blocks)
			}
			if !yield(blocks[:n]) {
				return
			}
			blocks = blocks[n:]
		}
	}
}

// unreached writes the statements of a file that were not reached, by function.
// Blocks of adjacent lines make one row.
func unreached(never, missed *strings.Builder, file []block, functions []function) {
	for _, f := range functions {
		var in count
		var rows []block
		for i := range file {
			b := &file[i]
			if b.first < f.first || b.last > f.last {
				continue
			}
			in.add(b)
			if last := len(rows) - 1; b.reached || b.statements == 0 {
				continue
			} else if last >= 0 && b.first <= rows[last].last+1 {
				rows[last].last = max(rows[last].last, b.last)
				rows[last].statements += b.statements
			} else {
				rows = append(rows, *b)
			}
		}
		switch {
		case in.all == 0 || len(rows) == 0:
		case in.reached == 0:
			fmt.Fprintf(never, "%s:%d-%d\t%s\t%d\n", file[0].file, f.first, f.last, f.name, in.all)
		default:
			for _, r := range rows {
				fmt.Fprintf(missed, "%s:%d-%d\t%s\t%d\n", r.file, r.first, r.last, f.name, r.statements)
			}
		}
	}
}
