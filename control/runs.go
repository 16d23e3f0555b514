package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
)

// Written is the latest durable write that a daemon reported: the greatest
// store number of an id, and the run that reported it. A later run of the id
// begins with as much, unless its disk is older than it was.
type Written struct {
	ID    ID     `json:"id"`
	Run   Run    `json:"run"`
	Store uint64 `json:"store"`
}

const (
	// maxWritten bounds the ids whose writes are remembered. Voters and live
	// daemons are kept.
	maxWritten = 1_024
	// maxDoubts bounds the ids with two runs, maxDead the ids that are dead and
	// that the record does not name yet. Messages beyond them do not count.
	maxDoubts = 64
	maxDead   = 256
	// deadAtOnce bounds the ids that a daemon asks to declare dead at a time.
	deadAtOnce = 4
	// nonceWithin is how long a run has to answer a nonce, or the least
	// election timeout if that is longer, as messages are slow then. nonceEach
	// is the time between two attempts.
	nonceWithin = 2 * time.Second
	nonceEach   = 200 * time.Millisecond
)

// runs are the runs of all daemons, as far as this one knows: of each id, the
// one whose messages count.
type runs struct {
	node   *Node
	latest map[ID]countedRun
	doubts map[ID]*doubt
	dead   map[ID]string // with the reason, until the record names them
	stored []Written     // those of voters, on disk
}

// countedRun is the run of an id whose messages count.
type countedRun struct {
	Written
	address crdt.Incarnation // 0 for one that is known from the disk only
}

// doubt is the question which of two runs of an id is live.
type doubt struct {
	nonce      Number
	until, due time.Duration
	// earlier counts so far; later does not. old reports that later began
	// before the latest write of earlier.
	earlier, later                 countedRun
	earlierAnswered, laterAnswered bool
	old                            bool
}

// Nonce asks a run to prove that it is live.
type Nonce struct {
	Number Number `json:"number"`
	ID     ID     `json:"id"`
	Run    Run    `json:"run"`
}

// Proof is the answer to a nonce.
type Proof struct {
	Nonce     Nonce     `json:"nonce"`
	Signature Signature `json:"signature"`
}

// message returns the bytes that the answer to another daemon signs.
func (c *Nonce) message(to ID) []byte {
	return fmt.Appendf(nil, "%v to %v of run %v", c.Number, to, c.Run)
}

// note reports whether a message of a sender counts, and notes its run and its
// write if it does.
func (r *runs) note(p *peer, s *Sender) bool {
	n := r.node
	if n.Dead(s.ID) {
		why := cmp.Or(r.dead[s.ID], "the record declares it dead")
		n.send(p, Message{Ended: &Ended{s.ID, why}})
		return false
	}
	was, known := r.latest[s.ID]
	if s.ID == n.self.id() {
		was = countedRun{Written{s.ID, n.self.Run, n.disk.number}, n.address}
	}
	is := countedRun{Written{s.ID, s.Run, s.Store}, p.Address}
	switch {
	case s.ID == n.self.id():
		r.doubt(was, is, s.Began)
		return false
	case !known:
	case was.Run == s.Run:
		is.Store = max(is.Store, was.Store)
	case s.Began >= was.Store && n.peer(was.address) == nil: // a crash ended the earlier one
	default:
		r.doubt(was, is, s.Began)
		return false
	}
	if !known && len(r.latest) >= maxWritten {
		r.forget()
	}
	if known || len(r.latest) < maxWritten {
		r.latest[s.ID] = is
	}
	return true
}

// forget drops the runs of daemons that are neither live nor voters, at first
// only of those that have written nothing: no other run of a diskless daemon
// follows, and many of them come and go.
func (r *runs) forget() {
	n := r.node
	gone := func(id ID, _ countedRun) bool {
		return n.byID(id) == nil && (n.record == nil || n.record.VoterOf(id) == nil)
	}
	maps.DeleteFunc(r.latest, func(id ID, c countedRun) bool { return c.Store == 0 && gone(id, c) })
	if len(r.latest) >= maxWritten {
		maps.DeleteFunc(r.latest, gone)
	}
}

// doubt asks two runs of an id whether they are live. There is one question
// about an id at a time.
func (r *runs) doubt(earlier, later countedRun, began uint64) {
	n := r.node
	if r.doubts[earlier.ID] != nil || len(r.doubts) >= maxDoubts || len(r.dead) >= maxDead {
		return
	}
	q := &doubt{
		nonce: n.number(), until: n.at + max(nonceWithin, n.cfg.election()), earlier: earlier, later: later, old: began < earlier.Store,
		earlierAnswered: earlier.ID == n.self.id(),
	}
	r.doubts[earlier.ID] = q
	r.ask(q)
}

// ask sends the nonce to the runs that have not answered.
func (r *runs) ask(q *doubt) {
	n := r.node
	q.due = n.at + nonceEach
	if p := n.peer(q.later.address); p != nil && !q.laterAnswered {
		n.send(p, Message{Nonce: &Nonce{q.nonce, q.later.ID, q.later.Run}})
	}
	if p := n.peer(q.earlier.address); p != nil && !q.earlierAnswered {
		n.send(p, Message{Nonce: &Nonce{q.nonce, q.earlier.ID, q.earlier.Run}})
	}
}

// receive answers a nonce, and takes answers and notices: from any live daemon,
// since two that doubt each other must be able to answer.
func (r *runs) receive(p *peer, m *Message) {
	n := r.node
	if c := m.Nonce; c != nil && c.ID == n.self.id() && c.Run == n.self.Run {
		n.send(p, Message{Proof: &Proof{*c, n.self.Key.Sign(ForNonce, c.message(m.Sender.ID))}})
	}
	if a := m.Proof; a != nil {
		r.answered(p, a)
	}
	if e := m.Ended; e != nil && e.ID == n.self.id() {
		r.giveUp(fmt.Sprintf("%s does not count it: %s", p.Name, shorten(e.Reason, maxText)))
	}
}

// answered takes an answer to a nonce.
func (r *runs) answered(p *peer, a *Proof) {
	n, q := r.node, r.doubts[a.Nonce.ID]
	if q == nil || q.nonce != a.Nonce.Number {
		return
	}
	if err := Verify(a.Nonce.ID, ForNonce, a.Nonce.message(n.self.id()), a.Signature); err != nil {
		n.events.AddOnce(Rejected, p.Name, "proof", err.Error())
		return
	}
	switch a.Nonce.Run {
	case q.earlier.Run:
		q.earlierAnswered = true
	case q.later.Run:
		q.laterAnswered = true
	}
	r.decide(q)
}

// decide ends a doubt if its answers or the time suffice. Two live runs are
// clones, and a live one that began before the latest write has an old disk:
// nothing of such an id counts. A live one displaces one that does not answer.
// A message of one that does not answer was late.
func (r *runs) decide(q *doubt) {
	n, id := r.node, q.earlier.ID
	switch {
	case id != n.self.id() && r.latest[id].Run != q.earlier.Run: // the earlier one ended, and a third one counts
		delete(r.doubts, id)
	case q.laterAnswered && q.earlierAnswered:
		r.end(id, "two daemons have copies of its disk")
	case q.laterAnswered && q.old:
		r.end(id, fmt.Sprintf("its disk is older than it was: it began before write %d", q.earlier.Store))
	case q.laterAnswered && (n.at >= q.until || n.peer(q.earlier.address) == nil):
		r.latest[id] = q.later
		delete(r.doubts, id)
	case n.at >= q.until:
		delete(r.doubts, id)
	}
}

// end stops to count an id, and lets the log declare it dead. It may be that of
// this daemon.
func (r *runs) end(d ID, why string) {
	n := r.node
	delete(r.latest, d)
	delete(r.doubts, d)
	r.dead[d] = why
	name := ""
	for _, p := range n.peers {
		if p.sender.ID == d {
			name = p.Name
			p.sender, p.version, p.heardAt, n.led = Sender{}, Version{}, -1, ledBy{}
		}
	}
	n.events.Add(IDEnded, name, fmt.Sprintf("%v: %s", d, why))
	if d == n.self.id() {
		r.giveUp(why)
	}
}

// turn asks again, decides doubts whose time is over, and asks the leader to
// declare ids dead.
func (r *runs) turn() {
	n := r.node
	for _, id := range slices.SortedFunc(maps.Keys(r.doubts), ID.Compare) {
		q := r.doubts[id]
		if n.at >= q.due {
			r.ask(q)
		}
		r.decide(q)
	}
	if n.record == nil || len(r.dead) == 0 {
		return
	}
	asked := 0
	for _, id := range slices.SortedFunc(maps.Keys(r.dead), ID.Compare) {
		d := &DeadID{ID: id}
		switch {
		case n.record.DeadID(id) != nil:
			delete(r.dead, id)
		case n.record.Outcome(d.request()) != nil || asked == deadAtOnce: // refused, or later
		default:
			asked++
			if n.requests.index(d.request()) < 0 {
				q := Request{ID: d.request(), Author: n.cfg.Name, Reason: r.dead[id], Change: Change{Dead: d}}
				n.requests.own = append(n.requests.own, ownRequest{Request: q, due: n.at, silent: true})
			}
		}
	}
}

// checkSelf gives the id of this daemon up if the record declares it dead.
func (r *runs) checkSelf() {
	n := r.node
	if n.record != nil && n.record.DeadID(n.self.id()) != nil {
		r.giveUp("the record declares its id dead")
	}
}

// lostVoter reports whether a voter of the record that this disk knows nothing
// of was one on another disk: this one lacks what it acknowledged. The first
// voters of a cluster may learn its record late, unless there is one alone.
// Those of a recovery vote only once they have its log.
func lostVoter(r *Record, is *Voter) bool {
	return !is.Learner && (r.Version.Recovery.Number > 0 || r.Voting() == 1) && r.Version.Index != r.First
}

// ofVoters returns the writes of the voters. A voter counts their votes, so it
// must know their old disks after a restart.
func (r *runs) ofVoters() []Written {
	var all []Written
	if rec := r.node.record; rec != nil && (r.node.raft != nil || r.node.stopped != nil) {
		for _, v := range rec.Voters {
			if h, known := r.latest[v.Daemon]; known {
				all = append(all, h.Written)
			}
		}
	}
	return all
}

// changed returns the writes of the voters if they are to be stored again.
func (r *runs) changed() []Written {
	all := r.ofVoters()
	if slices.Equal(all, r.stored) {
		return nil
	}
	r.stored = all
	return all
}
