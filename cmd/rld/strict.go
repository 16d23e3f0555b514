package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin"
)

func newStrict(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "strict",
		Short: "Say how strict keys are, and change who is home of them",
		Args:  cobra.ArbitraryArgs,
		RunE:  noCommand,
	}
	replicas := &cobra.Command{
		Use:   "replicas",
		Short: "Change the daemons that hold the marks of strict keys",
		Args:  cobra.ArbitraryArgs,
		RunE:  noCommand,
	}
	replicas.AddCommand(newReplicasSet(p))
	home := &cobra.Command{
		Use:   "home",
		Short: "Change the home region of a rule",
		Args:  cobra.ArbitraryArgs,
		RunE:  noCommand,
	}
	home.AddCommand(newHomeSet(p), newHomeUnset(p))
	cmd.AddCommand(newStrictStatus(p), replicas, home)
	return cmd
}

func newStrictStatus(p process) *cobra.Command {
	var a adminClient
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say which layout is in force, who holds marks, and who of them votes",
		Long: "Ask a running daemon which layout is in force and what the next one waits for; in each\n" +
			"region the daemons that hold marks, and whether they live and vote; the rules with a home\n" +
			"region of their own; and what it keeps itself. The exit code is 0 when there is an\n" +
			"answer and 2 when there is none.",
		Example: "  rld strict status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, p.environ); err != nil {
				return err
			}
			return runStrictStatus(cmd.Context(), p, &a)
		},
	}
	a.addFlags(cmd)
	return cmd
}

// strictPath is where the state of strict keys is, and below it the commands.
const strictPath = "/v1/strict"

func askStrict(ctx context.Context, a *adminClient) (*admin.StrictAnswer, error) {
	var answer admin.StrictAnswer
	err := a.get(ctx, strictPath, &answer)
	if err == nil && answer.At.IsZero() {
		err = a.notRLD(strictPath, errors.New("no time"))
	}
	return &answer, err
}

func runStrictStatus(ctx context.Context, p process, a *adminClient) error {
	answer, err := askStrict(ctx, a)
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	if a.form == formJSON {
		return exitWith(exitNoneOf, indented(p.out, answer))
	}
	_, err = io.WriteString(p.out, strictTable(answer))
	return exitWith(exitNoneOf, err)
}

// what all commands that change a layout say of themselves.
const layoutLong = "\n\nIt prints what is different in the next layout and the numbers of both, then waits until\n" +
	"that is in force at the daemon that is asked; where it is not within --wait, it says what\n" +
	"is missing, and the change goes on without it. A daemon takes it from its own machine alone.\n" +
	"The exit code is 0 when the layout is in force, 1 when it is not, was refused, or there is no\n" +
	"answer."

func newReplicasSet(p process) *cobra.Command {
	var c layoutChange
	cmd := &cobra.Command{
		Use:   "set NAME...",
		Short: "Say which daemons of a region hold the marks of strict keys",
		Long: "Say which daemons of a region hold the marks of the strict keys that are at home there: an\n" +
			"odd number, three for most. A new one votes once it has copied what a majority of each\n" +
			"region's former ones hold, and these have promised never to vote under the former layout\n" +
			"again: strict keys have no home for that long, and on_failure answers." + layoutLong,
		Example: "  rld strict replicas set us-0 us-1 us-3\n" +
			"  rld strict replicas set eu-0 eu-1 eu-2 --region eu-west --dry-run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return errors.New("no name, or an empty one: say the names of the daemons, an odd number")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c.request.Replicas = args
			return c.run(cmd, p, admin.SetReplicas)
		},
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&c.request.Region, "region", "", "region of the daemons; default that of the daemon asked")
	return cmd
}

func newHomeSet(p process) *cobra.Command {
	var c layoutChange
	cmd := &cobra.Command{
		Use:   "set RULE REGION",
		Short: "Give a rule a home region of its own",
		Long: "Give all keys of a rule one home region, instead of one for each by its hash. RULE is the\n" +
			"name of a limit or its path, as rld budget takes it. Who is home follows from the layout\n" +
			"alone, so that a change in the files of limits moves nothing by itself." + layoutLong,
		Example: "  rld strict home set login us-east",
		Args:    exactly("RULE", "REGION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.request.Rule, c.request.Region = args[0], args[1]
			return c.run(cmd, p, admin.SetHome)
		},
	}
	c.addFlags(cmd)
	return cmd
}

func newHomeUnset(p process) *cobra.Command {
	var c layoutChange
	cmd := &cobra.Command{
		Use:     "unset RULE",
		Short:   "Take the home region of its own from a rule",
		Long:    "Let each key of a rule have the home region that its hash says." + layoutLong,
		Example: "  rld strict home unset login",
		Args:    exactly("RULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.request.Rule = args[0]
			return c.run(cmd, p, admin.UnsetHome)
		},
	}
	c.addFlags(cmd)
	return cmd
}

// exactly takes one argument for each name, none of them empty.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != len(names) || slices.Contains(args, "") {
			return fmt.Errorf("%s given, say %s", plural(len(args), "argument"), few(names))
		}
		return nil
	}
}

// defaultWait is how long a command waits for its layout.
const defaultWait = 30 * time.Second
