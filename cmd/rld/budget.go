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
		Short: "Show how far each limit may be exceeded, and was exceeded",
		Long: "Ask a running daemon how far the limits that daemons count together may be exceeded, and\n" +
			"were exceeded: the prediction for counts alone, the overage now and the greatest of the\n" +
			"last hour, and the bound. Rights bound a rule with an overage_budget, and one of\n" +
			"consistency partition, even if messages are late or lost, or regions are partitioned. Only the number\n" +
			"of regions bounds any other. Below the rules: the shares of the rights, and the\n" +
			"staleness of the view of each region. The exit code is 0 when there is an answer and 2\n" +
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
		Short: "Explain the worst case of a rule, its cause, and the setting that changes it",
		Long: "Explain in three sentences the worst case of a rule, its cause, and the setting that\n" +
			"changes it, from the measurements of the daemon that answers; then the holders of its\n" +
			"rights, and why this daemon holds none if so. RULE is the name of a limit or its path,\n" +
			"as rld budget shows it, with the domain in front where two have the same.",
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
		Long: "Print the line to paste into the rate_limit of a rule, so that at most this part of the\n" +
			"hits that fit the limit is denied for lack of rights, and the effect of that budget. The\n" +
			"result follows from the demand of the windows that the answering daemon remembers. The\n" +
			"exit code is 0 when there is such a budget, 1 when there is none, 2 when there is no\n" +
			"answer.",
		Example: "  rld budget advise login --false-denials 0.1%",
		Args:    oneRule,
	})
	cmd.Flags().StringVar(&target, "false-denials", target, "part of the hits that may be denied falsely")
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
				return alone + "It never exceeds a limit.\n"
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
