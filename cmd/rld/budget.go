package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newBudget(p process) *cobra.Command {
	var a adminClient
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Say how far each limit may be exceeded, and how far it was",
		Long: "Ask a running daemon how far the limits that daemons count together may be exceeded, and\n" +
			"how far they were: what is expected of counts alone, what was achieved now and at worst\n" +
			"within an hour, and the bound. A rule with an overage_budget, and one of consistency\n" +
			"partition, is bounded by rights, whatever is late, lost or partitioned; any other by the\n" +
			"number of regions alone. Below the rules: who holds which part of the rights, and how\n" +
			"old what is known of each region is. The exit code is 0 when there is an answer and 2\n" +
			"when there is none.",
		Example: "  rld budget\n" +
			"  rld budget explain login\n" +
			"  rld budget advise login --false-denials 0.1%",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, p.environ); err != nil {
				return err
			}
			answer, err := askBudget(cmd.Context(), &a, url.Values{})
			return printBudget(p, &a, answer, err, budgetTable)
		},
	}
	a.addFlags(cmd)
	cmd.AddCommand(newBudgetExplain(p), newBudgetAdvise(p))
	return cmd
}

// noArguments is cobra.NoArgs for a command that has others below it.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

func newBudgetExplain(p process) *cobra.Command {
	var a adminClient
	cmd := &cobra.Command{
		Use:   "explain RULE",
		Short: "Say what the worst case of a rule is, why, and what changes it",
		Long: "Say in three sentences what the worst case of a rule is, why, and which setting changes\n" +
			"it, from what the daemon that is asked measured; then who holds its rights, and why this\n" +
			"daemon holds none where it does not. RULE is the name of a limit or its path, as rld\n" +
			"budget shows it, with the domain in front where two have the same.",
		Example: "  rld budget explain login\n" +
			"  rld budget explain 'edge: tenant=* > user_id'",
		Args: oneRule,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, p.environ); err != nil {
				return err
			}
			answer, err := askBudget(cmd.Context(), &a, url.Values{"rule": args})
			return printBudget(p, &a, answer, err, explainText)
		},
	}
	a.addFlags(cmd)
	return cmd
}

func newBudgetAdvise(p process) *cobra.Command {
	var a adminClient
	target := "0.1%"
	cmd := &cobra.Command{
		Use:   "advise RULE",
		Short: "Print the overage budget that keeps false denials of a rule to a target",
		Long: "Print the line to paste into the rate_limit of a rule, so that at most so many of the hits\n" +
			"that the limit has room for are refused for want of rights, and what it leads to. It goes\n" +
			"by the demand of the windows that the daemon that is asked remembers. The exit code is 0\n" +
			"when there is such a budget, 1 when there is none, 2 when there is no answer.",
		Example: "  rld budget advise login --false-denials 0.1%",
		Args:    oneRule,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.settle(cmd, p.environ); err != nil {
				return err
			}
			if _, err := api.ParsePercent(target); err != nil {
				return fmt.Errorf("--false-denials: %w", err)
			}
			answer, err := askBudget(cmd.Context(), &a, url.Values{"rule": args, "false_denials": {target}})
			if err := printBudget(p, &a, answer, err, adviceText); err != nil {
				return err
			}
			return exitWith(exitNo, noAdvice(answer))
		},
	}
	a.addFlags(cmd)
	cmd.Flags().StringVar(&target, "false-denials", target, "part of the hits that may be refused falsely")
	return cmd
}

func oneRule(_ *cobra.Command, args []string) error {
	if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
		return fmt.Errorf("%d rules given, want one, by the name of its limit or by its path", len(args))
	}
	return nil
}

// askBudget asks for rules.
func askBudget(ctx context.Context, a *adminClient, q url.Values) (*api.BudgetAnswer, error) {
	const path = "/v1/budget"
	var answer api.BudgetAnswer
	err := a.ask(ctx, url.URL{Path: path, RawQuery: q.Encode()}, nil, &answer)
	if err == nil && answer.Rules == nil {
		err = a.notRLD(path, errors.New("no list of rules"))
	}
	return &answer, err
}

// printBudget writes an answer in the selected format.
func printBudget(p process, a *adminClient, answer *api.BudgetAnswer, err error,
	text func(*api.BudgetAnswer) string) error {
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	if a.form == formJSON {
		return exitWith(exitNoneOf, indented(p.out, answer))
	}
	if answer.Alone {
		_, err = io.WriteString(p.out, alone+"It never admits more than a limit says.\n")
	} else {
		_, err = io.WriteString(p.out, text(answer))
	}
	return exitWith(exitNoneOf, err)
}

// noAdvice returns the cause of missing advice as an error, or nil.
func noAdvice(answer *api.BudgetAnswer) error {
	var problems []string
	for i := range answer.Rules {
		if a := answer.Rules[i].Advice; a != nil && a.Problem != "" {
			problems = append(problems, ruleText(&answer.Rules[i])+": "+printable(a.Problem))
		}
	}
	slices.Sort(problems)
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "\n"))
}
