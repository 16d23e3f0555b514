package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/config"
	"github.com/georld/rld/control"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

// limitsPath serves the limits of the cluster. The commands are below it.
const limitsPath = "/v1/limits"

// limitsChange is a command about the limits of the cluster.
type limitsChange struct {
	clusterChange
	name    api.LimitsCommandName
	request api.LimitsRequest
	// text formats the answer to a dry run, nil for its text.
	text func(*api.LimitsCommandAnswer) string
}

// limitsExitText is the help on what all such commands have.
const limitsExitText = "\n\nWhat lowers acts at once at each daemon that learns of it. What raises, or moves rights, is in\n" +
	"force when all regions have acknowledged it, each rule with its next window." +
	senderText + "Exit codes: 0 done, or nothing to do; 1 refused, nothing was changed;\n" +
	"2 no daemon answers, nothing was sent; 3 done, but not everywhere within --wait; 4 not known,\n" +
	"repeat the command with the --id that it prints, it is done once; 64 wrong usage."

// command makes cmd a command that changes limits. prepare sets the request
// from the arguments; its errors are those of usage, unless they have an exit
// code.
func (c *limitsChange) command(p process, cmd *cobra.Command, prepare func(args []string) error) *cobra.Command {
	cmd.Long += limitsExitText
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.settle(cmd, p); err != nil {
			return err
		}
		if err := prepare(args); err != nil {
			return err
		}
		if c.request.ID == "" {
			c.request.ID = newCommandID()
		}
		c.request.Author = operator()
		return c.run(cmd.Context(), p)
	}
	c.addFlags(cmd, "time to wait until the change is in force everywhere (0s: until it is done)")
	f := cmd.Flags()
	f.StringVar(&c.request.Reason, "reason", "", "reason for the history")
	f.StringVar(&c.request.ID, "id", "", "`id` of a command whose result is not known, to repeat it")
	f.BoolVar(&c.request.DryRun, "dry-run", false, "print what would happen, and change nothing")
	return usageCodes(cmd)
}

// limitsTimeout is the least time for an answer: a daemon waits for the control
// log for 15 seconds.
const limitsTimeout = 17 * time.Second

// run sends the command until its result is known, and waits until it is in
// force.
func (c *limitsChange) run(ctx context.Context, p process) error {
	pause := c.pauses(ctx)
	answer, err := c.send(ctx, c.name, &c.request, pause)
	if err != nil {
		return err
	}
	return c.settled(ctx, p, answer, pause)
}

// send sends a command about limits until its result is known.
func (c *clusterChange) send(ctx context.Context, name api.LimitsCommandName, q *api.LimitsRequest, pause func() bool) (*api.LimitsCommandAnswer, error) {
	var answer api.LimitsCommandAnswer
	q.WaitSeconds = c.given
	err := c.decided(q.ID, pause, func() (bool, error) {
		err := c.client.ask(ctx, url.URL{Path: limitsPath + "/" + string(name)}, q, &answer)
		return answer.Done || answer.DryRun, err
	})
	return &answer, err
}

// pauses returns a function that waits until the next attempt, and returns
// false when --wait is over.
func (c *clusterChange) pauses(ctx context.Context) func() bool {
	c.client.timeout = max(c.client.timeout, limitsTimeout)
	deadline := time.Now().Add(c.wait)
	return func() bool {
		if !time.Now().Add(initEvery).Before(deadline) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(initEvery):
			return true
		}
	}
}

// decided sends a command under an id until its result is known.
func (c *clusterChange) decided(id string, pause func() bool, send func() (bool, error)) error {
	for sent := false; ; {
		done, err := send()
		err = commandError(err)
		exit, _ := errors.AsType[*exitError](err)
		switch {
		case err == nil && done:
			return nil
		case err != nil && (exit.code == exitNo || exit.code == exitNoneOf && !sent):
			return err
		}
		if sent = true; !pause() {
			why := "the control log has not decided"
			if err != nil {
				why = err.Error()
			}
			return exitWith(exitUnknown, fmt.Errorf("%s. Whether the command is done is not known: repeat it with --id %s", why, id))
		}
	}
}

// newCommandID draws the id of a command.
func newCommandID() string {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// settled waits until a command that is done is in force, and prints the
// answer.
func (c *limitsChange) settled(ctx context.Context, p process, a *api.LimitsCommandAnswer, pause func() bool) error {
	for a.Pending && pause() {
		page := url.URL{Path: limitsPath + "/command", RawQuery: url.Values{"id": {c.request.ID}}.Encode()}
		var next api.LimitsCommandAnswer
		if c.client.ask(ctx, page, nil, &next) == nil && next.Done {
			*a = next
		}
	}
	var err error
	if c.client.form.json {
		err = indented(p.out, a)
	} else {
		_, err = io.WriteString(p.out, c.answerText(a))
	}
	if err != nil {
		return exitWith(exitNo, err)
	}
	if a.Pending && c.wait > 0 {
		waits := few(printables(a.Waits))
		if len(a.Waits) == 0 {
			waits = "regions that rld limits list names"
		}
		return exitWith(exitPartly, fmt.Errorf("it waits for %s; what it lowers acts meanwhile, the rest does not", waits))
	}
	return nil
}

// answerText formats an answer.
func (c *limitsChange) answerText(a *api.LimitsCommandAnswer) string {
	switch {
	case a.Unchanged:
		return fmt.Sprintf("Nothing was done: %s.\n", printable(strings.TrimPrefix(a.Text, control.NothingToDo+": ")))
	case a.DryRun && c.text != nil:
		return c.text(a)
	case a.DryRun:
		return fmt.Sprintf("%s. Nothing was done.\n", sentence(a.Text))
	case a.Emergency:
		return fmt.Sprintf("%s, until %s. The control log has no majority: it acts at each daemon that can be reached,\n"+
			"and becomes an entry when there is a majority. It cannot be unset before.\n", sentence(a.Text), timeShown(a.Until))
	}
	text := fmt.Sprintf("Version %s: %s.\n", or(a.Version, "-"), printable(a.Text))
	if a.InForce != nil {
		text += fmt.Sprintf("In force from %s", timeShown(a.InForce))
		if a.Until != nil {
			text += fmt.Sprintf(" until %s", timeShown(a.Until))
		}
		text += ".\n"
		if c.name == api.SetOverride {
			text += "What raises is in force in whole windows of the rule; what lowers acts at once.\n"
		}
	}
	return text
}

// sentence returns a text that begins with a capital.
func sentence(text string) string {
	if text = printable(text); text == "" {
		return "-"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// timeShown returns a time for people, "-" for none.
func timeShown(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

// limitsFiles reads the files of a path as rules to apply. Their names are
// those below the path. The error of files that no daemon accepts has an exit
// code; their faults are on standard error.
func limitsFiles(p process, path string, merge bool) ([]api.LimitsFile, error) {
	c, err := limitsConfig(p.environ, path, merge)
	if err != nil {
		return nil, err
	}
	if r := newLimitsReport(c); !r.OK {
		return nil, r.print(p, formFlag{})
	}
	files, _, err := config.Files(c.Path, c.Names)
	if err != nil {
		return nil, exitWith(exitNo, err)
	}
	out, set := make([]api.LimitsFile, len(files)), make([]control.RuleFile, len(files))
	for i, f := range files {
		name, err := filepath.Rel(path, f.Name)
		if err != nil || name == "." {
			name = filepath.Base(f.Name)
		}
		out[i] = api.LimitsFile{Name: filepath.ToSlash(name), Text: string(f.Data)}
		set[i] = control.RuleFile(out[i])
	}
	if _, err := control.NewRuleSet(set); err != nil {
		return nil, exitWith(exitNo, err)
	}
	return out, nil
}

// onePath requires one argument.
var onePath = one("paths", "one file or folder of limits", "the path is empty, use a file or folder of limits")

func newLimitsApply(p process) *cobra.Command {
	c := &limitsChange{name: api.ApplyRules, text: differencesText}
	merge := false
	cmd := c.command(p, &cobra.Command{
		Use:   "apply PATH",
		Short: "Apply files of limits to the whole cluster",
		Long: "Check a file or a folder of limits, and make it the rules of the cluster in all domains that\n" +
			"it has. They replace the rules that were applied before: a domain that is not in the files\n" +
			"any more goes back to the files of each daemon. It is refused whole when there is a fault.",
		Example: "  rld limits apply limits/ --reason 'more for premium'\n" +
			"  rld limits apply limits/ --if-version 7 --dry-run",
		Args: onePath,
	}, func(args []string) (err error) {
		c.request.Files, err = limitsFiles(p, args[0], merge)
		return err
	})
	addMergeFlag(cmd, &merge)
	cmd.Flags().StringVar(&c.request.IfVersion, "if-version", "", "refuse it unless the rules have this `version` (0: none were applied)")
	return cmd
}

func addMergeFlag(cmd *cobra.Command, merge *bool) {
	cmd.Flags().BoolVar(merge, "merge-domains", false,
		"let several files hold rules of one domain (MERGE_DOMAIN_CONFIG, RLD_MERGE_DOMAINS)")
}

func newLimitsDiff(p process) *cobra.Command {
	c := &limitsChange{name: api.ApplyRules, text: differencesText}
	c.request.DryRun = true
	merge := false
	cmd := &cobra.Command{
		Use:   "diff PATH",
		Short: "Compare files of limits with the rules of the cluster",
		Long: "List the rules that rld limits apply would change: those that become lower act at once, the\n" +
			"others with a window after all regions have acknowledged them. Exit codes: 0 compared, whether\n" +
			"or not they differ; 1 the files have a fault; 2 no daemon answers; 64 wrong usage.",
		Example: "  rld limits diff limits/\n" +
			"  rld limits diff limits/ -o json",
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.settle(cmd, p); err != nil {
				return err
			}
			var err error
			if c.request.Files, err = limitsFiles(p, args[0], merge); err != nil {
				return err
			}
			return c.run(cmd.Context(), p)
		},
	}
	c.client.addFlags(cmd)
	addMergeFlag(cmd, &merge)
	return usageCodes(cmd)
}

// differencesText formats the rules that a change of the rules changes.
func differencesText(a *api.LimitsCommandAnswer) string {
	if a.Changed == 0 {
		return "No rule differs.\n"
	}
	t := newTable("DOMAIN", "RULE", "CHANGE", "BEFORE", "AFTER")
	for _, d := range a.Differences {
		effect := "lower"
		switch {
		case d.Before == "":
			effect = "new"
		case d.After == "":
			effect = "removed"
		case d.Moved && d.Lower:
			effect = "moved, lower"
		case d.Moved:
			effect = "moved"
		case d.Higher && d.Lower:
			effect = "lower and higher"
		case d.Higher:
			effect = "higher"
		}
		t.row(or(d.Domain, "-"), or(d.Rule, "-"), effect, or(d.Before, "-"), or(d.After, "-"))
	}
	text := t.String()
	if more := a.Changed - len(a.Differences); more > 0 {
		text += fmt.Sprintf("And %s more.\n", suggest.Plural(more, "rule"))
	}
	return text + fmt.Sprintf("\n%s. Nothing was done.\n", sentence(a.Text))
}

func newLimitsRollback(p process) *cobra.Command {
	c := &limitsChange{name: api.RollBackRules, text: differencesText}
	cmd := c.command(p, &cobra.Command{
		Use:   "rollback VERSION",
		Short: "Apply the rules of an earlier version again",
		Long:  "Apply the files of an earlier version of the rules again, as a new version. rld limits history\nlists the versions whose files are kept.",
		Example: "  rld limits rollback 7 --reason 'version 9 denies too much'\n" +
			"  rld limits rollback 7 --dry-run",
		Args: one("versions", "one version of rld limits history", ""),
	}, func(args []string) error {
		c.request.Version = args[0]
		return nil
	})
	cmd.Flags().StringVar(&c.request.IfVersion, "if-version", "", "refuse it unless the rules have this `version`")
	return cmd
}

func newLimitsAdopt(p process) *cobra.Command {
	c := &limitsChange{name: api.AdoptRules, text: differencesText}
	cmd := c.command(p, &cobra.Command{
		Use:   "adopt",
		Short: "Make the files of a daemon the rules of the whole cluster",
		Long: "Make the files of limits of the daemon that answers the rules of the cluster, in all domains\n" +
			"that they have, but for those of rld limits apply. From then on files that all daemons have are\n" +
			"adopted without a command, and after ten seconds while some daemons are silent. Before, only\n" +
			"what is lower in the files of a daemon acts, and only there. rld limits apply with such a domain\n" +
			"takes it back from the files.",
		Example: "  rld limits adopt --dry-run\n" +
			"  rld limits adopt --reason 'us is down and has former files'",
		Args: cobra.NoArgs,
	}, func([]string) error { return nil })
	cmd.Flags().StringVar(&c.request.IfVersion, "if-version", "", "refuse it unless the rules have this `version` (0: none were applied)")
	return cmd
}

func newLimitsHistory(p process) *cobra.Command {
	return usageCodes(query[api.LimitsHistoryAnswer]{
		path:  limitsPath + "/history",
		lacks: func(a *api.LimitsHistoryAnswer) string { return unless(!a.At.IsZero(), "time") },
		text:  rulesHistoryText,
	}.command(p, &cobra.Command{
		Use:   "history",
		Short: "List the versions of the rules of the cluster",
		Long: "List the latest versions of the rules, the oldest first: time, author and reason of the\n" +
			"command, from when it was in force, and whether its files are kept for rld limits rollback.\n" +
			"rld cluster history lists overrides, too. The exit code is 0 when there is an answer, 2 when\n" +
			"there is none, and 64 for wrong usage.",
		Example: "  rld limits history",
		Args:    cobra.NoArgs,
	}))
}

// rulesHistoryText formats the versions of the rules.
func rulesHistoryText(a *api.LimitsHistoryAnswer) string {
	switch {
	case a.Alone:
		return alone
	case len(a.Versions) == 0:
		return "No rules were applied: each daemon has the limits of its files.\n"
	}
	t := newTable("VERSION", "TIME", "AUTHOR", "IN FORCE FROM", "FILES", "COMMAND", "REASON")
	for _, v := range a.Versions {
		kept := "dropped"
		if v.Kept {
			kept = "kept"
		}
		t.row(or(v.Version, "-"), timeShown(v.At), or(v.Author, "-"), timeShown(v.InForce), kept, or(v.Text, "-"), or(v.Reason, "-"))
	}
	return t.String()
}
