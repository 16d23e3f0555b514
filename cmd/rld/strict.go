package main

import (
	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newStrict(p process) *cobra.Command {
	return group("strict", "Show the state of strict keys", newStrictStatus(p))
}

func newStrictStatus(p process) *cobra.Command {
	return strictQuery.command(p, &cobra.Command{
		Use:   "status",
		Short: "Show the active layout and the strict voters of each region",
		Long: "Show the active layout and what the next one waits for; for each region its strict\n" +
			"voters, whether they are live and whether they vote; the rules with a home region of\n" +
			"their own; and the acceptor of the daemon that answers. The exit code is 0 when there\n" +
			"is an answer and 2 when there is none.",
		Example: "  rld strict status",
		Args:    cobra.NoArgs,
	})
}

var strictQuery = query[api.StrictAnswer]{
	path:  "/v1/strict",
	lacks: func(a *api.StrictAnswer) string { return unless(!a.At.IsZero(), "time") },
	text:  strictTable,
}

// missing formats the voters that a layout waits for, with reasons.
func missing(all []api.Missing) []string {
	out := make([]string, 0, len(all))
	for _, m := range all {
		text := daemonText(&api.DaemonRef{Region: m.Region, Name: m.Name})
		if m.Name == "" {
			text = printable(m.Region)
		}
		if m.Why != "" {
			text += " (" + printable(m.Why) + ")"
		}
		out = append(out, text)
	}
	return out
}
