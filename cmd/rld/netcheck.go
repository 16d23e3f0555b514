package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

func newNetcheck(p process) *cobra.Command {
	return query[api.NetcheckAnswer]{
		path:    "/netcheck",
		lacks:   func(a *api.NetcheckAnswer) string { return unless(a.Peers != nil, "list of peers") },
		text:    netcheckTable,
		verdict: func(a *api.NetcheckAnswer) error { return unreached(a.Peers) },
	}.command(p, &cobra.Command{
		Use:   "netcheck",
		Short: "Check the connections of a running daemon to its peers",
		Long: "Ask a running daemon for its connection to each of its peers: whether the stream is up,\n" +
			"the round trip, the staleness of its view of the peer's counts, how far the peer's clock\n" +
			"is ahead (+) or behind (-), the traffic, and the latest error. The exit code is 0 when\n" +
			"all peers are connected, 1 when some are not, 2 when there is no answer.",
		Example: "  rld netcheck\n" +
			"  rld netcheck --admin 10.0.0.7:6070 -o json",
		Args: cobra.NoArgs,
	})
}

// unreached is the error that names the peers that are not connected, nil when
// all are.
func unreached(peers []api.PeerCheck) error {
	var names []string
	for _, c := range peers {
		if c.State != api.Connected {
			names = append(names, fmt.Sprintf("%s (%s)", or(c.Name, or(c.Addr, "-")), or(string(c.State), "-")))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s not connected: %s", len(names), suggest.Plural(len(peers), "peer"), few(names))
}

// netcheckTable shows an answer to people, a row a peer.
func netcheckTable(a *api.NetcheckAnswer) string {
	switch {
	case a.Alone:
		return alone
	case len(a.Peers) == 0:
		return "No peers: this daemon knows no other daemon and none is configured.\n"
	}
	t := newTable("REGION", "NAME", "ADDRESS", "STATE", "RTT", "STALENESS", "UNSENT", "CLOCK", "SENT", "RECEIVED",
		"DROPPED", "LAST ERROR")
	for _, c := range a.Peers {
		t.row(or(c.Region, "-"), or(c.Name, "-"), or(c.Addr, "-"), or(string(c.State), "-"),
			secondsShown(c.RTTSeconds), secondsShown(c.StalenessSeconds), secondsShown(c.UnsentSeconds),
			offsetShown(c.ClockOffsetSeconds), rateShown(c.SentBytesPerSecond), rateShown(c.ReceivedBytesPerSecond),
			c.DroppedFrames, lastError(a.At, &c))
	}
	return t.String()
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
