package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/server/admin/api"
)

func newNetcheck(p process) *cobra.Command {
	var a adminClient
	cmd := &cobra.Command{
		Use:   "netcheck",
		Short: "Say how well a running daemon reaches its peers",
		Long: "Ask a running daemon for its way to each of its peers: whether the stream is up, the\n" +
			"round trip, how old its view of the peer's counts is, how far the peer's clock is ahead\n" +
			"(+) or behind (-), the traffic, and the latest error. The exit code is 0 when all peers\n" +
			"are connected, 1 when some are not, 2 when there is no answer.",
		Example: "  rld netcheck\n" +
			"  rld netcheck --admin 10.0.0.7:6070 -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, p.environ); err != nil {
				return err
			}
			return runNetcheck(cmd.Context(), p, &a)
		},
	}
	a.addFlags(cmd)
	return cmd
}

func runNetcheck(ctx context.Context, p process, a *adminClient) error {
	var answer api.NetcheckAnswer
	err := a.get(ctx, "/netcheck", &answer)
	if err == nil && answer.Peers == nil {
		err = a.notRLD("/netcheck", errors.New("no list of peers"))
	}
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	if a.form == formJSON {
		err = indented(p.out, &answer)
	} else {
		_, err = io.WriteString(p.out, netcheckTable(&answer))
	}
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	return exitWith(exitNo, unreached(answer.Peers))
}

// unreached is the error that names the peers that are not connected, nil when
// all are.
func unreached(peers []api.PeerCheck) error {
	var names []string
	for i := range peers {
		if c := &peers[i]; c.State != api.Connected {
			names = append(names, fmt.Sprintf("%s (%s)", or(c.Name, or(c.Addr, "-")), or(string(c.State), "-")))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s not connected: %s", len(names), plural(len(peers), "peer"), few(names))
}

// netcheckTable shows an answer to people, a row a peer.
func netcheckTable(a *api.NetcheckAnswer) string {
	switch {
	case a.Alone:
		return alone
	case len(a.Peers) == 0:
		return "No peers: this daemon has met nobody and none is configured.\n"
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "REGION\tNAME\tADDRESS\tSTATE\tRTT\tSTALENESS\tUNSENT\tCLOCK\tSENT\tRECEIVED\tDROPPED\tLAST ERROR")
	for i := range a.Peers {
		c := &a.Peers[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
			or(c.Region, "-"), or(c.Name, "-"), or(c.Addr, "-"), or(string(c.State), "-"),
			secondsShown(c.RTTSeconds), secondsShown(c.StalenessSeconds), secondsShown(c.UnsentSeconds),
			offsetShown(c.ClockOffsetSeconds), rateShown(c.SentBytesPerSecond), rateShown(c.ReceivedBytesPerSecond),
			c.DroppedFrames, lastError(a.At, c))
	}
	// The writer below is a strings.Builder: nothing can fail.
	_ = t.Flush()
	return b.String()
}

// lastError is the latest error and how long ago it was.
func lastError(at time.Time, c *api.PeerCheck) string {
	switch {
	case c.LastError == "":
		return "-"
	case c.LastErrorAt == nil:
		return shortened(printable(c.LastError))
	}
	return ago(at, c.LastErrorAt) + " ago: " + shortened(printable(c.LastError))
}

// secondsShown is a duration with three digits, "-" for unknown.
func secondsShown(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	// No clock of ours is off by a century, and a time.Duration holds two.
	const century = 100 * 365 * 24 * 3600.0
	d := time.Duration(max(-century, min(century, *seconds)) * 1e9)
	if d.Abs() >= time.Minute {
		return d.Round(time.Second).String()
	}
	digit := time.Nanosecond
	for d.Abs() >= 1_000*digit {
		digit *= 10
	}
	return d.Round(digit).String()
}

// offsetShown is a duration with its sign: a clock ahead has a plus.
func offsetShown(seconds *float64) string {
	s := secondsShown(seconds)
	if seconds != nil && *seconds > 0 && s != "0s" {
		return "+" + s
	}
	return s
}

// rateShown is bytes a second with three digits, "-" for unknown.
func rateShown(rate *float64) string {
	if rate == nil {
		return "-"
	}
	v, unit := *rate, "B/s"
	for _, next := range []string{"kB/s", "MB/s", "GB/s"} {
		if math.Abs(v) < 999.5 {
			break
		}
		v, unit = v/1_000, next
	}
	digits := 0
	if unit != "B/s" && math.Abs(v) < 99.95 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, v, unit)
}
