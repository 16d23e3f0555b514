package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine is what the figures were measured on.
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

// cpuModel returns the name of the processor where the system tells it.
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
