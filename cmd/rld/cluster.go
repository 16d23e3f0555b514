package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

// clusterPath serves the state of the control log. The commands are below it.
const clusterPath = "/v1/cluster"

func newCluster(p process) *cobra.Command {
	return usageCodes(group("cluster", "Begin the cluster, and show, back up and recover its control log",
		newClusterInit(p), newClusterStatus(p), newClusterHistory(p), newClusterFormat(p), newClusterRecover(p), newClusterBackup(p)))
}

// usageCodes gives the errors of usage of a command, and of those below it,
// their exit code.
func usageCodes(cmd *cobra.Command) *cobra.Command {
	coded := func(c *cobra.Command, err error) error {
		if _, ok := errors.AsType[*exitError](err); err == nil || ok { // ok: it has its code
			return err
		}
		return exitWith(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	}
	cmd.SetFlagErrorFunc(coded)
	check := cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error { return coded(c, check(c, args)) }
	run := cmd.RunE
	cmd.RunE = func(c *cobra.Command, args []string) error { return coded(c, run(c, args)) }
	for _, c := range cmd.Commands() {
		usageCodes(c)
	}
	return cmd
}

// senderText is the help on who may send a command, changeExitText the same
// with the exit codes.
const (
	senderText = "\n\nThe user of the daemon and root may run this on the daemon's machine, operators anywhere with\n" +
		"--token-file or --tls-cert. "
	changeExitText = senderText + "Exit codes: 0 done, or nothing to do; 1 refused, nothing\n" +
		"was changed; 2 no daemon answers, nothing was sent; 3 done, but not everywhere within --wait;\n" +
		"4 not known, repeat the command; 64 wrong usage."
)

var clusterQuery = query[api.ClusterAnswer]{
	path:  clusterPath,
	lacks: func(a *api.ClusterAnswer) string { return unless(!a.At.IsZero(), "time") },
	text: func(a *api.ClusterAnswer) string {
		if a.Alone || a.Cluster == nil {
			return alone
		}
		return clusterText(a.Cluster)
	},
}

func newClusterStatus(p process) *cobra.Command {
	return clusterQuery.command(p, &cobra.Command{
		Use:   "status",
		Short: "Show the control log: its version, leader and voters, and what is wrong",
		Long: "Show whether the cluster has begun, and what it waits for; its id, the version and the hash\n" +
			"of its record, the leader, the voters and the regions, as the daemon that answers knows\n" +
			"them; and what is wrong, with the remedy. The exit code is 0 when there is an answer, 2\n" +
			"when there is none, and 64 for wrong usage.",
		Example: "  rld cluster status\n" +
			"  rld cluster status --admin 10.0.0.7:6070 -o json",
		Args: cobra.NoArgs,
	})
}

func newClusterHistory(p process) *cobra.Command {
	dropped := false
	cmd := query[api.HistoryAnswer]{
		path:  clusterPath + "/history",
		lacks: func(a *api.HistoryAnswer) string { return unless(!a.At.IsZero(), "time") },
		text:  func(a *api.HistoryAnswer) string { return historyText(a, dropped) },
	}.command(p, &cobra.Command{
		Use:   "history",
		Short: "List the commands that changed the cluster",
		Long: "List the latest commands that changed the cluster, the oldest first: version, time, author,\n" +
			"reason and effect. With --dropped, those that a recovery dropped instead. The exit code is\n" +
			"0 when there is an answer, 2 when there is none, and 64 for wrong usage.",
		Example: "  rld cluster history\n" +
			"  rld cluster history --dropped",
		Args: cobra.NoArgs,
	})
	cmd.Flags().BoolVar(&dropped, "dropped", false, "list the commands that a recovery dropped")
	return cmd
}

func newClusterFormat(p process) *cobra.Command {
	var c regionChange
	var hold, unhold bool
	cmd := &cobra.Command{
		Use:   "format",
		Short: "Show the format of the record, and hold it",
		Long: "Show the format of the record of the cluster, and which daemons hold a later one back. A\n" +
			"later version of rld may need a later format. The record gets it when all daemons that were\n" +
			"seen in the last 24 hours read it. From then on older versions have no part in the cluster,\n" +
			"and do not start with its files. --hold keeps the present format until --unhold, so that a\n" +
			"downgrade stays possible.",
		Example: "  rld cluster format\n" +
			"  rld cluster format --hold --reason 'until the new version ran for a week'\n" +
			"  rld cluster format --unhold",
	}
	cmd = c.command(p, cmd)
	cmd.Args = cobra.NoArgs
	change := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.name = api.HoldFormat; unhold {
			c.name = api.UnholdFormat
		}
		switch {
		case hold && unhold:
			return errors.New("--hold and --unhold are opposites: want one of them")
		case hold || unhold:
			return change(cmd, nil)
		}
		if err := c.settle(cmd, p); err != nil {
			return err
		}
		show := clusterQuery
		show.text = formatText
		return show.print(cmd.Context(), p.out, &c.client, nil)
	}
	cmd.Flags().Lookup("wait").Usage = "time to wait until it is done"
	f := cmd.Flags()
	f.BoolVar(&hold, "hold", false, "keep the present format")
	f.BoolVar(&unhold, "unhold", false, "let the format rise again")
	return cmd
}

// formatText formats the state of the format of the record.
func formatText(a *api.ClusterAnswer) string {
	if a.Alone || a.Cluster == nil {
		return alone
	}
	var b strings.Builder
	f := &a.Cluster.Format
	switch {
	case f.Unread != 0:
		fmt.Fprintf(&b, "The record of the cluster has format %d, and this daemon reads formats up to %d: start a later version.\n", f.Unread, f.Reads)
		return b.String()
	case f.Record == 0:
		return "The cluster has not begun.\n"
	}
	fmt.Fprintf(&b, "The record has format %d, and this daemon reads formats up to %d.\n", f.Record, f.Reads)
	switch {
	case len(f.Behind) > 0:
		fmt.Fprintf(&b, "A later one waits for daemons that do not read it: %s.\n", few(printables(f.Behind)))
	case f.RaisedAt != nil:
		fmt.Fprintf(&b, "All daemons read format %d. The record gets it at %s, unless one that does not is seen before.\n", f.Next, timeShown(f.RaisedAt))
	case f.Next != 0:
		fmt.Fprintf(&b, "All daemons read format %d.\n", f.Next)
	}
	if c := f.Held; c != nil {
		fmt.Fprintf(&b, "It is held since version %s, by %s", or(c.Version, "-"), or(c.Author, "-"))
		if c.Reason != "" {
			fmt.Fprintf(&b, ": %s", printable(c.Reason))
		}
		b.WriteString(". rld cluster format --unhold ends that.\n")
	}
	return b.String()
}

// clusterChange is a command about the control log.
type clusterChange struct {
	client adminClient
	wait   time.Duration
	given  float64 // wait in seconds, 0 for the default
}

// addFlags adds the flags of all such commands.
func (c *clusterChange) addFlags(cmd *cobra.Command, wait string) {
	c.client.addFlags(cmd)
	cmd.Flags().DurationVar(&c.wait, "wait", 10*time.Second, wait)
}

// settle checks the flags. Its error is one of usage.
func (c *clusterChange) settle(cmd *cobra.Command, p process) error {
	if c.wait < 0 {
		return fmt.Errorf("--wait %s is negative: want a duration such as 30s, or 0s to not wait", c.wait)
	}
	if cmd.Flags().Changed("wait") {
		c.given = c.wait.Seconds()
	}
	return c.client.settle(cmd, p.environ)
}

// commandError returns the error of a command, with its exit code. The command
// may be repeated if it has no result.
func commandError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*refusal](err); ok {
		return exitWith(exitNo, err)
	}
	if _, ok := errors.AsType[*noAnswer](err); ok {
		return exitWith(exitUnknown, fmt.Errorf("%w It may have been executed: repeat it", err))
	}
	return exitWith(exitNoneOf, err)
}

// post sends a command once.
func (c *clusterChange) post(ctx context.Context, name api.ClusterCommandName, body, answer any) error {
	return commandError(c.client.ask(ctx, url.URL{Path: clusterPath + "/" + string(name)}, body, answer))
}

// operator returns the name of the user, for the history.
func operator() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// clusterText formats the state of the control log.
func clusterText(s *api.ClusterState) string {
	var b strings.Builder
	b.WriteString(clusterLine(s))
	b.WriteString(problemLines(s))
	if s.Begun {
		fmt.Fprintf(&b, "Record: hash %s", or(s.Hash, "-"))
		if s.Recovery > 0 {
			fmt.Fprintf(&b, ", recovery %d", s.Recovery)
		}
		if s.BegunAt != nil {
			fmt.Fprintf(&b, ". The cluster began at %s", s.BegunAt.Format(time.RFC3339))
		}
		b.WriteString(".\n")
	}
	d := &s.Daemon
	fmt.Fprintf(&b, "This daemon: %s, %s, %s, id %s.\n", daemonText(&api.DaemonRef{Region: d.Region, Name: d.Name}), roleText(d),
		or(d.State, "-"), or(d.ID, "-"))
	if len(s.Voters) > 0 {
		b.WriteString("\n" + clusterDaemons("VOTER", s.Voters))
	}
	if len(s.Founders) > 0 && !s.Begun {
		fmt.Fprintf(&b, "Founders: %s.\n", few(printables(s.Founders)))
	}
	t := newTable("REGION", "WEIGHT", "HEARD", "NOTE")
	for _, g := range s.Regions {
		note := "-"
		if g.Draining {
			note = "draining"
		}
		t.row(or(g.Name, "-"), percentOf(g.Weight), yesNo(g.Reached), note)
	}
	return b.String() + "\n" + t.String()
}

// clusterLine formats the state of the control log on one line.
func clusterLine(s *api.ClusterState) string {
	if !s.Begun {
		return fmt.Sprintf("Cluster: %s.\n", or(s.Waiting, "it has not begun"))
	}
	leader := "no leader"
	if s.Leader != nil {
		leader = "leader " + or(s.Leader.Name, or(s.Leader.ID, "-"))
	}
	return fmt.Sprintf("Cluster %s: version %s, %s, this daemon is a %s.\n", or(s.ID, "-"), or(s.Version, "-"), leader, roleText(&s.Daemon))
}

// problemLines lists the problems.
func problemLines(s *api.ClusterState) string {
	var b strings.Builder
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "! %s\n", printable(p))
	}
	return b.String()
}

// roleText formats the part of a daemon in the control log.
func roleText(d *api.ClusterDaemon) string {
	switch {
	case d.VoterOnly && d.Role == api.RoleVoter:
		return "voter only"
	case d.VoterOnly:
		return string(d.Role) + ", voter only"
	}
	return string(d.Role)
}

// clusterDaemons formats daemons as a table.
func clusterDaemons(title string, all []api.ClusterDaemon) string {
	t := newTable(title, "REGION", "ROLE", "STATE", "VERSION", "HEARD", "ID")
	for i := range all {
		d := &all[i]
		heard := "-"
		switch {
		case d.Self:
			heard = "asked"
		case d.AgeSeconds != nil:
			heard = secondsShown(d.AgeSeconds) + " ago"
		}
		t.row(or(d.Name, "-"), or(d.Region, "-"), roleText(d), or(d.State, "-"), or(d.Version, "-"), heard, or(d.ID, "-"))
	}
	return t.String()
}

// historyText formats the commands, or those that a recovery dropped.
func historyText(a *api.HistoryAnswer, dropped bool) string {
	list, none := a.Commands, "The cluster has not begun.\n"
	if dropped {
		list = a.Dropped
	}
	switch {
	case a.Alone:
		return alone
	case a.Begun:
		none = "No command was dropped.\n"
	}
	if len(list) == 0 {
		return none
	}
	t := newTable("VERSION", "TIME", "AUTHOR", "COMMAND", "REASON")
	for _, c := range list {
		t.row(or(c.Version, "-"), c.At.Format(time.RFC3339), or(c.Author, "-"), or(c.Text, "-"), or(c.Reason, "-"))
	}
	return t.String()
}

// recoverText formats the answer to a recovery.
func recoverText(a *api.RecoverAnswer, yield bool) string {
	s := &a.Cluster
	if yield && a.DryRun {
		return fmt.Sprintf("%s would follow the other recovery, and what its own one alone has would be dropped. Nothing was done.\n"+
			"To do it, add --yes %s.\n", or(s.Daemon.Name, "-"), or(s.Daemon.Name, "-"))
	}
	if yield {
		return fmt.Sprintf("Recovery %d began with the record of the other side, and %s follows it.\n"+
			"rld cluster history --dropped lists what was dropped.\n", a.Recovery, or(s.Daemon.Name, "-"))
	}
	if !a.DryRun {
		return fmt.Sprintf("Recovery %d began with the record of %s, its only voter. Others become voters by themselves.\n"+
			"rld cluster history --dropped lists what was dropped.\n", a.Recovery, or(s.Daemon.Name, "-"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Recovery %d would begin with version %s of %s. Nothing was done.\n", a.Recovery, or(s.Version, "-"), or(s.Daemon.Name, "-"))
	fmt.Fprintf(&b, "Later versions of others are dropped. If none of those that are not live comes back, add --yes %s.\n\n", or(s.Daemon.Name, "-"))
	b.WriteString(clusterDaemons("DAEMON", withVoters(s)))
	return b.String()
}

// withVoters returns the daemon that answered, its peers, and the voters that
// are none of them: it has not heard these since it started.
func withVoters(s *api.ClusterState) []api.ClusterDaemon {
	all := append([]api.ClusterDaemon{s.Daemon}, s.Peers...)
	for _, v := range s.Voters {
		if !slices.ContainsFunc(all, func(d api.ClusterDaemon) bool { return d.ID == v.ID }) {
			all = append(all, v)
		}
	}
	return all
}

// backupText formats what the file of a backup has.
func backupText(path string, b *api.Backup) string {
	text := fmt.Sprintf("%s has version %s of cluster %s: %s, %s, %s.\n", printable(path), printable(b.Version), printable(b.Cluster),
		suggest.Plural(len(b.Regions), "region"), suggest.Plural(len(b.Files), "file"), suggest.Plural(len(b.Overrides), "override"))
	if len(b.Files) == 0 {
		text += "It has no rules: none were applied or adopted. Keep a copy of the limits files of the daemons.\n"
	}
	return text
}
