package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/disk"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/server/admin/api"
)

// alone is the message of a daemon without a region.
const alone = "This daemon is alone: it has no region and shares no counters.\n"

func newDaemon(p process) *cobra.Command {
	return usageCodes(group("daemon", "List the daemons, remove or revoke one, and reset one",
		newDaemonList(p), newDaemonRemove(p), newDaemonRevoke(p), newDaemonUnrevoke(p), newDaemonReset(p)))
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

func newDaemonRevoke(p process) *cobra.Command {
	c := &regionChange{name: api.RevokeDaemon}
	return c.command(p, &cobra.Command{
		Use:   "revoke REGION/NAME",
		Short: "Refuse a daemon whose certificate may be stolen",
		Long: "Refuse a daemon by the name in its certificate, whichever certificate it shows: all daemons\n" +
			"refuse its streams, and end those that it has within 60 s. The record has at most 256 such\n" +
			"names. It is refused when the live voters without it are no majority.\n\n" +
			"That is all: it still has its rights, its vote and the key of membership. Stop it, replace\n" +
			"swim.keys_file, and run rld daemon remove NAME --stopped a minute later. Give the daemon in\n" +
			"its place another name, or run rld daemon unrevoke when the old certificate has expired.\n" +
			"A cluster whose certificates have no names needs another cluster.secret_file instead.",
		Example: "  rld daemon revoke us-east/us-1 --reason 'its key was copied'",
	})
}

func newDaemonUnrevoke(p process) *cobra.Command {
	c := &regionChange{name: api.UnrevokeDaemon}
	return c.command(p, &cobra.Command{
		Use:   "unrevoke REGION/NAME",
		Short: "Accept a revoked daemon again",
		Long: "Accept a daemon that was revoked. Each certificate with its name counts again, also the one\n" +
			"that was stolen, if it has not expired.",
		Example: "  rld daemon unrevoke us-east/us-1",
	})
}

func newDaemonReset(p process) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset DIR",
		Short: "Move the state of a stopped daemon aside, so that it joins as a new one",
		Long: "Move the files in the state.dir of a daemon that does not run to a numbered folder in its\n" +
			"state.former, of which the latest four are kept. The daemon then starts under a new id,\n" +
			"and joins, as after the loss of its disk. Its former id keeps its share of the rights and\n" +
			"its votes: in a region of three and more daemons for rights.daemon_horizon, in a smaller\n" +
			"one until rld daemon remove. Do not reset a majority of the voters of the control log or\n" +
			"of the strict voters of a region: rld cluster status and rld strict status list them.\n\n" +
			"Without --yes it only prints what it would move. It asks no daemon. Exit codes: 0 done, or\n" +
			"nothing to do; 1 refused, nothing was changed; 64 wrong usage.",
		Example: "  rld daemon reset /var/lib/rld\n" +
			"  rld daemon reset /var/lib/rld --yes",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := resetState(p, osdir.Dir(args[0]), yes); err != nil {
				return exitWith(exitNo, err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}

// resetState moves the state of a daemon aside. It locks all that a running one
// locks, in the same order.
func resetState(p process, dir osdir.Dir, yes bool) error {
	if info, err := os.Stat(string(dir)); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is a file: want the state.dir of a daemon", dir)
	}
	var found []string
	for _, name := range replica.StateFiles {
		if _, err := dir.Size(name); err == nil {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return p.write(fmt.Sprintf("Nothing to do: %s has no state of a daemon.\n", dir), "")
	}
	for _, name := range []string{replica.FolderLock, replica.ControlFile + ".lock", replica.JournalFile + ".lock"} {
		lock, err := dir.Lock(name)
		if errors.Is(err, disk.ErrInUse) {
			return fmt.Errorf("a process uses %s: stop its daemon first", dir)
		} else if err != nil {
			return err
		}
		defer lock.Close()
	}
	if !yes {
		return p.write(fmt.Sprintf("Would move %s to a folder in %s. Repeat with --yes to do it.\n",
			strings.Join(found, ", "), dir.Path(osdir.Former)), "")
	}
	into, err := dir.MoveAside(replica.StateFiles...)
	if err != nil {
		return err
	}
	return p.write(fmt.Sprintf("Moved %s to %s. The daemon starts under a new id.\n", strings.Join(found, ", "), into), "")
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
	return t.String() + "\n" + rulesLine(a.Members) + revokedLine(a.Revoked)
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
		return suggest.Plural(len(members), "member") + ", all with the same rules.\n"
	}
	line := suggest.Plural(len(members), "member") + "."
	if len(differ) > 0 {
		line += fmt.Sprintf(" Rules differ at %d of them: %s.", len(differ), few(differ))
	}
	if len(unknown) > 0 {
		line += fmt.Sprintf(" Rules are not known of %d of them: %s.", len(unknown), few(unknown))
	}
	return line + "\n"
}

// revokedLine names the revoked daemons.
func revokedLine(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s revoked: %s.\n", suggest.Plural(len(names), "daemon"), few(printables(names)))
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
