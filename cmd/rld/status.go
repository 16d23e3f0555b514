package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

func newStatus(p process) *cobra.Command {
	return query[api.StatusAnswer]{
		path:  "/v1/status",
		lacks: func(a *api.StatusAnswer) string { return unless(a.Regions != nil, "list of regions") },
		text:  statusText,
	}.command(p, &cobra.Command{
		Use:   "status",
		Short: "Show the state of a running daemon and its cluster on one screen",
		Long: "Show whether a running daemon is ready, its keys and its clock; the live daemons of each\n" +
			"region and the staleness of the view of them; the regions that are partitioned and the\n" +
			"circuit breakers that are open; the state of strict keys; why answers are degraded; and\n" +
			"the rules that are closest to their bound or deny most. The exit code is 0 when there is\n" +
			"an answer, also from a daemon that is not ready, and 2 when there is none.",
		Example: "  rld status\n" +
			"  rld status --admin 10.0.0.7:6070 -o json",
		Args: cobra.NoArgs,
	})
}

// witnessText describes a witness.
const witnessText = "This daemon is a witness (control.voter: only): it counts nothing and holds no rights.\n"

// statusText formats an answer. Faults follow an exclamation mark.
func statusText(a *api.StatusAnswer) string {
	var b strings.Builder
	b.WriteString(daemonLines(&a.Daemon))
	if a.Alone {
		b.WriteString(alone)
	} else {
		if a.Cluster != nil {
			b.WriteString(clusterLine(a.Cluster) + revokedLine(a.Cluster.Revoked) + problemLines(a.Cluster))
			if a.Cluster.Daemon.VoterOnly {
				b.WriteString(witnessText)
			}
		}
		b.WriteString("\n" + regionsTable(a) + breakersTable(a))
		if a.Strict != nil {
			b.WriteString("\n" + strictLines(a.At, &a.Daemon.DaemonRef, a.Strict))
		}
	}
	if text := degradedLines(a) + worstLines(a); text != "" {
		b.WriteString("\n" + text)
	}
	return b.String()
}

// daemonLines formats the state of the daemon itself.
func daemonLines(d *api.DaemonState) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", daemonText(&d.DaemonRef))
	if d.Name != "" && d.Incarnation != "" {
		fmt.Fprintf(&b, ", incarnation %s", printable(d.Incarnation))
	}
	up := d.UptimeSeconds
	fmt.Fprintf(&b, ", %s, up %s, ", or(d.Version, "of unknown version"), secondsShown(&up))
	if d.Ready {
		b.WriteString("ready\n")
	} else {
		fmt.Fprintf(&b, "NOT READY: %s\n", or(d.WhyNot, "no reason given"))
	}
	fmt.Fprintf(&b, "%d of at most %s, %s (%s), clock %s off the wall clock", d.LiveKeys, suggest.Plural(d.MaxKeys, "key"),
		suggest.Plural(d.RuleCount, "rule"), or(d.Rules, "-"), offsetShown(&d.ClockOffsetSeconds))
	if d.PeerOffsetSeconds != nil {
		fmt.Fprintf(&b, " and within %s of the peers' clocks", secondsShown(d.PeerOffsetSeconds))
	}
	b.WriteString("\n")
	if d.OverflowKeys > 0 {
		fmt.Fprintf(&b, "! further keys share %s\n", suggest.Plural(d.OverflowKeys, "overflow counter"))
	}
	if d.LimitsFault != "" {
		fmt.Fprintf(&b, "! the limits on disk, or of the xDS server, are invalid, and the previous ones stay in force: %s\n", shortened(printable(d.LimitsFault)))
	}
	if d.Certificate != nil {
		b.WriteString(certificateLines(d.Certificate))
	}
	if d.NextSecret != nil {
		b.WriteString(nextSecretLine(d.NextSecret))
	}
	if k := d.Keyring; k != nil && len(k.Keys) > 0 {
		// As rld keyring prints the state to wait for.
		fmt.Fprintf(&b, "membership keys %s (encrypts)", printable(k.Keys[0]))
		for _, key := range k.Keys[1:] {
			fmt.Fprintf(&b, ", %s", printable(key))
		}
		b.WriteString("\n")
		if k.Fault != "" {
			fmt.Fprintf(&b, "! the file of membership keys is invalid, and the former keys stay in force: %s\n", shortened(printable(k.Fault)))
		}
	}
	if d.Shadow {
		b.WriteString("! it is in shadow mode and denies nothing\n")
	}
	return b.String()
}

// nextSecretLine says what is to be done about a next cluster secret.
func nextSecretLine(s *api.NextSecret) string {
	const two = "two cluster secrets: "
	switch {
	case len(s.Lacking) > 0:
		return fmt.Sprintf("! %s%s not have the next one yet: %s\n", two, doOrDoes(len(s.Lacking)), shortened(printable(strings.Join(s.Lacking, ", "))))
	case s.From == nil:
		return two + "when the next one can replace the current one is not known yet\n"
	case !s.Due:
		return fmt.Sprintf("%sthe next one can replace the current one from %s\n", two, s.From.UTC().Format(time.RFC3339))
	}
	return two + "the next one can replace the current one now\n"
}

// doOrDoes begins a sentence about n peers.
func doOrDoes(n int) string {
	if n == 1 {
		return "1 peer does"
	}
	return fmt.Sprintf("%d peers do", n)
}

// certificateLines formats the state of the certificate for peers.
func certificateLines(c *api.CertificateState) string {
	var b strings.Builder
	of := "of no name"
	if len(c.Names) > 0 {
		of = "of " + printable(strings.Join(c.Names, ", "))
	}
	fmt.Fprintf(&b, "certificate %s until %s", of, c.NotAfter.UTC().Format(time.RFC3339))
	if c.PeerNotAfter != nil {
		fmt.Fprintf(&b, "; the first one of a peer, %s, until %s", printable(c.Peer), c.PeerNotAfter.UTC().Format(time.RFC3339))
	}
	b.WriteString("\n")
	if c.Soon {
		b.WriteString("! renew the certificate: peers end its streams when it expires\n")
	}
	if len(c.Names) == 0 {
		b.WriteString("! any peer with a certificate of the same authorities may claim to be any daemon: give each daemon a certificate with its name\n")
	}
	if c.Fault != "" {
		fmt.Fprintf(&b, "! the files of the certificate are invalid, and the former ones stay in force: %s\n", shortened(printable(c.Fault)))
	}
	return b.String()
}

func regionsTable(a *api.StatusAnswer) string {
	t := newTable("REGION", "UP", "READY", "STALENESS", "NOTE")
	for _, r := range a.Regions {
		ready := 0
		for _, m := range r.Members {
			if m.Ready {
				ready++
			}
		}
		t.row(or(r.Region, "-"), len(r.Members), ready, secondsShown(r.StalenessSeconds),
			or(strings.Join(regionNotes(a, &r), "; "), "-"))
	}
	return t.String()
}

// regionNotes returns the remarks on a region.
func regionNotes(a *api.StatusAnswer, r *api.RegionState) []string {
	var out, unready []string
	if r.Self {
		out = append(out, "own region")
	}
	if r.Partitioned {
		text := "PARTITIONED"
		if r.PartitionedSince != nil {
			text += " for " + ago(a.At, r.PartitionedSince)
		}
		out = append(out, text)
	}
	if c := a.Cluster; c != nil && c.Begun && !slices.ContainsFunc(c.Regions, func(g api.ClusterRegion) bool { return g.Name == r.Region }) {
		note := "not in the cluster"
		if witnessRegion(c, r.Region) {
			note = "witness"
		}
		out = append(out, note)
	}
	for _, m := range r.Members {
		if !m.Ready {
			unready = append(unready, or(m.Name, "-"))
		}
	}
	if len(unready) > 0 {
		out = append(out, "not ready: "+few(unready))
	}
	return out
}

// witnessRegion reports whether a region has a live witness.
func witnessRegion(c *api.ClusterState, region string) bool {
	is := func(d api.ClusterDaemon) bool { return d.VoterOnly && d.Region == region }
	return is(c.Daemon) || slices.ContainsFunc(c.Peers, is)
}

// breakersTable lists the circuit breakers that are open or had calls.
func breakersTable(a *api.StatusAnswer) string {
	if len(a.Breakers) == 0 {
		return ""
	}
	t := newTable("CIRCUIT BREAKER TO", "STATE", "FOR", "CALLS", "ERRORS")
	for _, c := range a.Breakers {
		t.row(daemonText(&c.Owner), or(strings.ReplaceAll(string(c.State), "_", " "), "-"), ago(a.At, c.Since),
			c.Calls, c.Errors)
	}
	return "\n" + t.String()
}

func degradedLines(a *api.StatusAnswer) string {
	var b strings.Builder
	for _, d := range a.Degraded {
		fmt.Fprintf(&b, "! degraded: %s", or(d.Reason, "-"))
		if d.Since != nil {
			fmt.Fprintf(&b, " for %s", ago(a.At, d.Since))
		}
		fmt.Fprintf(&b, ", %d answers", d.Answers)
		if d.Text != "" {
			fmt.Fprintf(&b, ": %s", shortened(printable(d.Text)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func worstLines(a *api.StatusAnswer) string {
	var b strings.Builder
	if r := a.Worst; r != nil {
		fmt.Fprintf(&b, "Closest to its bound within the hour: %s, %s over its limit", ruleText(r.Domain, r.Rule, r.Name),
			percentShown(r.Overage))
		if r.Bound != nil {
			fmt.Fprintf(&b, ", bound %s", percentOf(*r.Bound))
		}
		b.WriteString(".\n")
	}
	if r := a.Denied; r != nil {
		fmt.Fprintf(&b, "Denies most now: %s, %s a second.\n", ruleText(r.Domain, r.Rule, r.Name), perSecond(r.DeniedPerSecond))
	}
	return b.String()
}

// perSecond formats a rate of hits, "-" for unknown.
func perSecond(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 100:
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	return trimmed(*v, 1)
}
