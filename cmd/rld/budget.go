package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newBudget(p process) *cobra.Command {
	cmd := budgetQuery(nil, budgetTable).command(p, &cobra.Command{
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
	})
	cmd.AddCommand(newBudgetExplain(p), newBudgetAdvise(p))
	return cmd
}

func newBudgetExplain(p process) *cobra.Command {
	request := func(args []string) (url.Values, any, error) { return url.Values{"rule": args}, nil, nil }
	return budgetQuery(request, explainText).command(p, &cobra.Command{
		Use:   "explain RULE",
		Short: "Say what the worst case of a rule is, why, and what changes it",
		Long: "Say in three sentences what the worst case of a rule is, why, and which setting changes\n" +
			"it, from what the daemon that is asked measured; then who holds its rights, and why this\n" +
			"daemon holds none where it does not. RULE is the name of a limit or its path, as rld\n" +
			"budget shows it, with the domain in front where two have the same.",
		Example: "  rld budget explain login\n" +
			"  rld budget explain 'edge: tenant=* > user_id'",
		Args: oneRule,
	})
}

func newBudgetAdvise(p process) *cobra.Command {
	target := "0.1%"
	q := budgetQuery(func(args []string) (url.Values, any, error) {
		if _, err := api.ParsePercent(target); err != nil {
			return nil, nil, fmt.Errorf("--false-denials: %w", err)
		}
		return url.Values{"rule": args, "false_denials": {target}}, nil, nil
	}, adviceText)
	q.verdict = noAdvice
	cmd := q.command(p, &cobra.Command{
		Use:   "advise RULE",
		Short: "Print the overage budget that keeps false denials of a rule to a target",
		Long: "Print the line to paste into the rate_limit of a rule, so that at most so many of the hits\n" +
			"that the limit has room for are refused for want of rights, and what it leads to. It goes\n" +
			"by the demand of the windows that the daemon that is asked remembers. The exit code is 0\n" +
			"when there is such a budget, 1 when there is none, 2 when there is no answer.",
		Example: "  rld budget advise login --false-denials 0.1%",
		Args:    oneRule,
	})
	cmd.Flags().StringVar(&target, "false-denials", target, "part of the hits that may be refused falsely")
	return cmd
}

var oneRule = one("rules", "one, by the name of its limit or by its path", "")

// budgetQuery asks for rules.
func budgetQuery(
	request func([]string) (url.Values, any, error), text func(*api.BudgetAnswer) string,
) query[api.BudgetAnswer] {
	return query[api.BudgetAnswer]{
		path:    "/v1/budget",
		request: request,
		lacks:   func(a *api.BudgetAnswer) string { return unless(a.Rules != nil, "list of rules") },
		text: func(a *api.BudgetAnswer) string {
			if a.Alone {
				return alone + "It never admits more than a limit says.\n"
			}
			return text(a)
		},
	}
}

// noAdvice returns the cause of missing advice as an error, or nil.
func noAdvice(answer *api.BudgetAnswer) error {
	var problems []string
	for _, r := range answer.Rules {
		if r.Advice != nil && r.Advice.Problem != "" {
			problems = append(problems, ruleText(r.Domain, r.Rule, r.Name)+": "+printable(r.Advice.Problem))
		}
	}
	slices.Sort(problems)
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "\n"))
}
