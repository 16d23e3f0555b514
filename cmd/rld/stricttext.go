package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/server/admin/api"
)

// strictTable formats an answer: the layout, a row for each voter, the pins,
// and the acceptor of the daemon.
func strictTable(a *api.StrictAnswer) string {
	s := a.Strict
	switch {
	case a.Alone:
		return alone + "It decides strict keys by itself.\n"
	case s == nil:
		return daemonText(&a.Self) + " does not serve strict keys.\n"
	}
	t := newTable("REGION", "WEIGHT", "VOTER", "LIVE", "READY", "VOTES", "NOTE")
	for _, r := range s.Regions {
		region, weight := or(r.Region, "-"), percentOf(r.Weight)
		if len(r.Voters) == 0 {
			t.row(region, weight, "-", "-", "-", "-", "no data")
		}
		for _, x := range r.Voters {
			t.row(region, weight, or(x.Name, "-"), yesNo(x.Live), yesNo(x.Ready), votesText(x.Voting), voterNote(&x))
			region, weight = "", ""
		}
	}
	return layoutLine(s) + "\n" + t.String() + "\n" + pinLines(s) + ownLine(a.At, &a.Self, s) + warningLines(s)
}

// strictLines formats the strict part of a status: the layout, the voters with
// their faults, and the acceptor of the daemon.
func strictLines(at time.Time, self *api.DaemonRef, s *api.StrictState) string {
	var b strings.Builder
	b.WriteString(layoutLine(s))
	for _, r := range s.Regions {
		if len(r.Voters) == 0 {
			continue
		}
		names := make([]string, 0, len(r.Voters))
		for _, x := range r.Voters {
			name := or(x.Name, "-")
			if why := voterFault(&x); why != "" {
				name += " (" + why + ")"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "Voters of %s: %s.\n", or(r.Region, "-"), few(names))
	}
	b.WriteString(ownLine(at, self, s) + warningLines(s))
	return b.String()
}

// layoutLine names the active layout and the announced one.
func layoutLine(s *api.StrictState) string {
	text := fmt.Sprintf("Strict keys: layout %d is active", s.Layout)
	if s.Layout == 0 {
		text = "Strict keys: no layout is active"
	}
	if n := s.Next; n != nil {
		text += fmt.Sprintf("; layout %d", n.Number)
		if len(n.WaitsFor) > 0 {
			text += " waits for " + few(missing(n.WaitsFor))
		} else {
			text += " is about to be"
		}
	}
	return text + ".\n"
}

func votesText(voting *bool) string {
	if voting == nil {
		return "-"
	}
	return yesNo(*voting)
}

func voterNote(x *api.StrictVoter) string {
	switch {
	case x.WhyNot != "":
		return shortened(printable(x.WhyNot))
	case x.Self:
		return "asked"
	}
	return "-"
}

// voterFault names the fault of a voter, "" for none.
func voterFault(x *api.StrictVoter) string {
	switch {
	case !x.Live:
		return "down"
	case x.Voting == nil && x.WhyNot != "":
		return shortened(printable(x.WhyNot))
	case x.Voting != nil && !*x.Voting:
		return "does not vote"
	case !x.Ready:
		return "not ready"
	}
	return ""
}

func pinLines(s *api.StrictState) string {
	var b strings.Builder
	for _, p := range s.Pins {
		rule := printable(p.Domain + ": " + p.Rule)
		if p.Rule == "" {
			rule = "a rule that is not in the limits of this daemon, " + or(p.ID, "-")
		}
		fmt.Fprintf(&b, "Home region %s: %s.\n", or(p.Region, "-"), rule)
	}
	return b.String()
}

// ownLine describes the keys and the acceptor of the daemon that answers.
func ownLine(at time.Time, self *api.DaemonRef, s *api.StrictState) string {
	text := fmt.Sprintf("%s tracks %d of at most %s", daemonText(self), s.Keys, suggest.Plural(s.MaxKeys, "strict key"))
	r := s.Acceptor
	if r == nil {
		return text + "; it is not a voter.\n"
	}
	text += fmt.Sprintf("; its acceptor stores watermarks of %s in a journal of %s", suggest.Plural(r.Keys, "key"), bytesShown(r.JournalBytes))
	if r.DiskLost != nil {
		text += fmt.Sprintf(", and lost its disk %s ago", ago(at, r.DiskLost))
	}
	text += ".\n"
	if !r.Voting {
		text += fmt.Sprintf("! it does NOT vote: %s\n", shortened(or(r.WhyNot, "no reason given")))
	}
	if r.JournalFault != "" {
		text += fmt.Sprintf("! watermarks cannot be stored: %s\n", shortened(printable(r.JournalFault)))
	}
	return text
}

func warningLines(s *api.StrictState) string {
	var b strings.Builder
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "! %s\n", printable(w))
	}
	return b.String()
}

// bytesShown formats a size with three digits.
func bytesShown(n uint64) string {
	v := float64(n)
	return strings.TrimSuffix(rateShown(&v), "/s")
}

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
	case g.Owner == nil && g.Region == "":
		text = "none, " + by
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
	for _, x := range g.Leases {
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
