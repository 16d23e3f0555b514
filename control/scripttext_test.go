package control

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// events prints the new events, equal ones of several daemons in one line.
func (s *script) events() string {
	at := map[string][]string{}
	for _, e := range s.w.events[min(s.printed, len(s.w.events)):] {
		name, text, _ := strings.Cut(e, ": ")
		text = s.named(strings.TrimSuffix(text, ": "))
		if !slices.Contains(at[text], name) {
			at[text] = append(at[text], name)
		}
	}
	s.printed = len(s.w.events)
	var lines []string
	for text, names := range at {
		slices.Sort(names)
		lines = append(lines, strings.Join(names, " ")+": "+text+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

var hexadecimal = regexp.MustCompile(`\b([0-9a-f]{32}|[0-9a-f]{16})\b`)

// named replaces random numbers by names.
func (s *script) named(text string) string {
	return hexadecimal.ReplaceAllStringFunc(text, func(hex string) string {
		for id, name := range s.ids {
			if id.String() == hex {
				return name
			}
		}
		if s.numbers[hex] == "" {
			s.numbers[hex] = fmt.Sprintf("#%d", len(s.numbers)+1)
		}
		return s.numbers[hex]
	})
}

// record prints a record.
func (s *script) record(r *Record) string {
	if r == nil {
		return "none"
	}
	var regions []string
	sum := uint32(0)
	for _, g := range r.Regions {
		text := g.Name + " " + percent(g.Weight)
		if g.Draining {
			text += " (draining)"
		}
		regions = append(regions, text)
		sum += g.Weight
	}
	out := "regions: " + strings.Join(regions, ", ") + "\nvoters: " + strings.Join(s.voters(r), ", ") + "\n"
	if sum != Whole {
		out += fmt.Sprintf("the weights sum to %d\n", sum)
	}
	for _, c := range r.History {
		out += fmt.Sprintf("%s: %s\n", c.Author, c.Text)
	}
	for _, d := range r.Dead {
		out += fmt.Sprintf("dead: %v until %s\n", d.ID, stamped(d.Until))
	}
	for _, e := range r.Revoked {
		out += fmt.Sprintf("revoked: %v\n", e.Name)
	}
	for _, c := range r.Dropped {
		out += fmt.Sprintf("dropped: %s: %s\n", c.Author, c.Text)
	}
	return s.named(out)
}

// epochs prints the epochs of regions of a record, and the founders of each
// region.
func (s *script) epochs(r *Record) string {
	all := slices.Clone(r.Epochs)
	if len(all) == 0 {
		genesis, err := r.Newest()
		if err != nil {
			return err.Error()
		}
		all = append(all, genesis)
	}
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "epoch %v:", e.ID.Stamp.Millis())
		for _, g := range r.Regions {
			if e.Has(g.ID()) {
				fmt.Fprintf(&b, " %s %s", g.Name, percent(uint32(weightIn(&e, g.ID()))))
			}
		}
		fmt.Fprintf(&b, ", %d members", len(e.Members))
		for _, d := range e.Retired {
			fmt.Fprintf(&b, ", one retired from %s", stamped(d.From))
		}
		b.WriteString("\n")
	}
	for _, g := range r.Regions {
		fmt.Fprintf(&b, "%s of version %v founded by %v\n", g.Name, g.Generation, g.Founders)
	}
	return s.named(b.String())
}

// format prints the formats that a daemon knows.
func (s *script) format(n *Node) string {
	st, out := n.Status(), ""
	if r := n.Record(); r != nil {
		out = fmt.Sprintf("record: %d, the next: %d, held: %v\n", r.Format, r.Next.Format, r.Next.Held != (Version{}))
	}
	return out + fmt.Sprintf("reads: %d, cannot read: %d, behind: %s\n", st.Reads, st.Unread, strings.Join(st.Behind, ", "))
}

// status prints the state of all daemons.
func (s *script) status() string {
	latest := map[Recovery]uint64{}
	for _, m := range s.w.machines {
		if m.up && m.node.Record() != nil {
			v := m.node.Record().Version
			latest[v.Recovery] = max(latest[v.Recovery], v.Index)
		}
	}
	out := ""
	for _, m := range s.w.machines {
		out += m.name + ": "
		if !m.up {
			out += "down\n"
			continue
		}
		out += s.state(m, latest) + "\n"
	}
	return s.named(out)
}

func (s *script) state(m *machine, latest map[Recovery]uint64) string {
	r := m.node.Record()
	if r == nil {
		return "no record"
	}
	state := m.node.Status()
	text := "follows"
	switch v := r.VoterOf(state.ID); {
	case state.Leads:
		text = "leads"
	case state.Votes && v != nil && v.Learner:
		text = "learns"
	case state.Votes:
		text = "votes"
	}
	if r.Version.Recovery.Number > 0 {
		text += fmt.Sprintf(", recovery %d %v", r.Version.Recovery.Number, r.Version.Recovery.Random)
	}
	if r.Version.Index < latest[r.Version.Recovery] {
		text += ", behind"
	}
	if state.Starting {
		text += ", starting"
	}
	if name := s.ids[state.ID]; name != m.name {
		text += ", as " + name
	}
	return text
}
