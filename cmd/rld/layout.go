package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

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
