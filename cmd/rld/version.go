package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of rld and of the Go that built it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.out, versionLine())
			return exitWith(exitNo, err)
		},
	}
}

// versionLine is the version as printed.
func versionLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: "an unknown Go"}
	}
	return fmt.Sprintf("rld %s, built with %s", describeVersion(info), info.GoVersion)
}

// version is what this binary calls itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describeVersion(info)
}

// describeVersion is the version of the module, or the commit where it has
// none: "v0.3.0", "devel 1a2b3c4d5e6f, modified".
func describeVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, modified := "", false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	out := "devel"
	if revision != "" {
		out += " " + revision[:min(12, len(revision))]
	}
	if modified {
		out += ", modified"
	}
	return out
}
