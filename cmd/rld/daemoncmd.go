package main

import (
	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newDaemon(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Take the rights of a lost daemon",
		Args:  cobra.ArbitraryArgs,
		RunE:  noCommand,
	}
	cmd.AddCommand(newRightsCommand(p, api.RetireDaemon, &cobra.Command{
		Use:   "retire NAME",
		Short: "Share the rights of a lost daemon among the others of its region",
		Long: "Share what a daemon holds among the others of its region, once all of these have\n" +
			"acknowledged it. In a region of three and more that happens by itself after\n" +
			"rights.daemon_horizon; in a smaller one, and where more than a third is lost, it takes\n" +
			"this word: that the daemon admits nothing from ten seconds from now on, and that its file\n" +
			"in rights.dir is removed before it is started again. Nothing checks it. If it is wrong,\n" +
			"limits are exceeded by what the daemon still admits. Say it at a daemon of the same region.",
	}))
	return cmd
}
