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

func newDaemon(p process) *cobra.Command {
	return usageCodes(group("daemon", "List the daemons, and remove one that is lost for good", newDaemonList(p), newDaemonRemove(p)))
}

func newDaemonRemove(p process) *cobra.Command {
	c := &regionChange{name: api.RemoveDaemon}
	return c.command(p, &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a daemon that is lost for good",
		Long: "Remove a daemon that is lost for good, by its name or its id: its vote goes to another one,\n" +
			"and the others of its region share its rights. In a region of three and more, these return\n" +
			"without a command after rights.daemon_horizon; in a smaller one, and when more than a third\n" +
			"is lost, they need it. --stopped is your statement that it does not run, and that its\n" +
			"state.dir will not be used again. Nothing checks that, but it is refused while the daemon\n" +
			"was heard in the last minute. If it is wrong, limits are exceeded by what the daemon still\n" +
			"admits. A daemon that starts with a removed state gets a new id and joins.",
		Example: "  rld daemon remove us-1 --stopped\n" +
			"  rld daemon remove us-1 --stopped --yes us-1 --reason 'its disk is gone'",
	})
}

func newDaemonList(p process) *cobra.Command {
	return query[api.MembersAnswer]{
		path:  "/members",
		lacks: func(a *api.MembersAnswer) string { return unless(a.Members != nil, "list of members") },
		text:  membersTable,
	}.command(p, &cobra.Command{
		Use:   "list",
		Short: "List the daemons of a cluster, as a running one sees them",
		Long: "Ask a running daemon for the live daemons of all regions: their addresses, whether they\n" +
			"do their share of the work, and their rules. A line below reports differing rules. The\n" +
			"exit code is 0 when there is an answer and 2 when there is none.",
		Example: "  rld daemon list\n" +
			"  rld daemon list --admin 10.0.0.7:6070 -o json",
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
	case m.Self && m.VoterOnly:
		return "asked, voter only"
	case m.Self:
		return "asked"
	case m.RulesAgree != nil && !*m.RulesAgree:
		return "other rules"
	case m.VoterOnly:
		return "voter only"
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
