package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

// column is the place of a cell in a row of the table.
type column struct {
	title string
	right bool // numbers
	cell  func(*row) string
}

func columns() []column {
	figure := func(of func(*row) string) func(*row) string {
		return func(r *row) string {
			if r.Problem != "" {
				return "-"
			}
			return of(r)
		}
	}
	return []column{
		{"line", false, func(r *row) string { return r.Name }},
		{"", false, func(r *row) string { return r.What }},
		{"measured", true, figure(func(r *row) string { return r.Unit.figure(r.Measured) })},
		{"beside", true, figure(func(r *row) string { return r.Unit.figure(r.Beside) })},
		{"", false, figure(func(r *row) string { return r.BesideWhat })},
		{"ratio", true, figure(ratioCell)},
		{"bound", true, func(r *row) string { return r.Bound }},
		{"", false, verdict},
	}
}

// ratioCell returns the ratio, or nothing where the other side is nothing.
func ratioCell(r *row) string {
	if r.Beside == 0 {
		return ""
	}
	return times.figure(r.Ratio)
}

func verdict(r *row) string {
	switch {
	case r.Problem != "":
		return "FAILED"
	case r.OK:
		return "ok"
	}
	return "MISSED"
}

// table returns rows as text: a title, a line each, and below what went wrong.
func table(rows []row) string {
	cols := columns()
	widths := make([]int, len(cols))
	cells := [][]string{make([]string, len(cols))}
	for i, c := range cols {
		cells[0][i] = c.title
	}
	for i := range rows {
		line := make([]string, len(cols))
		for j, c := range cols {
			line[j] = c.cell(&rows[i])
		}
		cells = append(cells, line)
	}
	for _, line := range cells {
		for j, cell := range line {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	var s strings.Builder
	for _, line := range cells {
		text := ""
		for j, cell := range line {
			width := widths[j]
			if !cols[j].right {
				width = -width // which pads on the right
			}
			text += fmt.Sprintf("%*s  ", width, cell)
		}
		s.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	for i := range rows {
		if p := rows[i].Problem; p != "" {
			s.WriteString("\n" + rows[i].Name + " failed: " + p + "\n")
		}
	}
	return s.String()
}

// machine describes the hardware and the Go version of a run.
type machine struct {
	CPU   string `json:"cpu"`
	CPUs  int    `json:"cpus"`
	Procs int    `json:"gomaxprocs"`
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
}

func thisMachine() machine {
	return machine{
		CPU: cpuModel(), CPUs: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0),
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
}

// String returns the machine in one line.
func (m machine) String() string {
	return fmt.Sprintf("%s, %d CPUs, GOMAXPROCS %d, %s %s/%s", m.CPU, m.CPUs, m.Procs, m.Go, m.OS, m.Arch)
}

// cpuModel returns the name of the processor, where the system provides it.
func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
