package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

// stoppedText explains the statement of an operator.
const stoppedText = "--stopped is your statement that %s, and that none starts again from an older disk.\n" +
	"Nothing checks it. If it is wrong, limits are exceeded by the hits that are still admitted."

func newRegion(p process) *cobra.Command {
	return group("region", "Change the regions of a cluster and their shares of limits",
		newRightsCommand(p, api.AddRegion, &cobra.Command{
			Use:   "add NAME --weight 20%",
			Short: "Give a region that joins the cluster a share of limits",
			Long: "Give a region a share of all limits, which the other regions give up in proportion. Its\n" +
				"daemons run already: those with a state.dir that are heard found its rights. A region that\n" +
				"was removed is added the same way, whatever is left of its disks.",
		}),
		newRightsCommand(p, api.WeighRegion, &cobra.Command{
			Use:   "weight NAME --weight 20%",
			Short: "Set the share of limits of a region",
			Long: "Set the share of limits that a region has without demand. The other regions share the rest\n" +
				"in proportion. The shares of single rules then follow the demand again.",
		}),
		newRightsCommand(p, api.DrainRegion, &cobra.Command{
			Use:   "drain NAME",
			Short: "Take all rights from a region before it is removed",
			Long:  "Give the share of a region to the others. Its daemons go on, and hold nothing.",
		}),
		newRightsCommand(p, api.RemoveRegion, &cobra.Command{
			Use:   "remove NAME --stopped",
			Short: "Share the rights of a lost region among the others",
			Long: "Share the rights of a region among the others, once all of these have acknowledged it. It is\n" +
				"refused while a daemon of the region was heard in the last minute. A region that is only\n" +
				"partitioned keeps its rights.\n\n" + fmt.Sprintf(stoppedText, "no daemon of the region runs"),
		}))
}

func newDaemon(p process) *cobra.Command {
	return group("daemon", "Share the rights of a lost daemon among the others",
		newRightsCommand(p, api.RemoveDaemon, &cobra.Command{
			Use:   "remove NAME --stopped",
			Short: "Share the rights of a lost daemon among the others of its region",
			Long: "Declare the id of a daemon dead, by the name or by the id of the daemon. The others of its\n" +
				"region share its rights once all of them have acknowledged it. In a region of three and more\n" +
				"that happens by itself after rights.daemon_horizon. In a smaller one, and if more than a\n" +
				"third is lost at once, it needs this command. A daemon that starts again joins under a new\n" +
				"id.\n\n" + fmt.Sprintf(stoppedText, "the daemon does not run"),
		}))
}

// newRightsCommand fills in a command about rights.
func newRightsCommand(p process, what api.Command, cmd *cobra.Command) *cobra.Command {
	q := api.CommandRequest{Author: operator()}
	weight := ""
	cmd.Long += "\n\nIt is an entry of the control log, and prints what happens next; rld budget shows when the\n" +
		"shares have moved. A daemon accepts it only from its own machine. The exit code is 0 when it\n" +
		"was done, 1 when it was refused or there is no answer."
	cmd.Args = one("names", "one", "")
	f := cmd.Flags()
	f.StringVar(&q.Reason, "reason", "", "why, for the history")
	switch what {
	case api.AddRegion, api.WeighRegion:
		f.StringVar(&weight, "weight", "", "share of limits, such as 20%")
	case api.RemoveRegion, api.RemoveDaemon:
		f.BoolVar(&q.Stopped, "stopped", false, "state that it is stopped")
	}
	return query[api.CommandAnswer]{
		path: "/v1/rights/" + string(what),
		request: func(args []string) (url.Values, any, error) {
			q.Name = args[0]
			if f.Lookup("weight") == nil {
				return nil, q, nil
			}
			if weight == "" {
				return nil, nil, errors.New("--weight is missing: want a share such as --weight 20%")
			}
			var err error
			q.Weight, err = api.ParsePercent(weight)
			return nil, q, err
		},
		text:   commandText,
		failed: exitNo,
	}.command(p, cmd)
}

// commandText describes what a command did, and the next step.
func commandText(a *api.CommandAnswer) string {
	return fmt.Sprintf("Version %s: %s.\n%s\n", or(printable(a.Version), "-"), or(printable(a.Text), "done"), printable(a.Next))
}
