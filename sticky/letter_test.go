package sticky

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// describe says all that matters of a message.
func describe(m *Message) string {
	head := fmt.Sprintf("%d>%d n%d ", m.From, m.To, m.Number)
	switch {
	case len(m.Raises) == 1:
		r := &m.Raises[0]
		return head + fmt.Sprintf("raise %s #%d to %s knowing %s", ballotText(r.Ballot), r.Seq, amounts(r.Marks), amounts(r.Known))
	case len(m.Votes) == 1:
		v := &m.Votes[0]
		if v.OK {
			return head + fmt.Sprintf("vote %s #%d yes %v", ballotText(v.Ballot), v.Seq, livesText(v.Lives))
		}
		return head + fmt.Sprintf("vote %s #%d no %s: %s %s %v", ballotText(v.Ballot), v.Seq, v.Why, ballotText(v.Promised), amounts(v.Held), livesText(v.Lives))
	case len(m.Copies) == 1:
		return head + fmt.Sprintf("copy of life %d for %d", m.Copies[0].Life, m.Copies[0].Number)
	case len(m.Layouts) == 1:
		return head + fmt.Sprintf("layout %d", m.Number)
	}
	p := &m.Pages[0]
	if p.Why != NoWhy {
		return head + fmt.Sprintf("page for %d: %s", p.Number, p.Why)
	}
	text := head + fmt.Sprintf("page for %d %v", p.Number, livesText(p.Lives))
	for _, r := range p.Records {
		text += fmt.Sprintf(" %s %s", ballotText(r.Ballot), amounts(r.Marks))
	}
	return text
}

func ballotText(b Ballot) string {
	text := strconv.FormatUint(b.Round, 10) + "." + strconv.FormatUint(uint64(b.Home), 10)
	if b.Term > 1 {
		text += "/" + strconv.FormatUint(b.Term, 10)
	}
	return text
}

func amounts(m Marks) string {
	out := "["
	for i, x := range m {
		if i > 0 {
			out += " "
		}
		out += strconv.FormatUint(x.Amount, 10)
	}
	return out + "]"
}

func livesText(lives []Life) string {
	if len(lives) == 0 {
		return ""
	}
	var out []string
	for _, l := range lives {
		for i := range 8 {
			if NameHash(daemonName(i)) == l.Voter {
				out = append(out, daemonName(i)+strconv.FormatUint(l.Life, 10))
			}
		}
	}
	slices.Sort(out)
	return "lives " + strings.Join(out, " ")
}
