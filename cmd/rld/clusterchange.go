package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newClusterInit(p process) *cobra.Command {
	var c clusterChange
	var q api.InitRequest
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Begin the cluster, once",
		Long: "Begin the cluster: its founders (cluster.founders) agree on its id, and on its regions and\n" +
			"their weights as in the settings. Run it once, at any daemon. Run again, it prints when the\n" +
			"cluster began. It is refused until a daemon with a state.dir of every region in the\n" +
			"settings is heard, and a majority of the founders; within --wait it tries again." +
			exitCodesText,
		Example: "  rld cluster init\n" +
			"  rld cluster init --wait 5m\n" +
			"  rld cluster init --without ap-south-1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settle(cmd, p); err != nil {
				return err
			}
			return c.init(cmd.Context(), p, &q)
		},
	}
	c.addFlags(cmd, "time to wait until the cluster has begun (0s: do not wait)")
	f := cmd.Flags()
	f.StringSliceVar(&q.Without, "without", nil, "regions of the settings that need not be heard")
	f.BoolVar(&q.DryRun, "dry-run", false, "print what is missing, and change nothing")
	return cmd
}

// initEvery is the time between two attempts.
const initEvery = 500 * time.Millisecond

// init asks for the beginning until the cluster has begun.
func (c *clusterChange) init(ctx context.Context, p process, q *api.InitRequest) error {
	deadline := time.Now().Add(c.wait)
	for asked := false; ; {
		var answer api.InitAnswer
		err := c.post(ctx, api.InitCluster, q, &answer)
		asked = asked || answer.UnderWay
		switch late := final(err) || !time.Now().Add(initEvery).Before(deadline); {
		case err == nil && (answer.Cluster.Begun || q.DryRun):
			return c.initDone(p, &answer, nil)
		case late && err != nil && asked:
			return exitWith(exitUnknown, fmt.Errorf("%w; the founders were asked before: repeat the command", err))
		case late && err != nil:
			return err
		case late:
			return c.initDone(p, &answer, c.late(&answer, asked))
		}
		select {
		case <-ctx.Done():
			return exitWith(exitUnknown, ctx.Err())
		case <-time.After(initEvery):
		}
	}
}

// final reports whether a command is refused for good.
func final(err error) bool {
	exit, ok := errors.AsType[*exitError](err)
	return ok && exit.code == exitNo
}

// late returns the error of a cluster that has not begun in time.
func (c *clusterChange) late(a *api.InitAnswer, asked bool) error {
	if len(a.Missing) > 0 {
		return exitWith(exitNo, fmt.Errorf("the cluster has not begun: missing %s", strings.Join(printables(a.Missing), "; ")))
	}
	text := fmt.Sprintf("the founders have not agreed within %s: repeat the command", c.wait)
	if len(a.Cluster.Problems) > 0 {
		text += "; " + strings.Join(printables(a.Cluster.Problems), "; ")
	}
	if !asked {
		return exitWith(exitNo, fmt.Errorf("%s", text))
	}
	return exitWith(exitUnknown, fmt.Errorf("%s", text))
}

// initDone prints an answer and returns late.
func (c *clusterChange) initDone(p process, a *api.InitAnswer, late error) error {
	var err error
	switch {
	case c.client.form.json:
		err = indented(p.out, a)
	case late == nil:
		_, err = io.WriteString(p.out, initText(a))
	}
	if err != nil {
		return exitWith(exitNo, err)
	}
	return late
}

// initText formats the answer to a command to begin.
func initText(a *api.InitAnswer) string {
	s := &a.Cluster
	switch {
	case s.Begun && s.BegunAt != nil:
		return fmt.Sprintf("Cluster %s began at %s, with %s.\n", printable(s.ID), s.BegunAt.Format(time.RFC3339), regionsOf(s))
	case len(a.Missing) > 0:
		return fmt.Sprintf("The cluster cannot begin yet: missing %s.\n", strings.Join(printables(a.Missing), "; "))
	}
	return fmt.Sprintf("The cluster can begin, with %s. Nothing was done.\n", regionsOf(s))
}

// regionsOf lists the regions with their weights.
func regionsOf(s *api.ClusterState) string {
	names := make([]string, len(s.Regions))
	for i, g := range s.Regions {
		names[i] = fmt.Sprintf("%s %s", or(g.Name, "-"), percentOf(g.Weight))
	}
	return few(names)
}

func newClusterRecover(p process) *cobra.Command {
	var c clusterChange
	var q api.RecoverRequest
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Replace a control log whose majority is lost for good",
		Long: "Replace the control log when the majority of its voters is lost for good. The next log\n" +
			"begins with the record of the daemon that answers, as its only voter; others become voters\n" +
			"by themselves. What its record lacks is dropped everywhere: rld cluster history --dropped\n" +
			"lists it. So it is refused while a live daemon has a later record (recover there), and\n" +
			"while a majority of the voters is live. Without --yes and the name of the daemon it only\n" +
			"prints what would happen." + exitCodesText,
		Example: "  rld cluster recover\n" +
			"  rld cluster recover --yes us-0 --reason 'region eu-west is lost'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settle(cmd, p); err != nil {
				return err
			}
			q.Author = operator()
			return c.recover(cmd.Context(), p, &q)
		},
	}
	c.addFlags(cmd, "time to wait until the other daemons follow (0s: do not wait)")
	f := cmd.Flags()
	f.StringVar(&q.Daemon, "yes", "", "do it: `name` of the daemon that answers, whose record is kept")
	f.StringVar(&q.Reason, "reason", "", "reason for the history")
	f.BoolVar(&q.Behind, "behind", false, "recover although a live daemon has a later record, which is dropped")
	f.BoolVar(&q.Stopped, "stopped", false, "state that no other voter runs, although some seem live; also ends a split")
	f.BoolVar(&q.DryRun, "dry-run", false, "print what would happen, and change nothing")
	return cmd
}

// recover asks for a recovery and waits until the live daemons follow it.
func (c *clusterChange) recover(ctx context.Context, p process, q *api.RecoverRequest) error {
	var answer api.RecoverAnswer
	client := c.client
	c.client.timeout = max(c.client.timeout, 6*time.Second) // the disk has five
	err := c.post(ctx, api.RecoverCluster, q, &answer)
	c.client = client
	if err != nil {
		return err
	}
	if answer.DryRun {
		return c.recovered(p, &answer, nil)
	}
	deadline := time.Now().Add(c.wait)
	for {
		behind := behindRecovery(&answer)
		if len(behind) == 0 {
			return c.recovered(p, &answer, nil)
		}
		if !time.Now().Add(initEvery).Before(deadline) {
			return c.recovered(p, &answer, exitWith(exitPartly, fmt.Errorf(
				"recovery %d began, and %s do not follow it yet: rld cluster status shows when they do", answer.Recovery, few(behind))))
		}
		select {
		case <-ctx.Done():
			return exitWith(exitPartly, ctx.Err())
		case <-time.After(initEvery):
		}
		if next, err := clusterQuery.ask(ctx, &c.client, nil); err == nil && next.Cluster != nil {
			answer.Cluster = *next.Cluster
		}
	}
}

// behindRecovery returns the live daemons that follow an earlier recovery.
func behindRecovery(a *api.RecoverAnswer) []string {
	var out []string
	for _, d := range a.Cluster.Peers {
		if !strings.HasPrefix(d.Version, fmt.Sprintf("%d.", a.Recovery)) {
			out = append(out, or(d.Name, "-"))
		}
	}
	return out
}

// recovered prints an answer and returns late.
func (c *clusterChange) recovered(p process, a *api.RecoverAnswer, late error) error {
	var err error
	if c.client.form.json {
		err = indented(p.out, a)
	} else {
		_, err = io.WriteString(p.out, recoverText(a))
	}
	if err != nil {
		return errors.Join(late, exitWith(exitNo, err))
	}
	return late
}

// recoverText formats the answer to a recovery.
func recoverText(a *api.RecoverAnswer) string {
	s := &a.Cluster
	if !a.DryRun {
		return fmt.Sprintf("Recovery %d began with the record of %s, its only voter. Others become voters by themselves.\n"+
			"rld cluster history --dropped lists what was dropped.\n", a.Recovery, or(s.Daemon.Name, "-"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Recovery %d would begin with version %s of %s. Nothing was done.\n", a.Recovery, or(s.Version, "-"), or(s.Daemon.Name, "-"))
	fmt.Fprintf(&b, "Later versions of others are dropped. If no voter of the following comes back, add --yes %s.\n\n", or(s.Daemon.Name, "-"))
	b.WriteString(clusterDaemons("DAEMON", append([]api.ClusterDaemon{s.Daemon}, s.Peers...)))
	return b.String()
}
