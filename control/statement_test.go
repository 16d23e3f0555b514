package control

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/georld/rld/crdt"
)

// link is two nodes that know each other. Messages pass as frames do: without
// what they leave out.
type link struct {
	t     *testing.T
	at    time.Duration
	nodes [2]*Node
}

func newLink(t *testing.T) *link {
	l := &link{t: t, at: time.Second}
	for i := range l.nodes {
		l.restart(i)
	}
	return l
}

// address returns that of a node.
func (l *link) address(i int) crdt.Incarnation { return crdt.Incarnation(10 + i) }

// restart replaces a node by one without peers.
func (l *link) restart(i int) {
	rng := rand.New(rand.NewPCG(1, uint64(i)))
	n, err := New(Config{Name: string(rune('a' + i)), Region: "r"}, nil, InsecureSeed(rng), rng)
	if err != nil {
		l.t.Fatal(err)
	}
	l.nodes[i] = n
	l.meet(i)
}

// meet makes the other node the only peer of one.
func (l *link) meet(i int) {
	l.nodes[i].Peers(l.at, l.address(i), []Peer{{Address: l.address(1 - i), Name: string(rune('a' + 1 - i)), Region: "r"}})
}

// wall is the clock of all.
func (l *link) wall() int64 { return l.at.Milliseconds() + 1_700_000_000_000 }

// collect returns what a node sends now, as frames contain it, and how it
// describes itself.
func (l *link) collect(i int) []Message {
	l.at += 10 * time.Millisecond
	l.nodes[i].Tick(l.at, l.wall())
	var out []Message
	for _, m := range l.nodes[i].Ready(l.at).Messages {
		frame := *m.Without()
		frame.ToVoter, frame.Made = 0, 0
		out = append(out, frame)
	}
	return out
}

// send makes a node send a message, and returns its frame.
func (l *link) send(i int, m Message) Message {
	l.nodes[i].send(l.nodes[i].peers[0], m)
	all := l.collect(i)
	return all[len(all)-1]
}

// deliver passes a frame to a node, and checks what the node then knows of the
// sender.
func (l *link) deliver(i int, m Message) error {
	l.at += 10 * time.Millisecond
	err := l.nodes[i].Receive(l.at, l.wall(), &m)
	if err == nil {
		want := l.nodes[1-i].sender()
		if want.Clock = m.Sender.Clock; !reflect.DeepEqual(m.Sender, want) {
			l.t.Errorf("node %d understood %+v, want %+v", i, m.Sender, want)
		}
		if late := l.wall() - m.Sender.Clock; late < 0 || late > 1_000 {
			l.t.Errorf("node %d takes the clock for %d ms behind", i, late)
		}
	}
	return err
}

// TestStatements: a message contains what changed since the latest statement
// that the receiver is known to have, and a receiver that lost that gets all.
func TestStatements(t *testing.T) {
	l := newLink(t)
	size := func(m Message) int { // parts that the frame contains
		n := 0
		for _, p := range parts {
			if !p.equal(&m.Statement, &noStatement) {
				n++
			}
		}
		return n
	}
	first := l.send(0, Message{})
	if first.Since != 0 || first.Known != 0 || size(first) == 0 {
		t.Fatalf("first message %+v", first)
	}
	if again := l.send(0, Message{}); again.Since != 0 || again.State != first.State || again.Age == 0 {
		t.Errorf("before an answer: %+v", again)
	}
	if err := l.deliver(1, first); err != nil {
		t.Fatal(err)
	}
	if err := l.deliver(0, l.send(1, Message{})); err != nil {
		t.Fatal(err)
	}
	rest := l.send(0, Message{})
	if rest.Since != first.State || size(rest) != 0 || rest.Changed != 0 || rest.Sender.Clock > 1_000 {
		t.Errorf("without a change: %+v", rest)
	}
	if err := l.deliver(1, rest); err != nil {
		t.Fatal(err)
	}

	// Of changes one by one, some lost and some late, each message is
	// understood.
	n := l.nodes[0]
	var late []Message
	for i := range 3 * peerStatements {
		n.disk.number++
		n.leaving = i%3 == 0
		m := l.send(0, Message{})
		if m.Since != first.State || size(m) > 3 {
			t.Errorf("change %d: %+v", i, m)
		}
		switch i % 4 {
		case 1: // lost
		case 2:
			late = append(late, m)
		default:
			if err := l.deliver(1, m); err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		}
	}
	for _, m := range late {
		if err := l.nodes[1].Receive(l.at, l.wall(), &m); err != nil || m.Sender.Format != n.cfg.Format {
			t.Errorf("late: %+v, %v", m.Sender, err)
		}
	}
	if len(l.nodes[1].peers[0].stated) > peerStatements {
		t.Errorf("%d statements are kept, want %d at most", len(l.nodes[1].peers[0].stated), peerStatements)
	}

	// A receiver that forgot the peer rejects one message, and its answer ends
	// that.
	l.nodes[1].Peers(l.at, l.address(1), nil)
	l.meet(1)
	l.collect(1) // its greeting is lost
	if err := l.deliver(1, l.send(0, Message{})); err == nil {
		t.Error("a change of an unknown statement is understood")
	}
	answers := l.collect(1)
	if len(answers) != 1 || answers[0].Known != 0 {
		t.Fatalf("answers %+v", answers)
	}
	if err := l.deliver(0, answers[0]); err != nil {
		t.Fatal(err)
	}
	all := l.send(0, Message{})
	if all.Since != 0 {
		t.Errorf("after that: %+v", all)
	}
	if err := l.deliver(1, all); err != nil {
		t.Error(err)
	}
}

// TestStatementVoters: the two voters of a message of raft are those of the
// statements that the message names, also if one changed meanwhile.
func TestStatementVoters(t *testing.T) {
	l := newLink(t)
	for i, n := range l.nodes {
		voter := func(v int) Statement { return Statement{Sender: Sender{Voter: Number(v)}} }
		n.statements = statements{{State: 1, Made: l.wall(), Statement: voter(100 + i)}, {State: 2, Made: l.wall(), Statement: voter(200 + i)}}
	}
	n, p := l.nodes[0], l.nodes[0].peers[0]
	p.stated = slices.Clone(l.nodes[1].statements)
	for known, want := range map[uint64]uint64{1: 100, 2: 200, 3: 0} {
		m := Message{State: 3, Known: known, Statement: Statement{Sender: Sender{Voter: 301}}, Raft: []*raftpb.Message{{}, {From: new(uint64(7)), To: new(uint64(8))}}}
		if ok := expand(n, &m, p); ok != (want != 0) {
			t.Errorf("known %d: %t", known, ok)
		} else if r := m.Raft; ok && (r[0].GetFrom() != 301 || r[0].GetTo() != want || r[1].GetFrom() != 7 || r[1].GetTo() != 8) {
			t.Errorf("known %d: %v", known, r)
		}
	}
	m := Message{State: 2}
	if abridge(n, &m, p); m.Known != 3 || m.ToVoter != 301 {
		t.Errorf("%+v", m)
	}
}
