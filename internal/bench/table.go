package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

// columns are the titles of the table, and whether the cells are numbers, which
// end at one column.
var columns = []struct {
	title string
	right bool
}{
	{"line", false}, {"", false}, {"measured", true}, {"beside", true}, {"", false}, {"ratio", true}, {"bound", true}, {"", false},
}

// cells returns a row as the texts of its columns. The ratio is "" where the
// other side is nothing.
func (r *row) cells() []string {
	switch {
	case r.Problem != "":
		return []string{r.Name, r.What, "-", "-", "-", "-", r.Bound, "FAILED"}
	case r.LeftOut != "":
		return []string{r.Name, r.What, "-", "-", "-", "-", r.Bound, "LEFT OUT"}
	}
	ratio, verdict := "", "MISSED"
	if r.Beside != 0 {
		ratio = times.figure(r.Ratio)
	}
	if r.OK {
		verdict = "ok"
	}
	return []string{
		r.Name, r.What, r.Unit.figure(r.Measured), r.Unit.figure(r.Beside), r.BesideWhat, ratio, r.Bound, verdict,
	}
}

// table returns rows as text: a title, a line each, and below the reasons of
// the rows that failed or were left out.
func table(rows []row) string {
	lines := make([][]string, 1+len(rows))
	for _, c := range columns {
		lines[0] = append(lines[0], c.title)
	}
	for i := range rows {
		lines[1+i] = rows[i].cells()
	}
	widths := make([]int, len(columns))
	for _, line := range lines {
		for j, cell := range line {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	var s strings.Builder
	for _, line := range lines {
		text := ""
		for j, cell := range line {
			width := widths[j]
			if !columns[j].right {
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
		if why := rows[i].LeftOut; why != "" {
			s.WriteString("\n" + rows[i].Name + " was left out: " + why + "\n")
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
