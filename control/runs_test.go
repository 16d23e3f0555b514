package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// witness is a node with two processes that claim to be one daemon.
type witness struct {
	t        *testing.T
	node     *Node
	at       time.Duration
	identity [3]Identity // of one key in three runs
}

// newWitness returns a node, whose peers have the addresses 2 to 4.
func newWitness(t *testing.T) *witness {
	n, err := open(Config{Name: "a-0", Region: "a", Durable: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{t: t, node: n}
	k := InsecureSeed(rand.New(rand.NewPCG(2, 2))).Key(1)
	for i := range w.identity {
		w.identity[i] = Identity{k, Run{byte(i + 1)}}
	}
	w.members(2, 3, 4)
	w.ready()
	return w
}

func (w *witness) members(addresses ...crdt.Incarnation) {
	all := []Peer{{Address: 1, Name: "a-0", Region: "a"}}
	for _, a := range addresses {
		all = append(all, Peer{Address: a, Name: fmt.Sprint("b-", a), Region: "b"})
	}
	w.node.Peers(w.at, 1, all)
}

// ready returns the messages of the node by their receivers.
func (w *witness) ready() map[crdt.Incarnation][]Message {
	out := map[crdt.Incarnation][]Message{}
	for {
		r := w.node.Ready(w.at)
		for _, m := range r.Messages {
			out[m.To] = append(out[m.To], m)
		}
		if r.Store == nil {
			return out
		}
		w.node.Stored(w.at)
	}
}

// counts sends the node a message of a run and reports whether it counts.
func (w *witness) counts(run int, began, store uint64) bool {
	m := &Message{From: crdt.Incarnation(run + 2), To: 1, Statement: Statement{Sender: w.sender(run, began, store)}}
	return w.node.Receive(w.at, 1, m) == nil
}

func (w *witness) sender(run int, began, store uint64) Sender {
	is := w.identity[run]
	return Sender{ID: is.Key.ID(), Run: is.Run, Began: began, Store: store, Durable: true}
}

// answer lets runs answer the nonces that the node sends them.
func (w *witness) answer(runs ...int) (asked []int) {
	for to, messages := range w.ready() {
		for _, m := range messages {
			run := int(to) - 2
			if m.Nonce == nil {
				continue
			}
			asked = append(asked, run)
			if slices.Contains(runs, run) {
				is := w.identity[run]
				proof := &Proof{*m.Nonce, is.Key.Sign(ForNonce, m.Nonce.message(m.Sender.ID))}
				_ = w.node.Receive(w.at, 1, &Message{From: to, To: 1, Statement: Statement{Sender: w.sender(run, 0, 0)}, Proof: proof})
			}
		}
	}
	slices.Sort(asked)
	return slices.Compact(asked)
}

// pass lets time pass, in which runs answer.
func (w *witness) pass(d time.Duration, runs ...int) {
	for end := w.at + d; w.at < end; w.at += 50 * time.Millisecond {
		w.node.Tick(w.at, 1)
		w.answer(runs...)
	}
}

// dead reports whether the id is dead, with the event that has the reason.
func (w *witness) dead() bool { return w.node.Dead(w.identity[0].Key.ID()) }

// A later run counts at once when the process of the former one is gone, and
// the former one never counts again.
func TestRestart(t *testing.T) {
	w := newWitness(t)
	if !w.counts(0, 0, 10) {
		t.Fatal("the first run does not count")
	}
	w.members(3)
	if !w.counts(1, 10, 11) {
		t.Error("the second run does not count")
	}
	w.members(2, 3)
	if w.counts(0, 0, 10) {
		t.Error("the first run counts again")
	}
	if w.pass(3*time.Second, 1); w.dead() || !w.counts(1, 10, 12) {
		t.Error("a late message of a former run ended the id")
	}
}

// Messages of a former run that arrive late end nothing: also when neither run
// has stored anything, so that their store numbers do not order them.
func TestLateMessages(t *testing.T) {
	w := newWitness(t)
	w.counts(1, 10, 10)
	for range 50 {
		if w.counts(0, 10, 10) {
			t.Fatal("the former run counts")
		}
		w.pass(100*time.Millisecond, 1)
	}
	if w.dead() || !w.counts(1, 10, 11) {
		t.Error("late messages ended the id, or displaced its run")
	}
}

// Two runs that answer are clones: neither counts from the first doubt on but
// the earlier one, and none when both have answered.
func TestClones(t *testing.T) {
	for name, began := range map[string]uint64{"of this run": 10, "of the last run": 5} {
		t.Run(name, func(t *testing.T) {
			w := newWitness(t)
			w.counts(0, 5, 10)
			if w.counts(1, began, 20) {
				t.Error("the clone counts before the doubt is over")
			}
			if asked := w.answer(0, 1); !slices.Equal(asked, []int{0, 1}) {
				t.Errorf("asked %v, want both", asked)
			}
			if !w.dead() || w.counts(0, 5, 11) || w.counts(1, began, 21) || w.counts(2, 30, 30) {
				t.Error("the id counts")
			}
			for to, messages := range w.ready() {
				if !slices.ContainsFunc(messages, func(m Message) bool { return m.Ended != nil && m.Ended.ID == w.identity[0].Key.ID() }) {
					t.Errorf("no notice to the process at %v", to)
				}
			}
		})
	}
}

// A run with an old disk ends its id alone, and only if it is live.
func TestOldDiskAnswers(t *testing.T) {
	w := newWitness(t)
	w.counts(0, 5, 10)
	w.members(3)
	if w.counts(1, 9, 9) {
		t.Error("an old disk counts")
	}
	if w.pass(3*time.Second, 0); w.dead() {
		t.Error("an id ended although the run with the old disk is silent")
	}
	w.counts(1, 9, 9)
	if w.answer(1); !w.dead() {
		t.Error("an old disk did not end the id")
	}
}

// A silent run is displaced by a live one after two seconds, and not before.
func TestDisplaced(t *testing.T) {
	w := newWitness(t)
	w.counts(0, 5, 10)
	w.counts(1, 10, 11)
	w.pass(nonceWithin-100*time.Millisecond, 1)
	if w.counts(1, 10, 12) {
		t.Error("it counts before the other one had time to answer")
	}
	w.pass(200*time.Millisecond, 1)
	if w.dead() || !w.counts(1, 10, 12) {
		t.Error("a silent run was not displaced")
	}
	if w.counts(0, 5, 10) {
		t.Error("the displaced run counts")
	}
	if w.answer(0, 1); !w.dead() {
		t.Error("the displaced run answers, and the id did not end")
	}
}

// Only the key of the id answers a nonce, for its run, its asker and once.
func TestFalseProofs(t *testing.T) {
	w := newWitness(t)
	w.counts(0, 5, 10)
	w.counts(1, 10, 11)
	var nonce *Nonce
	for _, m := range w.ready()[2] {
		if m.Nonce != nil {
			nonce = m.Nonce
		}
	}
	k, me := w.identity[0].Key, w.node.ID()
	third := InsecureSeed(rand.New(rand.NewPCG(3, 3))).Key(1)
	other := *nonce
	other.Run = w.identity[1].Run
	former := *nonce
	former.Number++
	for name, proof := range map[string]*Proof{
		"another key":     {*nonce, third.Sign(ForNonce, nonce.message(me))},
		"another purpose": {*nonce, k.Sign(ForVote, nonce.message(me))},
		"another asker":   {*nonce, k.Sign(ForNonce, nonce.message(ID{9}))},
		"another run":     {other, k.Sign(ForNonce, nonce.message(me))},
		"another nonce":   {former, k.Sign(ForNonce, former.message(me))},
		"nothing":         {Nonce: *nonce},
	} {
		_ = w.node.Receive(w.at, 1, &Message{From: 4, To: 1, Statement: Statement{Sender: Sender{ID: third.ID(), Run: Run{9}}}, Proof: proof})
		if q := w.node.runs.doubts[k.ID()]; q == nil || q.earlierAnswered || q.laterAnswered {
			t.Errorf("%s is taken for an answer", name)
		}
	}
}

// Another process with the id of this daemon ends the id, and the daemon goes
// on under another one and reports the former.
func TestOwnClone(t *testing.T) {
	w := newWitness(t)
	w.identity[0].Key, w.identity[1].Key = w.node.Identity().Key, w.node.Identity().Key
	former, run := w.node.ID(), w.node.Identity().Run
	if w.counts(0, 0, 0) {
		t.Error("another process with the own id counts")
	}
	if w.pass(3 * time.Second); w.node.ID() != former {
		t.Fatal("the id ended although the other process is silent")
	}
	w.counts(0, 0, 0)
	w.node.Ready(w.at)
	for range 2 { // the message was lost once
		w.at += nonceEach
		w.node.Tick(w.at, 1)
		w.answer(0)
	}
	if w.node.ID() == former || w.node.Identity().Run != run || !w.node.Dead(former) {
		t.Errorf("id %v, run %v", w.node.ID(), w.node.Identity().Run)
	}
	text := ""
	for _, item := range w.node.Snapshot() {
		text += string(item)
	}
	start, err := Recover(w.node.Snapshot(), Config{})
	if err != nil || start.self.id() != w.node.ID() {
		t.Errorf("stored id %v, error %v, items %s", start.self.id(), err, text)
	}
}

// Ready reports an id that was given up once, and the first one of several.
func TestFormer(t *testing.T) {
	n, err := open(Config{Name: "a-0", Region: "a", Durable: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := n.ID()
	n.runs.giveUp("a test")
	n.runs.giveUp("another one")
	if r := n.Ready(0); r.Former != first {
		t.Errorf("former %v, want %v", r.Former, first)
	}
	if r := n.Ready(0); r.Former != (ID{}) {
		t.Errorf("former %v again", r.Former)
	}
}

// Doubts and dead ids are bounded: what exceeds them does not count.
func TestDoubtsAreBounded(t *testing.T) {
	w := newWitness(t)
	for i := range 4 * maxDoubts {
		k := InsecureSeed(rand.New(rand.NewPCG(uint64(i), 4))).Key(1)
		for run := range w.identity {
			w.identity[run].Key = k
		}
		w.counts(0, 5, 10)
		if w.counts(1, 10, 10) {
			t.Fatal("a doubtful run counts")
		}
	}
	if n := len(w.node.runs.doubts); n > maxDoubts {
		t.Errorf("%d doubts, want at most %d", n, maxDoubts)
	}
	for i := range 4 * maxDead {
		k := InsecureSeed(rand.New(rand.NewPCG(uint64(i), 5))).Key(1)
		for run := range w.identity {
			w.identity[run].Key = k
		}
		clear(w.node.runs.doubts)
		w.counts(0, 5, 10)
		w.counts(1, 10, 10)
		w.answer(0, 1)
		if w.counts(1, 10, 10) {
			t.Fatal("a clone counts")
		}
	}
	if n := len(w.node.runs.dead); n != maxDead {
		t.Errorf("%d dead ids, want %d", n, maxDead)
	}
}

// The record bounds the dead ids, refuses more, and drops each when its last
// window is over.
func TestDeadIDsAreBounded(t *testing.T) {
	r := (&Founding{Cluster: 1, Regions: even("a"), Founders: []Founder{{Name: "a", Region: "a", Raft: 1}}}).record()
	n := &Node{cfg: (Config{}).withDefaults()}
	n.rights.node = n
	dead := func(id ID, wall int64) *DeadID {
		n.wall = wall
		d, err := n.rights.stampDead(DeadID{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range MaxDeadIDs {
		if err := r.end(dead(ID{byte(i >> 8), byte(i), 1}, int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.validate(); err != nil {
		t.Fatal(err)
	}
	next := dead(ID{0xff}, 1)
	err := r.end(next)
	day := n.cfg.Longest.Milliseconds()
	if err == nil || !strings.Contains(err.Error(), stamped(day+2_000)) {
		t.Errorf("error %v, want one that names %s", err, stamped(day+2_000))
	}
	if r.dropDead(day + 1_999); len(r.Dead) != MaxDeadIDs {
		t.Errorf("%d dead ids before the first window is over", len(r.Dead))
	}
	if r.dropDead(day + 2_009); len(r.Dead) != MaxDeadIDs-10 {
		t.Errorf("%d dead ids, want %d", len(r.Dead), MaxDeadIDs-10)
	}
	if err := r.end(next); err != nil {
		t.Error(err)
	}
	if err := r.end(next); err == nil {
		t.Error("an id is dead twice")
	}
}

// TestDisklessRunsAreForgottenFirst: many diskless daemons come and go, and the
// write of a durable one that is down meanwhile is remembered.
func TestDisklessRunsAreForgottenFirst(t *testing.T) {
	w := newWitness(t)
	r, p := &w.node.runs, &peer{Peer: Peer{Address: 9, Name: "b-9", Region: "b"}}
	sender := func(i int, store uint64) *Sender {
		return &Sender{ID: ID{byte(i >> 8), byte(i), 1}, Run: Run{1}, Store: store}
	}
	durable := sender(0, 5)
	if !r.note(p, durable) {
		t.Fatal("a durable daemon is not noted")
	}
	for i := range 3 * maxWritten {
		if !r.note(p, sender(i+1, 0)) || len(r.latest) > maxWritten {
			t.Fatalf("diskless daemon %d: %d runs are remembered, want at most %d", i, len(r.latest), maxWritten)
		}
	}
	if r.latest[durable.ID].Store != 5 {
		t.Error("the write of a durable daemon is forgotten")
	}
	for i := range 3 * maxWritten { // too many durable ones: all that are gone are forgotten
		if !r.note(p, sender(i+1, 1)) || len(r.latest) > maxWritten {
			t.Fatalf("durable daemon %d: %d runs are remembered, want at most %d", i, len(r.latest), maxWritten)
		}
	}
}

// The only voter of a recovery comes back with its disk of before, and nobody
// else remembers what it wrote: it gives up its id, and others may recover. It
// would have no log to lead, and seem to be live.
func TestOnlyVoterWithOldDisk(t *testing.T) {
	w := begin(t)
	a, b := w.find("a-0"), w.find("b-0")
	old, lost := slices.Clone(a.disk), a.node.ID()
	w.cut = func(from, to *machine) bool { return (from == a) != (to == a) }
	w.run(20 * time.Second)
	if err := a.node.Recover(RecoverRequest{Stopped: true}); err != nil {
		t.Fatal(err)
	}
	w.until("recovered", time.Minute, a.node.Leads)
	if res := w.submit(a, Change{Note: &Note{Text: "a later entry"}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.cut = func(_, _ *machine) bool { return false }
	w.until("followed", time.Minute, func() bool { return b.node.Record().Version.Recovery.Number == 1 })
	if v := b.node.Record().Voters; len(v) != 1 {
		t.Fatalf("voters %v: the test shows nothing", v)
	}
	for _, m := range w.machines {
		w.crash(m)
	}
	a.disk = old
	for _, m := range w.machines {
		w.start(m)
	}
	w.run(20 * time.Second)
	if a.node.ID() == lost {
		t.Error("it keeps its id")
	}
	if err := b.node.Recover(RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	w.until("a leader", time.Minute, func() bool { return w.leader() != nil && w.equal() })
}
