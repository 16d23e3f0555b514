package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

func newClusterInit(p process) *cobra.Command {
	var c clusterChange
	var q api.InitRequest
	var from string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Begin the cluster, once",
		Long: "Begin the cluster: its founders (cluster.founders) agree on its id, and on its regions and\n" +
			"their weights as in the settings. Run it once, at any daemon. Run again, it prints when the\n" +
			"cluster began. It is refused until a daemon with a state.dir of every region in the\n" +
			"settings is heard, and a majority of the founders; within --wait it tries again.\n\n" +
			"Budgeted and strict limits admit nothing in windows that run when the cluster begins: daemons\n" +
			"of a former cluster, whose disks are lost, may have admitted their hits. With\n" +
			"--nothing-ran-before you state that there was none, and the running windows count as well.\n\n" +
			"With --from the regions have the weights of a backup, and its rules and overrides are\n" +
			"applied. That begins another cluster, with daemons whose state.dir is empty: it has no counts\n" +
			"and no rights of the former one. It is refused where a cluster has begun in another way." +
			changeExitText,
		Example: "  rld cluster init --nothing-ran-before --wait 5m\n" +
			"  rld cluster init --without ap-south-1\n" +
			"  rld cluster init --from backup.json --wait 1m",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settle(cmd, p); err != nil {
				return err
			}
			if from == "" {
				return c.init(cmd.Context(), p, &q)
			}
			b, err := readBackup(from)
			if err != nil {
				return exitWith(exitNo, err)
			}
			return c.restore(cmd.Context(), p, &q, b)
		},
	}
	c.addFlags(cmd, "time to wait until the cluster has begun (0s: do not wait)")
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "`file` of rld cluster backup, whose regions and limits the cluster has")
	f.StringSliceVar(&q.Without, "without", nil, "regions of the settings that need not be heard")
	f.BoolVar(&q.NothingRanBefore, "nothing-ran-before", false, "state that no other cluster of these limits ran in the windows that run now")
	f.BoolVar(&q.DryRun, "dry-run", false, "print what is missing, and change nothing")
	return cmd
}

// initEvery is the time between two attempts.
const initEvery = 500 * time.Millisecond

// init begins the cluster and prints the answer.
func (c *clusterChange) init(ctx context.Context, p process, q *api.InitRequest) error {
	answer, late := c.begin(ctx, q)
	if answer == nil {
		return late
	}
	return c.initDone(p, answer, late)
}

// begin asks for the beginning until the cluster has begun. The answer is nil
// without one; the error is why the cluster has not begun.
func (c *clusterChange) begin(ctx context.Context, q *api.InitRequest) (*api.InitAnswer, error) {
	deadline := time.Now().Add(c.wait)
	for asked := false; ; {
		var answer api.InitAnswer
		err := c.post(ctx, api.InitCluster, q, &answer)
		asked = asked || answer.UnderWay
		switch late := final(err) || !time.Now().Add(initEvery).Before(deadline); {
		case err == nil && (answer.Cluster.Begun || q.DryRun):
			return &answer, nil
		case late && err != nil && asked:
			return nil, exitWith(exitUnknown, fmt.Errorf("%w; the founders were asked before: repeat the command", err))
		case late && err != nil:
			return nil, err
		case late:
			return &answer, c.late(&answer, asked)
		}
		select {
		case <-ctx.Done():
			return nil, exitWith(exitUnknown, ctx.Err())
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
		text := fmt.Sprintf("Cluster %s began at %s, with %s.\n", printable(s.ID), s.BegunAt.Format(time.RFC3339), regionsOf(s))
		if s.RightsFrom != nil {
			text += "Budgeted and strict limits admit hits in windows that start after that, and none in older ones.\n"
		}
		return text
	case len(a.Missing) > 0:
		return fmt.Sprintf("The cluster cannot begin yet: missing %s.\n", strings.Join(printables(a.Missing), "; "))
	}
	text := fmt.Sprintf("The cluster can begin, with %s. Nothing was done.\n", regionsOf(s))
	if !a.NothingRanBefore {
		text += "Budgeted and strict limits would admit nothing in windows that run then: if nothing ran before, use --nothing-ran-before.\n"
	}
	return text
}

// regionsOf lists the regions with their weights.
func regionsOf(s *api.ClusterState) string {
	names := make([]string, len(s.Regions))
	for i, g := range s.Regions {
		names[i] = fmt.Sprintf("%s %s", or(g.Name, "-"), percentOf(g.Weight))
	}
	return few(names)
}

func newClusterBackup(p process) *cobra.Command {
	var c adminClient
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the regions and the limits of the cluster to a file",
		Long: "Write to a new file what another cluster needs to decide as this one: the regions and their\n" +
			"weights, the files of the latest rules, and the overrides that have not ended. It has no\n" +
			"counts and no rights, so its age has no effect on a bound. rld cluster init --from reads it.\n" +
			"Exit codes: 0 written; 1 refused; 2 no daemon answers; 64 wrong usage.",
		Example: "  rld cluster backup rld-backup.json",
		Args:    one("files", "the name of a new file", "the name is empty, use that of a new file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.settle(cmd, p.environ); err != nil {
				return err
			}
			var b api.Backup
			if err := c.ask(cmd.Context(), url.URL{Path: clusterPath + "/backup"}, nil, &b); err != nil {
				if _, ok := errors.AsType[*refusal](err); ok {
					return exitWith(exitNo, err)
				}
				return exitWith(exitNoneOf, err)
			}
			if err := writeBackup(args[0], &b); err != nil {
				return exitWith(exitNo, err)
			}
			return p.write(backupText(args[0], &b), "")
		},
	}
	c.addFlags(cmd)
	return cmd
}

// maxBackup bounds a backup in bytes.
const maxBackup = maxAdminAnswer

// writeBackup writes a backup to a new file that only its owner may read.
func writeBackup(path string, b *api.Backup) error {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if _, err := api.ReadBackup(data); err != nil {
		return fmt.Errorf("the backup of the daemon cannot be used: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: use the name of a new file", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// readBackup reads the file of a backup.
func readBackup(path string) (*api.Backup, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBackup+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxBackup:
		return nil, fmt.Errorf("%s is larger than %d bytes, which no backup of rld is", path, maxBackup)
	}
	b, err := api.ReadBackup(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// restored is the result of rld cluster init --from.
type restored struct {
	*api.InitAnswer
	// From names the cluster and the version of the backup. Rules is the
	// version of the rules here, "" for none; Overrides were set, and Ended are
	// those that ended meanwhile.
	From      string `json:"from"`
	Rules     string `json:"rules_version"`
	Overrides int    `json:"overrides"`
	Ended     int    `json:"ended_overrides"`
}

// restore begins a cluster with the regions and the limits of a backup. Its
// commands have ids of the backup: repeated, it goes on where it ended.
func (c *clusterChange) restore(ctx context.Context, p process, q *api.InitRequest, b *api.Backup) error {
	q.Regions = b.Regions
	answer, late := c.begin(ctx, q)
	if answer == nil {
		return late
	}
	if late != nil || q.DryRun {
		return c.initDone(p, answer, late)
	}
	if err := c.fresh(ctx, answer, b); err != nil {
		return err
	}
	out := restored{InitAnswer: answer, From: fmt.Sprintf("version %s of cluster %s", b.Version, b.Cluster)}
	reason := fmt.Sprintf("backup of %s, %s", b.At.Format(time.RFC3339), out.From)
	if len(b.Files) > 0 {
		rules := api.LimitsRequest{ID: restoreID(b, 0), Author: operator(), Reason: reason, Files: b.Files}
		done, err := c.send(ctx, api.ApplyRules, &rules, c.pauses(ctx))
		if err != nil {
			return err
		}
		out.Rules = done.Version
	}
	for i := range b.Overrides {
		o := &b.Overrides[i]
		next, over := overrideAgain(o, time.Now())
		if over {
			out.Ended++
			continue
		}
		next.ID = restoreID(b, i+1)
		if _, err := c.send(ctx, o.Command, &next, c.pauses(ctx)); err != nil {
			return fmt.Errorf("override %d of the backup (%s): %w", i+1, printable(o.Domain+" "+o.Rule+o.Key), err)
		}
		out.Overrides++
	}
	if c.client.form.json {
		return indented(p.out, out)
	}
	text := initText(answer) + fmt.Sprintf("It has the limits of %s: %s, %s", printable(out.From), suggest.Plural(len(b.Files), "file"), suggest.Plural(out.Overrides, "override"))
	if out.Ended > 0 {
		text += fmt.Sprintf("; %s ended meanwhile", suggest.Plural(out.Ended, "override"))
	}
	return p.write(text+". rld limits list shows when they are in force.\n", "")
}

// restoreID returns the id of a command of a backup.
func restoreID(b *api.Backup, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", b.Hash, i))
	return hex.EncodeToString(sum[:8])
}

// overrideAgain returns the command that sets an override for what is left of
// it, and whether it is over.
func overrideAgain(o *api.BackupOverride, now time.Time) (q api.LimitsRequest, over bool) {
	q = o.LimitsRequest
	begin := now
	if q.From != nil && q.From.After(now) {
		begin = *q.From
	} else {
		q.From = nil
	}
	if o.Until != nil {
		q.ForSeconds = o.Until.Sub(begin).Seconds()
	}
	return q, q.ForSeconds <= 0
}

// fresh returns an error unless a cluster began with a backup, or in the same
// way and without limits. It waits for a leader.
func (c *clusterChange) fresh(ctx context.Context, a *api.InitAnswer, b *api.Backup) error {
	for pause := c.pauses(ctx); ; {
		is, err := clusterQuery.ask(ctx, &c.client, nil)
		if err != nil {
			return err
		}
		if is.Cluster != nil && is.Cluster.Leader != nil {
			break
		}
		if !pause() {
			return exitWith(exitPartly, errors.New("the cluster has begun, and has no leader yet: repeat the command"))
		}
	}
	var done api.LimitsCommandAnswer
	first := url.URL{Path: limitsPath + "/command", RawQuery: url.Values{"id": {restoreID(b, 0)}}.Encode()}
	if err := commandError(c.client.ask(ctx, first, nil, &done)); err != nil || done.Done {
		return err
	}
	limits, err := limitsQuery(limitsText).ask(ctx, &c.client, nil)
	switch {
	case err != nil:
		return err
	case limits.Rules != "" || len(limits.Overrides) > 0 && len(b.Files) > 0:
		return exitWith(exitNo, fmt.Errorf("cluster %s began at %s and has limits of its own: a backup begins another cluster, of daemons whose state.dir is empty",
			printable(a.Cluster.ID), timeShown(a.Cluster.BegunAt)))
	}
	for _, g := range a.Cluster.Regions {
		i := slices.IndexFunc(b.Regions, func(o api.BackupRegion) bool { return o.Name == g.Name })
		if i < 0 || len(a.Cluster.Regions) == len(b.Regions) && math.Abs(g.Weight-float64(b.Regions[i].Weight)/1e6) > 1e-9 {
			return exitWith(exitNo, fmt.Errorf("cluster %s began with %s, not with the regions of the backup: a backup begins another cluster, of daemons whose state.dir is empty",
				printable(a.Cluster.ID), regionsOf(&a.Cluster)))
		}
	}
	return nil
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
			"while a majority of the voters is live.\n\n" +
			"Recoveries on two sides of a network partition are a split: neither side follows the other\n" +
			"one. --yield, at a daemon of the side to give up, ends it: a daemon of the other side begins\n" +
			"the next recovery with its record, and all follow that. Without --yes and the name of the daemon it only\n" +
			"prints what would happen." + changeExitText,
		Example: "  rld cluster recover\n" +
			"  rld cluster recover --yes us-0 --reason 'region eu-west is lost'\n" +
			"  rld cluster recover --yield --yes us-0",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settle(cmd, p); err != nil {
				return err
			}
			if q.Author = operator(); q.Yield && (q.Behind || q.Stopped) {
				return errors.New("--yield is for a split: it goes with neither --behind nor --stopped")
			}
			return c.recover(cmd.Context(), p, &q)
		},
	}
	c.addFlags(cmd, "time to wait until the other daemons follow (0s: do not wait)")
	f := cmd.Flags()
	f.StringVar(&q.Daemon, "yes", "", "do it: `name` of the daemon that answers, whose record is kept")
	f.StringVar(&q.Reason, "reason", "", "reason for the history")
	f.BoolVar(&q.Behind, "behind", false, "recover although a live daemon has a later record, which is dropped")
	f.BoolVar(&q.Stopped, "stopped", false, "state that no other voter runs, although some seem live")
	f.BoolVar(&q.Yield, "yield", false, "end a split: give the recovery of this daemon up, and follow the other one")
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
		return c.recovered(p, &answer, q.Yield, nil)
	}
	deadline := time.Now().Add(c.wait)
	for {
		behind := behindRecovery(&answer)
		if len(behind) == 0 {
			return c.recovered(p, &answer, q.Yield, nil)
		}
		if !time.Now().Add(initEvery).Before(deadline) {
			return c.recovered(p, &answer, q.Yield, exitWith(exitPartly, fmt.Errorf(
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
func (c *clusterChange) recovered(p process, a *api.RecoverAnswer, yield bool, late error) error {
	var err error
	if c.client.form.json {
		err = indented(p.out, a)
	} else {
		_, err = io.WriteString(p.out, recoverText(a, yield))
	}
	if err != nil {
		return errors.Join(late, exitWith(exitNo, err))
	}
	return late
}
