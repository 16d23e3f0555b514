package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/georld/rld/server/admin"
)

// ledger adds what is known of a ledger; each name begins with prefix.
func (l lines) ledger(prefix string, at time.Time, g *admin.StrictKey) {
	if g == nil {
		return
	}
	l.add(prefix+"home", "%s", homeText(g))
	if g.Circuit != nil {
		l.add(prefix+"circuit", "%s", circuitText(at, g.Circuit))
	}
	if g.Ballot != nil {
		l.add(prefix+"ballot", "round %d of %s%s", g.Ballot.Round, daemonText(&g.Ballot.Owner), sourceText(g.Source))
	}
	if g.Watermark != nil {
		l.add(prefix+"watermark", "%s", watermarkText(at, g.Watermark))
	}
	if len(g.Batches) > 0 {
		l.add(prefix+"batches", "%s", batchesText(g))
	}
	if g.Lease != nil {
		l.add(prefix+"credit", "%s", creditText(at, g.Lease))
	}
}

// homeText says who is home, by what, and whether that can be reached.
func homeText(g *admin.StrictKey) string {
	by := fmt.Sprintf("by layout %d", g.Layout)
	if g.Pinned {
		by = fmt.Sprintf("pinned by layout %d", g.Layout)
	}
	var text string
	switch {
	case g.Owner == nil:
		text = fmt.Sprintf("nobody in %s, %s", g.Region, by)
	case g.Self:
		text = fmt.Sprintf("%s, this daemon, %s", daemonText(g.Owner), by)
	default:
		text = fmt.Sprintf("%s, incarnation %s, %s", daemonText(g.Owner), g.Owner.Incarnation, by)
	}
	switch {
	case g.Reachable:
		return text
	case g.WhyNot == "":
		return text + "; out of reach"
	}
	return text + "; out of reach: " + g.WhyNot
}

func sourceText(s admin.LedgerSource) string {
	switch s {
	case admin.SourceOwner:
		return ", as the home says"
	case admin.SourceReplica:
		return ", as the replica here holds it"
	case admin.SourceGrants:
		return ", as the latest grant says"
	}
	return ""
}

// circuitText is a circuit in few words: "open for 12s, 40 of 50 calls failed".
func circuitText(at time.Time, c *admin.Circuit) string {
	text := strings.ReplaceAll(string(c.State), "_", " ")
	if c.Since != nil {
		text += " for " + ago(at, c.Since)
	}
	if c.Calls == 0 { // as when it has just opened
		return text
	}
	return text + fmt.Sprintf(", %d of %d calls failed", c.Errors, c.Calls)
}

// watermarkText is what may be consumed of a label, and was.
func watermarkText(at time.Time, m *admin.WatermarkState) string {
	var parts []string
	if m.Window != nil {
		parts = append(parts, "label "+labelText(m.Window))
	}
	for _, n := range []struct {
		hits *uint64
		text string
	}{{m.Consumed, "%d consumed"}, {m.Watermark, "%d promised by a majority"}, {m.Limit, "limit %d"}} {
		if n.hits != nil {
			parts = append(parts, fmt.Sprintf(n.text, *n.hits))
		}
	}
	if m.Drained != nil {
		parts = append(parts, "all drained in "+ahead(at, m.Drained))
	}
	return strings.Join(parts, ", ")
}

func batchesText(g *admin.StrictKey) string {
	parts := make([]string, 0, len(g.Batches)+1)
	for i := range g.Batches {
		x := &g.Batches[i]
		text := fmt.Sprintf("%s %d", daemonText(&x.Holder), x.Granted)
		if x.Returned > 0 {
			text += fmt.Sprintf(" (%d returned)", x.Returned)
		}
		parts = append(parts, text)
	}
	if g.LeftOut > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", g.LeftOut))
	}
	return strings.Join(parts, ", ")
}

func creditText(at time.Time, c *admin.Lease) string {
	text := fmt.Sprintf("%d left: %d granted - %d used - %d returned", c.Left, c.Granted, c.Used, c.Returned)
	if c.Until != nil {
		text += ", ends in " + ahead(at, c.Until)
	}
	if c.Asking {
		text += ", more was asked for"
	}
	if c.Denied != nil {
		text += fmt.Sprintf(", %d and more are denied", *c.Denied)
		if c.DeniedUntil != nil {
			text += " for " + ahead(at, c.DeniedUntil)
		}
	}
	return text
}

// ahead is how long after at something is, both by the daemon's clock.
func ahead(at time.Time, then *time.Time) string {
	seconds := max(0, then.Sub(at)).Seconds()
	return secondsShown(&seconds)
}
