package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/georld/rld/server/admin"
)

// strictTable shows an answer to people: the layout, a row a replica, the pins, and
// what the daemon itself does.
func strictTable(a *admin.StrictAnswer) string {
	s := a.Strict
	switch {
	case a.Alone:
		return alone + "It decides strict keys by itself.\n"
	case s == nil:
		return daemonText(&a.Self) + " has no part in strict keys.\n"
	}
	var b strings.Builder
	b.WriteString(layoutLine(a.At, s) + "\n")
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "REGION\tWEIGHT\tREPLICA\tLIVE\tREADY\tVOTES\tNOTE")
	for i := range s.Regions {
		r := &s.Regions[i]
		region, weight := or(r.Region, "-"), percentOf(r.Weight)
		if len(r.Replicas) == 0 {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\tnothing heard\n", region, weight)
		}
		for j := range r.Replicas {
			x := &r.Replicas[j]
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", region, weight, or(x.Name, "-"), yesNo(x.Live), yesNo(x.Ready),
				votesText(x.Voting), replicaNote(x))
			region, weight = "", ""
		}
	}
	// The writer below is a strings.Builder: nothing can fail.
	_ = t.Flush()
	b.WriteString("\n" + pinLines(s) + ownLine(a.At, &a.Self, s) + warningLines(s))
	return b.String()
}

// strictLines is the part of a status: the layout, who of the replicas is missing,
// and what the daemon itself does.
func strictLines(at time.Time, self *admin.DaemonRef, s *admin.StrictState) string {
	var b strings.Builder
	b.WriteString(layoutLine(at, s))
	for i := range s.Regions {
		r := &s.Regions[i]
		if len(r.Replicas) == 0 {
			continue
		}
		names := make([]string, 0, len(r.Replicas))
		for j := range r.Replicas {
			x := &r.Replicas[j]
			name := or(x.Name, "-")
			if why := replicaTrouble(x); why != "" {
				name += " (" + why + ")"
			}
			names = append(names, name)
		}
		fmt.Fprintf(&b, "Replicas of %s: %s.\n", or(r.Region, "-"), few(names))
	}
	b.WriteString(ownLine(at, self, s) + warningLines(s))
	return b.String()
}

// layoutLine says which layout is in force and which is under way.
func layoutLine(at time.Time, s *admin.StrictState) string {
	text := fmt.Sprintf("Strict keys: layout %d is in force", s.Layout)
	if s.Layout == 0 {
		text = "Strict keys: no layout is in force"
	}
	if n := s.Next; n != nil {
		text += fmt.Sprintf("; layout %d", n.Number)
		if n.Since != nil {
			text += fmt.Sprintf(", put in %s ago,", ago(at, n.Since))
		}
		if len(n.WaitsFor) > 0 {
			text += " waits for " + few(missing(n.WaitsFor))
		} else {
			text += " is under way"
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

func replicaNote(x *admin.StrictReplica) string {
	switch {
	case x.WhyNot != "":
		return shortened(printable(x.WhyNot))
	case x.Self:
		return "asked"
	}
	return "-"
}

// replicaTrouble says in few words what keeps a replica from being of use, "" for
// nothing.
func replicaTrouble(x *admin.StrictReplica) string {
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

func pinLines(s *admin.StrictState) string {
	var b strings.Builder
	for _, p := range s.Pins {
		rule := printable(p.Domain + ": " + p.Rule)
		if p.Rule == "" {
			rule = "a rule that is not in the limits here, " + or(p.ID, "-")
		}
		fmt.Fprintf(&b, "At home in %s: %s.\n", or(p.Region, "-"), rule)
	}
	return b.String()
}

// ownLine says what the daemon itself does.
func ownLine(at time.Time, self *admin.DaemonRef, s *admin.StrictState) string {
	text := fmt.Sprintf("%s keeps %d of at most %s", daemonText(self), s.Ledgers, plural(s.MaxLedgers, "ledger"))
	r := s.Replica
	if r == nil {
		return text + "; it is no replica.\n"
	}
	text += fmt.Sprintf("; it holds marks of %d in a journal of %s", r.Records, bytesShown(r.JournalBytes))
	if r.DiskLost != nil {
		text += fmt.Sprintf(", and lost those before %s ago", ago(at, r.DiskLost))
	}
	text += ".\n"
	if !r.Voting {
		text += fmt.Sprintf("! it does NOT vote: %s\n", shortened(or(r.WhyNot, "it does not say why")))
	}
	if r.JournalFault != "" {
		text += fmt.Sprintf("! marks cannot be stored: %s\n", shortened(printable(r.JournalFault)))
	}
	return text
}

func warningLines(s *admin.StrictState) string {
	var b strings.Builder
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "! %s\n", printable(w))
	}
	return b.String()
}

// bytesShown is a size with three digits.
func bytesShown(n uint64) string {
	v := float64(n)
	return strings.TrimSuffix(rateShown(&v), "/s")
}
