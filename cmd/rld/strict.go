package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newStrict(p process) *cobra.Command {
	voters := group("voters", "Change the strict voters of a region", newVotersSet(p))
	return group("strict", "Show the state of strict keys, and change their voters and home regions",
		newStrictStatus(p), voters, newPin(p), newUnpin(p))
}

func newStrictStatus(p process) *cobra.Command {
	return strictQuery.command(p, &cobra.Command{
		Use:   "status",
		Short: "Show the layout in force and the strict voters of each region",
		Long: "Show the layout in force and why the next one is pending; for each region its strict\n" +
			"voters, whether they are live and whether they vote; the rules with a home region of\n" +
			"their own; and the acceptor of the daemon that answers. The exit code is 0 when there\n" +
			"is an answer and 2 when there is none.",
		Example: "  rld strict status",
		Args:    cobra.NoArgs,
	})
}

// strictPath serves the state of strict keys. The commands are below it.
const strictPath = "/v1/strict"

var strictQuery = query[api.StrictAnswer]{
	path:  strictPath,
	lacks: func(a *api.StrictAnswer) string { return unless(!a.At.IsZero(), "time") },
	text:  strictTable,
}

// layoutLong is the help text that all commands share that change a layout.
const layoutLong = "\n\nThe command prints the differences between the layouts and their numbers, then waits until\n" +
	"the next one is in force at the daemon. After --wait it prints the voters that are missing;\n" +
	"the change goes on without the command. A daemon accepts the command only from its own\n" +
	"machine. The exit code is 0 when the layout is in force, and 1 when it is not, when the\n" +
	"change was refused, or when there is no answer."

func newVotersSet(p process) *cobra.Command {
	var region string
	set := func(r *api.LayoutRequest, args []string) { r.Voters, r.Region = args, region }
	cmd := layoutCommand(p, api.SetVoters, set, &cobra.Command{
		Use:   "set NAME...",
		Short: "Choose the strict voters of a region",
		Long: "Choose the daemons of a region that store the watermarks of its strict keys: an odd\n" +
			"number, usually three. A new voter votes once it has copied the state of a majority of\n" +
			"the former voters of each region, and these have promised to stop voting under the former\n" +
			"layout. Until then strict keys have no owner, and on_failure applies.",
		Example: "  rld strict voters set us-0 us-1 us-3\n" +
			"  rld strict voters set eu-0 eu-1 eu-2 --region eu-west --dry-run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return errors.New("no name, or an empty one: give the names of the daemons, an odd number")
			}
			return nil
		},
	})
	cmd.Flags().StringVar(&region, "region", "", "region of the voters; default: the region of the daemon that answers")
	return cmd
}

func newPin(p process) *cobra.Command {
	set := func(r *api.LayoutRequest, args []string) { r.Rule, r.Region = args[0], args[1] }
	return layoutCommand(p, api.PinRule, set, &cobra.Command{
		Use:   "pin RULE REGION",
		Short: "Give a rule a home region of its own",
		Long: "Give all keys of a rule one home region instead of one by the hash of each key. RULE is\n" +
			"the name of a limit or its path, as for rld budget. The owner follows from the layout\n" +
			"alone, so a change in the limits files does not move keys.",
		Example: "  rld strict pin login us-east",
		Args:    exactly("RULE", "REGION"),
	})
}

func newUnpin(p process) *cobra.Command {
	set := func(r *api.LayoutRequest, args []string) { r.Rule = args[0] }
	return layoutCommand(p, api.UnpinRule, set, &cobra.Command{
		Use:     "unpin RULE",
		Short:   "Remove the home region of a rule",
		Long:    "Let the hash of each key of a rule choose its home region.",
		Example: "  rld strict unpin login",
		Args:    exactly("RULE"),
	})
}

// exactly requires one argument for each name, none of them empty.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != len(names) || slices.Contains(args, "") {
			return fmt.Errorf("%s given, want %s", plural(len(args), "argument"), few(names))
		}
		return nil
	}
}

// defaultWait is the time that a command waits for its layout.
const defaultWait = 30 * time.Second
