package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

// topOptions holds the flags of `rld top`.
type topOptions struct {
	client adminClient
	by     string
	n      int
	reveal bool
	watch  bool
	every  time.Duration
}

func newTop(p process) *cobra.Command {
	o := topOptions{by: string(api.TopByHits), n: 10, every: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "List the hottest and the most denied keys of a running daemon",
		Long: "Ask a running daemon for the keys with the most hits, or the most denied ones: their\n" +
			"rules, their rates, the used part of the limit, and whether the key is hot, which is at\n" +
			"or above hot_key.threshold. Keys are shown as hashes; --reveal shows their values, if\n" +
			"the command runs on the machine of the daemon and the daemon keeps the text of the key.\n" +
			"The exit code is 0 when there is an answer and 2 when there is none.",
		Example: "  rld top\n" +
			"  rld top --by denied -n 20 --watch",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd, p.environ); err != nil {
				return err
			}
			if !o.watch {
				return o.query().print(cmd.Context(), p.out, &o.client, nil)
			}
			ctx, stopped := stopSignals(cmd.Context(), os.Exit)
			defer stopped()
			return o.follow(ctx, p)
		},
	}
	o.client.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.by, "by", o.by, "order of the keys: hits or denied")
	f.IntVarP(&o.n, "number", "n", o.n, "how many keys, up to "+strconv.Itoa(api.MaxTop))
	f.BoolVar(&o.reveal, "reveal", false, "show values instead of hashes")
	f.BoolVar(&o.watch, "watch", false, "repeat until interrupted")
	f.DurationVar(&o.every, "every", o.every, "time between two requests of --watch")
	return cmd
}

// settle checks the options. Its error is one of usage.
func (o *topOptions) settle(cmd *cobra.Command, environ []string) error {
	const shortest = 100 * time.Millisecond
	switch by := api.TopOrder(o.by); {
	case by != api.TopByHits && by != api.TopByDenied:
		return fmt.Errorf("--by: unknown order %q: want %s or %s", printable(o.by), api.TopByHits, api.TopByDenied)
	case o.n < 1 || o.n > api.MaxTop:
		return fmt.Errorf("-n %d: want 1 to %d", o.n, api.MaxTop)
	case o.every < shortest:
		return fmt.Errorf("--every %s is too often: use %s or more", o.every, shortest)
	}
	return o.client.settle(cmd, environ)
}

// clearScreen makes a terminal begin at its top.
const clearScreen = "\x1b[H\x1b[2J"

// follow asks until ctx ends, which is no failure, or a question has no answer.
func (o *topOptions) follow(ctx context.Context, p process) error {
	before := ""
	if isTerminal(p.out) {
		before = clearScreen
	}
	t := time.NewTicker(o.every)
	defer t.Stop()
	for {
		var text strings.Builder
		err := o.query().print(ctx, &text, &o.client, nil)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := io.WriteString(p.out, before+text.String()); err != nil {
			return exitWith(exitNoneOf, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if before == "" {
			before = "\n"
		}
	}
}

func (o *topOptions) query() query[api.TopAnswer] {
	return query[api.TopAnswer]{
		path: "/v1/top",
		request: func([]string) (url.Values, any, error) {
			return url.Values{"by": {o.by}, "n": {strconv.Itoa(o.n)}, "reveal": {strconv.FormatBool(o.reveal)}}, nil, nil
		},
		lacks: func(a *api.TopAnswer) string { return unless(a.Keys != nil, "list of keys") },
		text:  func(a *api.TopAnswer) string { return topTable(a, o.reveal) },
	}
}

// topTable shows an answer to people, a row a key.
func topTable(a *api.TopAnswer, reveal bool) string {
	if len(a.Keys) == 0 {
		did, span := "counted", "recently"
		if a.By == api.TopByDenied {
			did = "denied"
		}
		if a.SpanSeconds > 0 {
			span = "within the last " + secondsShown(&a.SpanSeconds)
		}
		return fmt.Sprintf("%s has %s no key %s.\n", daemonText(&a.Self), did, span)
	}
	t := newTable("RULE", "KEY", "HITS/S", "DENIED/S", "SHARE", "HOT")
	unknown := 0
	for _, k := range a.Keys {
		key := k.Key
		switch {
		case k.Text != "":
			key = shortened(k.Text)
		case reveal:
			unknown++
		}
		hot := "-"
		if k.Hot {
			hot = "hot"
		}
		t.row(ruleText(k.Domain, k.Rule, k.Name),
			or(key, "-"), perSecond(&k.HitsPerSecond), perSecond(&k.DeniedPerSecond), percentShown(k.Share), hot)
	}
	text := fmt.Sprintf("%s\nAt %s, over %s.", t, daemonText(&a.Self), secondsShown(&a.SpanSeconds))
	if a.HotPerSecond > 0 {
		text += fmt.Sprintf(" Hot from %d hits a second.", a.HotPerSecond)
	}
	switch {
	case reveal && !a.Reveals:
		text += " This daemon keeps no text of keys."
	case unknown > 0:
		text += fmt.Sprintf(" The text of %s is not known.", suggest.Plural(unknown, "key"))
	}
	return text + "\n"
}
