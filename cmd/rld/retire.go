package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newRegion(p process) *cobra.Command {
	return group("region", "Share the rights of a lost region among the others, and give them back",
		newRightsCommand(p, api.RetireRegion, &cobra.Command{
			Use:   "retire NAME",
			Short: "Share the rights of a lost region among the others",
			Long: "Share the rights of a region among the others, once all of these have acknowledged it. A\n" +
				"region that is only partitioned keeps its rights. Use the command only if no daemon of the\n" +
				"region admits anything from ten seconds from now on: this is your promise. All are stopped,\n" +
				"and before one is started again its file in state.dir is removed. Nothing checks it. If it\n" +
				"is wrong, limits are exceeded by the hits that the region still admits. Send the command to\n" +
				"a daemon of another region.",
		}),
		newRightsCommand(p, api.ReturnRegion, &cobra.Command{
			Use:   "return NAME",
			Short: "Give a retired region its part of the rights again",
			Long: "Give a retired region a part of the rights again: an equal share, which the others give\n" +
				"up. The region has it once all regions have acknowledged it. Then the share follows demand.",
		}))
}

// newRightsCommand fills in a command about rights.
func newRightsCommand(p process, what api.Command, cmd *cobra.Command) *cobra.Command {
	cmd.Long += "\n\nIt prints the proposal and the next steps; rld budget shows when it is settled. A daemon\n" +
		"accepts it only from its own machine. The exit code is 0 when it was proposed, 1 when it was\n" +
		"refused or there is no answer."
	cmd.Args = one("names", "one", "")
	return query[api.CommandAnswer]{
		path: "/v1/rights/" + string(what),
		request: func(args []string) (url.Values, any, error) {
			return nil, api.CommandRequest{Name: args[0]}, nil
		},
		text:   proposalText,
		failed: exitNo,
	}.command(p, cmd)
}

// proposalText names the epoch that a command proposed, and the next step.
func proposalText(a *api.CommandAnswer) string {
	e := &a.Proposed
	text := fmt.Sprintf("Proposed epoch %s: %s.\n", or(printable(e.ID), "-"), few(members(e.Members)))
	if !e.Settled && len(e.WaitsFor) > 0 {
		text += fmt.Sprintf("It waits for %s.\n", few(printables(e.WaitsFor)))
	}
	return text + printable(a.Next) + "\n"
}

func newDaemon(p process) *cobra.Command {
	return group("daemon", "Share the rights of a lost daemon among the others", newRightsCommand(p, api.RetireDaemon, &cobra.Command{
		Use:   "retire NAME",
		Short: "Share the rights of a lost daemon among the others of its region",
		Long: "Share the rights of a daemon among the others of its region, once all of these have\n" +
			"acknowledged it. In a region of three and more that happens by itself after\n" +
			"rights.daemon_horizon. In a smaller one, and if more than a third is lost, it needs this\n" +
			"command. Use it only if the daemon admits nothing from ten seconds from now on, and its\n" +
			"file in state.dir is removed before it is started again: this is your promise. Nothing\n" +
			"checks it. If it is wrong, limits are exceeded by the hits that the daemon still admits.\n" +
			"Send the command to a daemon of the same region.",
	}))
}
