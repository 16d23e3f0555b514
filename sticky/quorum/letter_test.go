package quorum

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// describe returns the text of a message with all that affects its effect.
func describe(m *sticky.Message) string {
	head := fmt.Sprintf("%d>%d n%d ", m.From, m.To, m.Number)
	switch {
	case len(m.Accepts) == 1:
		r := &m.Accepts[0]
		return head + fmt.Sprintf("accept %s #%d up to %s knowing %s", ballotText(r.Ballot), r.Seq, amounts(r.Watermarks), amounts(r.Known))
	case len(m.Accepted) == 1:
		v := &m.Accepted[0]
		if v.OK {
			return head + fmt.Sprintf("accepted %s #%d yes %v", ballotText(v.Ballot), v.Seq, generationsText(v.Generations))
		}
		return head + fmt.Sprintf("accepted %s #%d no %s: %s %s %v", ballotText(v.Ballot), v.Seq, v.Reason, ballotText(v.Promised), amounts(v.Held), generationsText(v.Generations))
	case len(m.SnapshotRequests) == 1:
		return head + fmt.Sprintf("snapshot request of store %d for %d", m.SnapshotRequests[0].Generation, m.SnapshotRequests[0].Number)
	}
	p := &m.SnapshotChunks[0]
	if p.Reason != sticky.NoReason {
		return head + fmt.Sprintf("chunk for %d: %s", p.Number, p.Reason)
	}
	text := head + fmt.Sprintf("chunk for %d %v", p.Number, generationsText(p.Generations))
	for _, r := range p.Records {
		text += fmt.Sprintf(" %s %s", ballotText(r.Ballot), amounts(r.Watermarks))
	}
	return text
}

func ballotText(b sticky.Ballot) string {
	text := strconv.FormatUint(b.Round, 10) + "." + strconv.FormatUint(uint64(b.Owner), 10)
	if b.Term > 1 {
		text += "/" + strconv.FormatUint(b.Term, 10)
	}
	return text
}

func amounts(m sticky.Watermarks) string {
	out := "["
	for i, x := range m {
		if i > 0 {
			out += " "
		}
		out += strconv.FormatUint(x.Amount, 10)
	}
	return out + "]"
}

func generationsText(generations route.Generations) string {
	var out []string
	for _, l := range generations {
		for i := range 8 {
			if route.NameHash(daemonName(i)) == l.Voter && l.Generation > 0 {
				out = append(out, daemonName(i)+strconv.FormatUint(l.Generation, 10))
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return "lives " + strings.Join(out, " ")
}

func (m *machine) watermarks(amount uint64) sticky.Watermarks {
	if amount == 0 {
		return nil
	}
	return sticky.Watermarks{{Window: theWindow, Amount: amount, End: theEnd}}
}

// accept sends a proposer's Accepts, to its own acceptor too.
func (w *world) accept(m *machine) {
	m.proposer.Accepts(m.at, m.r.Routing(), func(to crdt.Incarnation, r sticky.Accept) {
		r.Key = theKey
		w.send(sticky.Message{From: m.incarnation, To: to, Number: m.r.Routing().Number(), Accepts: []sticky.Accept{r}})
	})
}
