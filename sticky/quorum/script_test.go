package quorum

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

// TestScripts replays testdata/scripts: a region of three voters a, b and c and
// one key. Stores and messages take their time. The commands:
//
//	want D N           owner D wants a watermark of N, and knows the
//	                   consumption that it counts
//	consume D N        owner D consumes N more: refused beyond what is held
//	deliver [TEXT]     delivers the messages whose text has TEXT in it, in the
//	                   order they were sent, and prints the effects
//	drop [TEXT]        loses them
//	stored D           the pending store of D is on disk
//	crash D, lose D    D dies and starts again, with its disk or without
//	again D            D sends the unanswered messages again
//	show               prints the watermarks of owners and voters
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld(&setup{daemon: 3, owners: []int{0, 1, 2}, limit: 1000, async: true, late: true, crash: 9, lose: 9, pokes: 99})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return w.script(t, d)
		})
	})
}

func (w *world) script(t *testing.T, d *datadriven.TestData) string {
	var words []string
	for _, a := range d.CmdArgs {
		words = append(words, a.Key)
	}
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(words[i], 10, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return n
	}
	before := slices.Clone(w.net)
	switch d.Cmd {
	case "want":
		m := w.own(int(words[0][0] - 'a'))
		m.proposer.Want(m.incarnation, theNow, m.watermarks(m.counted), m.watermarks(number(1)))
		w.accept(m)
	case "consume":
		m := w.own(int(words[0][0] - 'a'))
		if held := m.proposer.Held().Amount(theWindow); m.counted+number(1) > held {
			return fmt.Sprintf("refused: %d and %d more are above the %d held", m.counted, number(1), held)
		}
		m.counted += number(1)
		w.consumed += number(1)
		return fmt.Sprintf("%d consumed in all", w.consumed)
	case "deliver", "drop":
		return w.scriptDeliver(d.Cmd, strings.Join(words, " "))
	case "again":
		m := w.own(int(words[0][0] - 'a'))
		m.at += 2 * requestAgain
		w.settle(m)
		w.accept(m)
	case "show":
		return w.show()
	default:
		if d.Cmd == "stored" && w.daemons[words[0][0]-'a'].r.flight == nil {
			d.Fatalf(t, "%s stores nothing", words[0])
		}
		w.do(d.Cmd + " " + words[0])
	}
	return w.sent(before)
}

// scriptDeliver delivers or drops messages, and prints their effects.
func (w *world) scriptDeliver(cmd, part string) string {
	out := ""
	for _, l := range slices.Clone(w.net) {
		text := w.describe(l)
		if !strings.Contains(text, part) || w.find(l.text) == nil {
			continue
		}
		w.net = slices.DeleteFunc(slices.Clone(w.net), func(o *letter) bool { return o == l })
		before := slices.Clone(w.net)
		out += text + "\n"
		if cmd == "drop" {
			continue
		}
		m := w.recipient(&l.m)
		held, counted := m.proposer.Held(), m.counted
		w.deliver(l)
		w.sweep()
		m = w.recipient(&l.m)
		if now := m.proposer.Held(); len(l.m.Accepted) == 1 && !slices.Equal(now, held) {
			out += fmt.Sprintf("  %s holds %s\n", m.name, amounts(now))
		}
		if m.counted != counted {
			out += fmt.Sprintf("  %s lost its ballot and counts %d as consumed\n", m.name, m.counted)
		}
		out += w.sent(before)
	}
	return out
}

// sent prints the messages that are new.
func (w *world) sent(before []*letter) string {
	out := ""
	for _, l := range w.net {
		if !slices.Contains(before, l) {
			out += "  sent: " + w.describe(l) + "\n"
		}
	}
	return out
}

// describe describes a message in words.
func (w *world) describe(l *letter) string {
	m := &l.m
	head := fmt.Sprintf("%s to %s: ", w.nameOf(m.From), w.nameOf(m.To))
	switch {
	case len(m.Accepts) == 1:
		r := &m.Accepts[0]
		return head + fmt.Sprintf("accept up to %s, ballot %s, knowing %s", amounts(r.Watermarks), w.ballotName(r.Ballot), amounts(r.Known))
	case len(m.Accepted) == 1 && m.Accepted[0].OK:
		v := &m.Accepted[0]
		return head + strings.TrimSpace(fmt.Sprintf("yes, ballot %s %s", w.ballotName(v.Ballot), generationsText(v.Generations)))
	case len(m.Accepted) == 1:
		v := &m.Accepted[0]
		return head + strings.TrimSpace(fmt.Sprintf("no, %s: ballot %s holds %s %s", v.Reason, w.ballotName(v.Promised), amounts(v.Held), generationsText(v.Generations)))
	case len(m.SnapshotRequests) == 1:
		return head + fmt.Sprintf("snapshot request, store number %d", m.SnapshotRequests[0].Generation)
	case len(m.SnapshotChunks) == 1 && m.SnapshotChunks[0].Reason != sticky.NoReason:
		return head + "no chunk, " + m.SnapshotChunks[0].Reason.String()
	case len(m.SnapshotChunks) == 1:
		text := head + "chunk:"
		for _, r := range m.SnapshotChunks[0].Records {
			text += fmt.Sprintf(" ballot %s holds %s", w.ballotName(r.Ballot), amounts(r.Watermarks))
		}
		return text + ", " + generationsText(m.SnapshotChunks[0].Generations)
	}
	return head + l.text
}

// nameOf returns the name of an incarnation: the first a, the second a', and so
// on.
func (w *world) nameOf(id crdt.Incarnation) string {
	for _, m := range w.daemons {
		for i, old := range append(slices.Clone(m.old), m.incarnation) {
			if old == id {
				return m.name + strings.Repeat("'", i)
			}
		}
	}
	return "nobody"
}

func (w *world) ballotName(b sticky.Ballot) string {
	return fmt.Sprintf("%d of %s", b.Round, w.nameOf(b.Owner))
}

// show prints the watermarks of owners and voters.
func (w *world) show() string {
	out := ""
	for _, m := range w.daemons {
		if b := m.proposer.Ballot(); b.Round > 0 {
			out += fmt.Sprintf("owner %s: ballot %s, holds %s, counts %d as consumed\n",
				w.nameOf(m.incarnation), w.ballotName(b), amounts(m.proposer.Held()), m.counted)
		}
	}
	for _, m := range w.daemons {
		out += fmt.Sprintf("voter %s:", m.name)
		if l := m.r.records[theKey]; l != nil {
			out += fmt.Sprintf(" ballot %s holds %s", w.ballotName(l.Ballot), amounts(l.Watermarks))
		} else {
			out += " nothing"
		}
		if m.r.flight != nil {
			out += ", not stored yet"
		}
		if ok, why := m.r.voting(); !ok {
			out += ", does not vote: " + why
		}
		out += "\n"
	}
	return out
}
