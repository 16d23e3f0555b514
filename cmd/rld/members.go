package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

// alone is the message of a daemon without a region.
const alone = "This daemon is alone: it has no region and shares no counters.\n"

func newMembers(p process) *cobra.Command {
	return query[api.MembersAnswer]{
		path:  "/members",
		lacks: func(a *api.MembersAnswer) string { return unless(a.Members != nil, "list of members") },
		text:  membersTable,
	}.command(p, &cobra.Command{
		Use:   "members",
		Short: "List the daemons of a cluster, as a running one sees them",
		Long: "Ask a running daemon for the live daemons of all regions: their addresses, whether they\n" +
			"do their share of the work, and their rules. A line below reports differing rules. The\n" +
			"exit code is 0 when there is an answer and 2 when there is none.",
		Example: "  rld members\n" +
			"  rld members --admin 10.0.0.7:6070 -o json",
		Args: cobra.NoArgs,
	})
}

// membersTable shows an answer as text: a row per member, and whether their
// rules agree.
func membersTable(a *api.MembersAnswer) string {
	if a.Alone {
		return alone
	}
	t := newTable("REGION", "NAME", "READY", "SINCE", "ADDRESS", "BUILD", "INCARNATION", "RULES", "NOTE")
	for _, m := range a.Members {
		t.row(or(m.Region, "-"), or(m.Name, "-"), yesNo(m.Ready), ago(a.At, m.Since), or(m.Addr, "-"),
			or(m.Build, "-"), or(m.Incarnation, "-"), or(m.Rules, "-"), memberNote(&m))
	}
	return t.String() + "\n" + rulesLine(a.Members)
}

func memberNote(m *api.Member) string {
	switch {
	case m.Self:
		return "asked"
	case m.RulesAgree != nil && !*m.RulesAgree:
		return "other rules"
	}
	return "-"
}

// rulesLine reports whether all members have the rules of the queried daemon.
func rulesLine(members []api.Member) string {
	var differ, unknown []string
	for _, m := range members {
		switch {
		case m.Self:
		case m.RulesAgree == nil:
			unknown = append(unknown, or(m.Name, "-"))
		case !*m.RulesAgree:
			differ = append(differ, or(m.Name, "-"))
		}
	}
	if len(differ) == 0 && len(unknown) == 0 {
		return plural(len(members), "member") + ", all with the same rules.\n"
	}
	line := plural(len(members), "member") + "."
	if len(differ) > 0 {
		line += fmt.Sprintf(" Rules differ at %d of them: %s.", len(differ), few(differ))
	}
	if len(unknown) > 0 {
		line += fmt.Sprintf(" Rules are not known of %d of them: %s.", len(unknown), few(unknown))
	}
	return line + "\n"
}

// few lists names on a line: the first ten.
func few(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// ago is how long before at something was, both by the daemon's clock.
func ago(at time.Time, then *time.Time) string {
	if then == nil {
		return "-"
	}
	return max(0, at.Sub(*then).Round(time.Second)).String()
}
