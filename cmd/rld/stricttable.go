package main

import (
	"fmt"
	"strings"
	"time"

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
	for i := range s.Regions {
		r := &s.Regions[i]
		region, weight := or(r.Region, "-"), percentOf(r.Weight)
		if len(r.Voters) == 0 {
			t.row(region, weight, "-", "-", "-", "-", "no data")
		}
		for j := range r.Voters {
			x := &r.Voters[j]
			t.row(region, weight, or(x.Name, "-"), yesNo(x.Live), yesNo(x.Ready), votesText(x.Voting), voterNote(x))
			region, weight = "", ""
		}
	}
	return layoutLine(a.At, s) + "\n" + t.String() + "\n" + pinLines(s) + ownLine(a.At, &a.Self, s) + warningLines(s)
}

// strictLines formats the strict part of a status: the layout, the voters with
// their faults, and the acceptor of the daemon.
func strictLines(at time.Time, self *api.DaemonRef, s *api.StrictState) string {
	var b strings.Builder
	b.WriteString(layoutLine(at, s))
	for i := range s.Regions {
		r := &s.Regions[i]
		if len(r.Voters) == 0 {
			continue
		}
		names := make([]string, 0, len(r.Voters))
		for j := range r.Voters {
			x := &r.Voters[j]
			name := or(x.Name, "-")
			if why := voterFault(x); why != "" {
				name += " (" + why + ")"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "Voters of %s: %s.\n", or(r.Region, "-"), few(names))
	}
	b.WriteString(ownLine(at, self, s) + warningLines(s))
	return b.String()
}

// layoutLine names the layout in force and the pending one.
func layoutLine(at time.Time, s *api.StrictState) string {
	text := fmt.Sprintf("Strict keys: layout %d is in force", s.Layout)
	if s.Layout == 0 {
		text = "Strict keys: no layout is in force"
	}
	if n := s.Next; n != nil {
		text += fmt.Sprintf("; layout %d", n.Number)
		if n.Since != nil {
			text += fmt.Sprintf(", proposed %s ago,", ago(at, n.Since))
		}
		if len(n.WaitsFor) > 0 {
			text += " waits for " + few(missing(n.WaitsFor))
		} else {
			text += " is pending"
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
	text := fmt.Sprintf("%s tracks %d of at most %s", daemonText(self), s.Keys, plural(s.MaxKeys, "strict key"))
	r := s.Acceptor
	if r == nil {
		return text + "; it is not a voter.\n"
	}
	text += fmt.Sprintf("; its acceptor stores watermarks of %d keys in a journal of %s", r.Keys, bytesShown(r.JournalBytes))
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
