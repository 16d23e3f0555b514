package main

import (
	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newStrict(p process) *cobra.Command {
	return group("strict", "Show the state of strict keys, and recover from the loss of their voters", newStrictStatus(p), usageCodes(newStrictRecover(p)))
}

func newStrictRecover(p process) *cobra.Command {
	c := &regionChange{name: api.RecoverStrict}
	c.request.Stopped = true
	cmd := c.command(p, &cobra.Command{
		Use:   "recover REGION",
		Short: "Give up a majority of the strict voters of a region that are lost for good",
		Long: "Give up the strict voters of a region: a majority of them is lost for good, with its disks.\n" +
			"The strict keys of the region have no owner in the windows that are open, where on_failure\n" +
			"decides, and new ones in later windows, under new voters. Sliding windows, logs and buckets\n" +
			"have owners when no hits of before count any more. --stopped names the voters that do not\n" +
			"run, or that run with empty disks: your statement that they will not run again with the\n" +
			"state that they had. Nothing checks that, but it is refused while one of them was heard in\n" +
			"the last minute, and while the others are a majority. Without --yes and the name of the\n" +
			"region it only prints what would happen.",
		Example: "  rld strict recover eu-west --stopped eu-west-0,eu-west-1\n" +
			"  rld strict recover eu-west --stopped eu-west-0,eu-west-1 --yes eu-west --reason 'both disks are gone'",
	})
	cmd.Flags().StringSliceVar(&c.request.Voters, "stopped", nil, "`names` of the voters that are lost, separated by commas")
	return cmd
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
