package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// strictKey adds the state of a strict key. Each name begins with prefix.
func (l lines) strictKey(prefix string, at time.Time, g *api.StrictKey) {
	if g == nil {
		return
	}
	l.add(prefix+"owner", "%s", ownerText(g))
	if g.Breaker != nil {
		l.add(prefix+"circuit breaker", "%s", breakerText(at, g.Breaker))
	}
	if g.Ballot != nil {
		l.add(prefix+"ballot", "round %d of %s%s", g.Ballot.Round, daemonText(&g.Ballot.Owner), sourceText(g.Source))
	}
	if g.Watermark != nil {
		l.add(prefix+"watermark", "%s", watermarkText(at, g.Watermark))
	}
	if len(g.Leases) > 0 {
		l.add(prefix+"leases", "%s", leasesText(g))
	}
	if g.Lease != nil {
		l.add(prefix+"lease", "%s", leaseText(at, g.Lease))
	}
}

// ownerText names the owner, the layout that chose it, and why it is
// unreachable.
func ownerText(g *api.StrictKey) string {
	by := fmt.Sprintf("by layout %d", g.Layout)
	if g.Pinned {
		by = fmt.Sprintf("pinned by layout %d", g.Layout)
	}
	var text string
	switch {
	case g.Owner == nil:
		text = fmt.Sprintf("none in %s, %s", g.Region, by)
	case g.Self:
		text = fmt.Sprintf("%s, this daemon, %s", daemonText(g.Owner), by)
	default:
		text = fmt.Sprintf("%s, incarnation %s, %s", daemonText(g.Owner), g.Owner.Incarnation, by)
	}
	switch {
	case g.Reachable:
		return text
	case g.WhyNot == "":
		return text + "; unreachable"
	}
	return text + "; unreachable: " + g.WhyNot
}

func sourceText(s api.KeySource) string {
	switch s {
	case api.SourceOwner:
		return ", from the owner"
	case api.SourceAcceptor:
		return ", from the acceptor of this daemon"
	case api.SourceGrants:
		return ", from the latest grant"
	}
	return ""
}

// breakerText returns the state of a circuit breaker, as in "open for 12s, 40
// of 50 calls failed".
func breakerText(at time.Time, c *api.Breaker) string {
	text := strings.ReplaceAll(string(c.State), "_", " ")
	if c.Since != nil {
		text += " for " + ago(at, c.Since)
	}
	if c.Calls == 0 { // as when it has just opened
		return text
	}
	return text + fmt.Sprintf(", %d of %d calls failed", c.Errors, c.Calls)
}

// watermarkText returns the consumption of a window and its bounds.
func watermarkText(at time.Time, m *api.WatermarkState) string {
	var parts []string
	if m.Window != nil {
		parts = append(parts, "window "+windowStart(m.Window))
	}
	for _, n := range []struct {
		hits *uint64
		text string
	}{{m.Consumed, "%d consumed"}, {m.Watermark, "watermark %d"}, {m.Limit, "limit %d"}} {
		if n.hits != nil {
			parts = append(parts, fmt.Sprintf(n.text, *n.hits))
		}
	}
	if m.Drained != nil {
		parts = append(parts, "all drained in "+ahead(at, m.Drained))
	}
	return strings.Join(parts, ", ")
}

func leasesText(g *api.StrictKey) string {
	parts := make([]string, 0, len(g.Leases)+1)
	for i := range g.Leases {
		x := &g.Leases[i]
		text := fmt.Sprintf("%s %d", daemonText(&x.Lessee), x.Granted)
		if x.Returned > 0 {
			text += fmt.Sprintf(" (%d returned)", x.Returned)
		}
		parts = append(parts, text)
	}
	if g.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", g.Omitted))
	}
	return strings.Join(parts, ", ")
}

func leaseText(at time.Time, c *api.Lease) string {
	text := fmt.Sprintf("%d left: %d granted - %d used - %d returned", c.Left, c.Granted, c.Used, c.Returned)
	if c.Until != nil {
		text += ", ends in " + ahead(at, c.Until)
	}
	if c.Requested {
		text += ", more was requested"
	}
	if c.Denied != nil {
		text += fmt.Sprintf(", %d and more are denied", *c.Denied)
		if c.DeniedUntil != nil {
			text += " for " + ahead(at, c.DeniedUntil)
		}
	}
	return text
}

// ahead returns the time from at to then, both on the clock of the daemon.
func ahead(at time.Time, then *time.Time) string {
	seconds := max(0, then.Sub(at)).Seconds()
	return secondsShown(&seconds)
}
