package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

// regionChange is a command about a region, a daemon or the format.
type regionChange struct {
	clusterChange
	name    api.ClusterCommandName
	request api.ChangeRequest
	weight  string
	yes     string
}

func newRegion(p process) *cobra.Command {
	return usageCodes(group("region", "List, add, weigh, drain, remove and resume the regions of the cluster",
		newRegionList(p), newRegionAdd(p), newRegionWeight(p), newRegionDrain(p), newRegionRemove(p), newRegionResume(p)))
}

func newRegionList(p process) *cobra.Command {
	return query[api.ClusterAnswer]{
		path:  clusterPath,
		lacks: func(a *api.ClusterAnswer) string { return unless(!a.At.IsZero(), "time") },
		text: func(a *api.ClusterAnswer) string {
			if a.Alone || a.Cluster == nil {
				return alone
			}
			return regionsText(a.Cluster)
		},
	}.command(p, &cobra.Command{
		Use:   "list",
		Short: "List the regions and their weights",
		Long: "List the regions of the cluster: their weights, whether a daemon of each one was heard, since\n" +
			"which version of the record each one is there, and how many daemons founded it. Before the\n" +
			"cluster begins these are the regions of the settings. The exit code is 0 when there is an\n" +
			"answer, 2 when there is none, and 64 for wrong usage.",
		Example: "  rld region list",
		Args:    cobra.NoArgs,
	})
}

// regionsText formats the regions.
func regionsText(s *api.ClusterState) string {
	t := newTable("REGION", "WEIGHT", "HEARD", "SINCE VERSION", "FOUNDERS", "NOTE")
	for _, g := range s.Regions {
		note := "-"
		if g.Draining {
			note = "draining"
		}
		t.row(or(g.Name, "-"), percentOf(g.Weight), yesNo(g.Reached), or(g.Generation, "-"), g.Founders, note)
	}
	return t.String()
}

func newRegionAdd(p process) *cobra.Command {
	c := &regionChange{name: api.AddRegion}
	cmd := c.weighing(p, &cobra.Command{
		Use:   "add NAME",
		Short: "Add a region to the cluster",
		Long: "Add a region: its daemons that are heard begin with its rights, so start them first. The\n" +
			"weights of the other regions shrink in proportion. Its rights count when all regions have\n" +
			"acknowledged what they give up. A region that was removed begins anew: nothing of before\n" +
			"counts, and limits with scope: region begin with the first window after its removal. One that\n" +
			"was removed without --stopped needs it here: nobody knows when its last daemon learned that.",
		Example: "  rld region add ap-south --weight 20%",
	})
	cmd.Flags().BoolVar(&c.request.Stopped, "stopped", false, "state that all daemons of the removed region are stopped, or know that it was removed")
	return cmd
}

func newRegionWeight(p process) *cobra.Command {
	c := &regionChange{name: api.WeighRegion}
	return c.weighing(p, &cobra.Command{
		Use:   "weight NAME",
		Short: "Set the weight of a region",
		Long: "Set the weight of a region: its part of the limits without weights of their own. The weights\n" +
			"of the other regions change in proportion. It ends the draining of a region. Shares then\n" +
			"follow demand.",
		Example: "  rld region weight eu-west --weight 50%",
	})
}

func newRegionDrain(p process) *cobra.Command {
	c := &regionChange{name: api.DrainRegion}
	return c.forcing(c.command(p, &cobra.Command{
		Use:   "drain NAME",
		Short: "Give the rights and votes of a region to the others",
		Long: "Give the weight of a region, and its votes in the control log, to the others, before you\n" +
			"remove it. rld region list shows it as draining; rld region weight ends that.",
		Example: "  rld region drain eu-west",
	}))
}

func newRegionRemove(p process) *cobra.Command {
	c := &regionChange{name: api.RemoveRegion}
	return c.command(p, &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a region that is drained or lost for good",
		Long: "Remove a region. One that drains is removed as soon as its daemons have acknowledged that\n" +
			"they hold nothing. For one that is lost for good, --stopped is your statement that no daemon\n" +
			"of it runs, and that none will start again before rld region add. Nothing checks that, but it\n" +
			"is refused while any daemon heard one of them in the last minute. The others then get its\n" +
			"rights. If it is wrong, limits are exceeded by what the region still admits. A region that\n" +
			"is only partitioned keeps its rights: do not remove it.",
		Example: "  rld region remove eu-west\n" +
			"  rld region remove eu-west --stopped\n" +
			"  rld region remove eu-west --stopped --yes eu-west --reason 'lost'",
	})
}

func newRegionResume(p process) *cobra.Command {
	var c clusterChange
	var q api.ResumeRequest
	var stated bool
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Let a region go on that restarted while it was cut off",
		Long: "Let the region of the daemon that answers hold its rights again, although all its daemons\n" +
			"restarted while no leader of the control log could be reached. They cannot know whether the\n" +
			"region was removed meanwhile: --was-not-removed is your statement that it was not, and that\n" +
			"none of its daemons was. Nothing checks that. If it is wrong, limits are exceeded by what the\n" +
			"region admits until it learns that. It is refused while a leader is known, and while a live\n" +
			"daemon has a later record (resume there). The other daemons of the region follow. Without\n" +
			"--yes and the name of the region it only prints what would happen." + changeExitText,
		Example: "  rld region resume\n" +
			"  rld region resume --was-not-removed --yes eu-west --reason 'the link is down'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settle(cmd, p); err != nil {
				return err
			}
			if q.Region != "" && !stated {
				return exitWith(exitUsage, errors.New("--was-not-removed is missing: state that nobody removed the region"))
			}
			q.Author = operator()
			var answer api.ResumeAnswer
			if err := c.post(cmd.Context(), api.ResumeRegion, &q, &answer); err != nil {
				return err
			}
			if c.client.form.json {
				return indented(p.out, &answer)
			}
			_, err := io.WriteString(p.out, resumeText(&answer))
			return err
		},
	}
	c.client.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&q.Region, "yes", "", "do it: `name` of the region of the daemon that answers")
	f.StringVar(&q.Reason, "reason", "", "reason for the log")
	f.BoolVar(&stated, "was-not-removed", false, "state that neither the region nor a daemon of it was removed")
	f.BoolVar(&q.DryRun, "dry-run", false, "print what would happen, and change nothing")
	return cmd
}

// resumeText formats the answer to a resumption.
func resumeText(a *api.ResumeAnswer) string {
	d := &a.Cluster.Daemon
	if !a.DryRun {
		return fmt.Sprintf("Region %s goes on with version %s of the record. Its daemons hold rights from the next window on.\n",
			or(d.Region, "-"), or(a.Cluster.Version, "-"))
	}
	return fmt.Sprintf("Region %s would go on with version %s of the record. Nothing was done.\n"+
		"If it was removed meanwhile, limits are exceeded. If nobody removed it, add --was-not-removed --yes %s.\n",
		or(d.Region, "-"), or(a.Cluster.Version, "-"), or(d.Region, "-"))
}

// regionExitText is the help on what all such commands have.
const regionExitText = senderText + "Exit codes: 0 done; 1 refused, nothing was changed;\n" +
	"2 no daemon answers, nothing was sent; 3 done, but not settled within --wait; 4 not known,\n" +
	"repeat the command with the --id that it prints, it is done once; 64 wrong usage."

// command makes cmd a command that changes a region or a daemon. Commands that
// remove something only print what would happen without --yes.
func (c *regionChange) command(p process, cmd *cobra.Command) *cobra.Command {
	removes := c.name == api.RemoveRegion || c.name == api.RemoveDaemon || c.name == api.RecoverStrict
	cmd.Long += regionExitText
	cmd.Args = one("names", "one", "the name is empty")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.settle(cmd, p); err != nil {
			return err
		}
		if len(args) > 0 {
			c.request.Name = args[0]
		}
		if removes {
			switch c.yes {
			case c.request.Name:
			case "":
				c.request.DryRun = true
			default:
				return fmt.Errorf("--yes %q is not the name %q", c.yes, c.request.Name)
			}
		}
		if c.name == api.RecoverStrict && len(c.request.Voters) == 0 {
			return errors.New("--stopped is missing: name the strict voters that are lost for good")
		}
		if cmd.Flags().Lookup("weight") != nil {
			ratio, err := api.ParsePercent(c.weight)
			if err != nil {
				return fmt.Errorf("--weight: %w", err)
			}
			if ratio <= 0 || ratio >= 1 {
				return fmt.Errorf("--weight %s: want more than 0%% and less than 100%%, as the other regions have the rest", c.weight)
			}
			c.request.Weight = ratio
		}
		if c.request.ID == "" {
			c.request.ID = newCommandID()
		}
		c.request.Author = operator()
		return c.run(cmd.Context(), p)
	}
	c.addFlags(cmd, "time to wait until the shares of the regions are settled (0s: until it is done)")
	f := cmd.Flags()
	f.StringVar(&c.request.Reason, "reason", "", "reason for the history")
	f.StringVar(&c.request.ID, "id", "", "`id` of a command whose result is not known, to repeat it")
	f.BoolVar(&c.request.DryRun, "dry-run", false, "print what would happen, and change nothing")
	if removes {
		if c.name != api.RecoverStrict {
			f.BoolVar(&c.request.Stopped, "stopped", false, "state that nothing of it runs, nor will run again with its state")
		}
		f.StringVar(&c.yes, "yes", "", "do it: the `name` again")
	}
	return cmd
}

// weighing adds the flags of a command that sets a weight.
func (c *regionChange) weighing(p process, cmd *cobra.Command) *cobra.Command {
	cmd = c.forcing(c.command(p, cmd))
	cmd.Flags().StringVar(&c.weight, "weight", "", "its `part` of the limits, such as 20%")
	return cmd
}

// forcing adds the flag of a command that all regions must acknowledge.
func (c *regionChange) forcing(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&c.request.Force, "force", false, "do it while a region cannot be reached: nobody holds what it gives up until it is back")
	return cmd
}

// run sends the command until its result is known, and waits until the shares
// are settled.
func (c *regionChange) run(ctx context.Context, p process) error {
	pause := c.pauses(ctx)
	c.request.WaitSeconds = c.given
	var a api.ChangeAnswer
	err := c.decided(c.request.ID, pause, func() (bool, error) {
		err := c.client.ask(ctx, url.URL{Path: clusterPath + "/" + string(c.name)}, &c.request, &a)
		return a.Done || a.DryRun, err
	})
	if err != nil {
		return err
	}
	revokes := c.name == api.RevokeDaemon || c.name == api.UnrevokeDaemon
	a.Pending = a.Pending && c.request.Name != "" && !revokes // else it moves no shares
	for a.Pending && pause() {
		page := url.URL{Path: clusterPath + "/command", RawQuery: url.Values{"id": {c.request.ID}}.Encode()}
		var next api.ChangeAnswer
		if c.client.ask(ctx, page, nil, &next) == nil && next.Done {
			a = next
		}
	}
	if c.client.form.json {
		err = indented(p.out, &a)
	} else {
		_, err = io.WriteString(p.out, c.answerText(&a))
	}
	switch {
	case err != nil:
		return exitWith(exitNo, err)
	case a.Pending && c.wait > 0 && len(a.Waits) > 0:
		return exitWith(exitPartly, fmt.Errorf("it waits for %s; until then nobody holds what it moves", few(printables(a.Waits))))
	case a.Pending && c.wait > 0:
		return exitWith(exitPartly, errors.New("the shares are not settled yet: rld budget shows what they wait for"))
	}
	return nil
}

// answerText formats an answer.
func (c *regionChange) answerText(a *api.ChangeAnswer) string {
	switch {
	case a.DryRun && a.Leaderless != "":
		return fmt.Sprintf("It is possible: %s. Nothing was done.\nIt needs a leader, and %s.\n", printable(a.Text), printable(a.Leaderless))
	case a.DryRun && c.name == api.RemoveRegion && !c.request.Stopped:
		return fmt.Sprintf("It is possible: %s. Nothing was done. To do it, add --yes %s.\n", printable(a.Text), printable(c.request.Name))
	case a.DryRun && c.name == api.RecoverStrict:
		return fmt.Sprintf("It is possible: %s. Nothing was done.\nIf one of %s comes back with its state, strict limits are exceeded. If none does, add --yes %s.\n",
			printable(a.Text), few(printables(c.request.Voters)), printable(c.request.Name))
	case a.DryRun && c.request.Stopped && c.name != api.AddRegion:
		return fmt.Sprintf("It is possible: %s. Nothing was done.\nIf anything of %s still runs, limits are exceeded. If nothing does, add --yes %s.\n",
			printable(a.Text), printable(c.request.Name), printable(c.request.Name))
	case a.DryRun:
		return fmt.Sprintf("It is possible: %s. Nothing was done.\n", printable(a.Text))
	}
	text := fmt.Sprintf("Version %s: %s.\n", or(a.Version, "-"), printable(a.Text))
	if c.name == api.RevokeDaemon {
		_, name, _ := strings.Cut(c.request.Name, "/")
		text += "All daemons refuse it now, and its streams end within 60 s. It still holds rights and the key of membership:\n" +
			"stop it, replace swim.keys_file, and a minute later run rld daemon remove " + printable(name) + " --stopped.\n"
	}
	return text
}
