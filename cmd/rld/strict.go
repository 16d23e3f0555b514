package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newStrict(p process) *cobra.Command {
	voters := group("voters", "Change the strict voters of a region", newVotersSet(p))
	return group("strict", "Show the state of strict keys, and change their voters and home regions",
		newStrictStatus(p), voters, newPin(p), newUnpin(p))
}

func newStrictStatus(p process) *cobra.Command {
	return strictQuery.command(p, &cobra.Command{
		Use:   "status",
		Short: "Show the layout in force and the strict voters of each region",
		Long: "Show the layout in force and why the next one is pending; for each region its strict\n" +
			"voters, whether they are live and whether they vote; the rules with a home region of\n" +
			"their own; and the acceptor of the daemon that answers. The exit code is 0 when there\n" +
			"is an answer and 2 when there is none.",
		Example: "  rld strict status",
		Args:    cobra.NoArgs,
	})
}

// strictPath serves the state of strict keys. The commands are below it.
const strictPath = "/v1/strict"

var strictQuery = query[api.StrictAnswer]{
	path:  strictPath,
	lacks: func(a *api.StrictAnswer) string { return unless(!a.At.IsZero(), "time") },
	text:  strictTable,
}

// layoutLong is the help text that all commands share that change a layout.
const layoutLong = "\n\nThe command prints the differences between the layouts and their numbers, then waits until\n" +
	"the next one is in force at the daemon. After --wait it prints the voters that are missing;\n" +
	"the change goes on without the command. A daemon accepts the command only from its own\n" +
	"machine. The exit code is 0 when the layout is in force, and 1 when it is not, when the\n" +
	"change was refused, or when there is no answer."

func newVotersSet(p process) *cobra.Command {
	var region string
	set := func(r *api.LayoutRequest, args []string) { r.Voters, r.Region = args, region }
	cmd := layoutCommand(p, api.SetVoters, set, &cobra.Command{
		Use:   "set NAME...",
		Short: "Choose the strict voters of a region",
		Long: "Choose the daemons of a region that store the watermarks of its strict keys: an odd\n" +
			"number, usually three. A new voter votes once it has copied the state of a majority of\n" +
			"the former voters of each region, and these have promised to stop voting under the former\n" +
			"layout. Until then strict keys have no owner, and on_failure applies.",
		Example: "  rld strict voters set us-0 us-1 us-3\n" +
			"  rld strict voters set eu-0 eu-1 eu-2 --region eu-west --dry-run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return errors.New("no name, or an empty one: give the names of the daemons, an odd number")
			}
			return nil
		},
	})
	cmd.Flags().StringVar(&region, "region", "", "region of the voters; default: the region of the daemon that answers")
	return cmd
}

func newPin(p process) *cobra.Command {
	set := func(r *api.LayoutRequest, args []string) { r.Rule, r.Region = args[0], args[1] }
	return layoutCommand(p, api.PinRule, set, &cobra.Command{
		Use:   "pin RULE REGION",
		Short: "Give a rule a home region of its own",
		Long: "Give all keys of a rule one home region instead of one by the hash of each key. RULE is\n" +
			"the name of a limit or its path, as for rld budget. The owner follows from the layout\n" +
			"alone, so a change in the limits files does not move keys.",
		Example: "  rld strict pin login us-east",
		Args:    exactly("RULE", "REGION"),
	})
}

func newUnpin(p process) *cobra.Command {
	set := func(r *api.LayoutRequest, args []string) { r.Rule = args[0] }
	return layoutCommand(p, api.UnpinRule, set, &cobra.Command{
		Use:     "unpin RULE",
		Short:   "Remove the home region of a rule",
		Long:    "Let the hash of each key of a rule choose its home region.",
		Example: "  rld strict unpin login",
		Args:    exactly("RULE"),
	})
}

// exactly requires one argument for each name, none of them empty.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != len(names) || slices.Contains(args, "") {
			return fmt.Errorf("%s given, want %s", plural(len(args), "argument"), few(names))
		}
		return nil
	}
}

// defaultWait is the time that a command waits for its layout.
const defaultWait = 30 * time.Second

// layoutChange is a command that changes a layout.
type layoutChange struct {
	client  adminClient
	wait    time.Duration
	request api.LayoutRequest
}

// layoutReport is the JSON output of a change.
type layoutReport struct {
	api.LayoutAnswer
	InForce bool `json:"in_force"`
	// WaitsFor lists the voters that were missing at the end.
	WaitsFor []api.Missing `json:"waits_for"`
}

// layoutCommand fills in a command that changes a layout. set writes its
// arguments to the request.
func layoutCommand(
	p process, what api.LayoutCommand, set func(r *api.LayoutRequest, args []string), cmd *cobra.Command,
) *cobra.Command {
	var c layoutChange
	cmd.Long += layoutLong
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		set(&c.request, args)
		return c.run(cmd, p, what)
	}
	c.client.addFlags(cmd)
	cmd.Flags().DurationVar(&c.wait, "wait", defaultWait, "time to wait until the layout is in force (0s: do not wait)")
	cmd.Flags().BoolVar(&c.request.DryRun, "dry-run", false, "print the change without making it")
	return cmd
}

func (c *layoutChange) run(cmd *cobra.Command, p process, what api.LayoutCommand) error {
	if c.wait < 0 {
		return fmt.Errorf("--wait %s is negative: want a duration such as 30s, or 0s to not wait", c.wait)
	}
	if err := c.client.settle(cmd, p.environ); err != nil {
		return err
	}
	return exitWith(exitNo, c.change(cmd.Context(), p, what))
}

// change sends the command and waits for the layout.
func (c *layoutChange) change(ctx context.Context, p process, what api.LayoutCommand) error {
	answer, err := query[api.LayoutAnswer]{
		path:    strictPath + "/" + string(what),
		request: func([]string) (url.Values, any, error) { return nil, &c.request, nil },
		lacks:   func(a *api.LayoutAnswer) string { return unless(a.After > 0, "layout number") },
	}.ask(ctx, &c.client, nil)
	if err != nil {
		return err
	}
	report := layoutReport{LayoutAnswer: *answer, WaitsFor: []api.Missing{}}
	text := !c.client.form.json
	if text {
		if _, err := io.WriteString(p.out, changeText(&report.LayoutAnswer)); err != nil {
			return err
		}
	}
	var late error
	if !report.DryRun && c.wait > 0 {
		late = c.await(ctx, &report)
	}
	switch {
	case !text:
		if err := indented(p.out, &report); err != nil {
			return err
		}
	case report.InForce:
		if _, err := fmt.Fprintf(p.out, "Layout %d is in force.\n", report.After); err != nil {
			return err
		}
	}
	return late
}

// changeText lists the differences of a layout.
func changeText(a *api.LayoutAnswer) string {
	var b strings.Builder
	if a.DryRun {
		fmt.Fprintf(&b, "Layout %d would become %d, and nothing was done:\n", a.Before, a.After)
	} else {
		fmt.Fprintf(&b, "Layout %d becomes %d:\n", a.Before, a.After)
	}
	for _, change := range a.Changes {
		fmt.Fprintf(&b, "  %s\n", printable(change))
	}
	if a.Next != "" {
		fmt.Fprintf(&b, "%s\n", printable(a.Next))
	}
	return b.String()
}

// awaitEvery is the time between two polls.
const awaitEvery = 200 * time.Millisecond

// await polls until the layout is in force. After the timeout it returns an
// error that lists the missing voters. It repeats polls that fail, since
// daemons come and go while a layout changes.
func (c *layoutChange) await(ctx context.Context, r *layoutReport) error {
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	t := time.NewTicker(awaitEvery)
	defer t.Stop()
	var failed error
	for {
		answer, err := strictQuery.ask(ctx, &c.client, nil)
		// A poll that the timeout interrupted carries less than the one before.
		if err == nil || ctx.Err() == nil {
			failed = err
		}
		if err == nil {
			if r.see(answer.Strict); r.InForce {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return r.late(c.wait, failed)
		case <-t.C:
		}
	}
}

// see stores the state of a poll.
func (r *layoutReport) see(s *api.StrictState) {
	r.WaitsFor = []api.Missing{}
	if s == nil {
		return
	}
	r.InForce = s.Layout >= r.After
	if s.Next != nil {
		r.WaitsFor = append(r.WaitsFor, s.Next.WaitsFor...)
	}
}

// late returns the error of a layout that is not in force in time.
func (r *layoutReport) late(after time.Duration, failed error) error {
	text := fmt.Sprintf("layout %d is not in force after %s", r.After, after)
	switch {
	case failed != nil:
		return fmt.Errorf("%s: %w", text, failed)
	case len(r.WaitsFor) > 0:
		return fmt.Errorf("%s: it waits for %s", text, few(missing(r.WaitsFor)))
	}
	return fmt.Errorf("%s, and the daemon gives no reason: see rld strict status", text)
}

// missing formats the voters that a layout waits for, with reasons.
func missing(all []api.Missing) []string {
	out := make([]string, 0, len(all))
	for _, m := range all {
		text := daemonText(&api.DaemonRef{Region: m.Region, Name: m.Name})
		if m.Name == "" {
			text = printable(m.Region)
		}
		if m.Why != "" {
			text += " (" + printable(m.Why) + ")"
		}
		out = append(out, text)
	}
	return out
}
