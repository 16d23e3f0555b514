package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/georld/rld/control/revocation"
)

// Result is the result of a command that this daemon submitted.
type Result struct {
	ID Number
	// Version is that of the record with its outcome.
	Version Version
	// Err is why the command changes nothing, now and for ever: another one may
	// be submitted under another id.
	Err error
}

// requests are the commands that wait for their entry.
type requests struct {
	own     []ownRequest // submitted here, in that order
	queue   []Request    // of the leader
	results []Result
	// proposed is the command whose entry is on its way, 0 for none; current is
	// that command. entry is the index, 0 until raft appended it.
	proposed Number
	current  Request
	entry    uint64
}

type ownRequest struct {
	Request
	due    time.Duration // when it is sent next
	silent bool          // its result is not reported
}

// ErrBusy is the error of Submit when too many commands wait.
var ErrBusy = fmt.Errorf("control: %d commands wait: try again later", MaxRequests)

// ErrNoCluster is the error of Submit before the founding.
var ErrNoCluster = fmt.Errorf("control: the cluster has not begun")

// Submit asks the leader for a change and returns the number of the command. An
// id other than 0 repeats a command: it is done once, as long as the record
// knows its outcome. The result comes with Ready, as soon as it is known:
// without a leader that is not before there is one. Forget ends the wait.
func (n *Node) Submit(r Request) (Number, error) {
	if n.record == nil {
		return 0, ErrNoCluster
	}
	if r.changes() != 1 {
		return 0, errors.New("control: a command with no change, or with several: want one")
	}
	if err := checkTexts(r.Author, r.Reason, r.describe()); err != nil {
		return 0, fmt.Errorf("control: %w", err)
	}
	if err := n.limits.check(r.Limits); err != nil {
		return 0, fmt.Errorf("control: %w", err)
	}
	if err := checkSize(n.record.entry(&r).Encode()); err != nil {
		return 0, fmt.Errorf("control: %w", err)
	}
	r.ID = cmp.Or(r.ID, n.number())
	n.rights.estimateEnd(&r.Change)
	if n.requests.index(r.ID) >= 0 {
		return r.ID, nil
	}
	if len(n.requests.own) >= MaxRequests {
		return 0, ErrBusy
	}
	n.requests.own = append(n.requests.own, ownRequest{Request: r, due: n.at})
	resolve(n)
	return r.ID, nil
}

// Forget ends the wait for a command. Whether it is done is unknown.
func (n *Node) Forget(id Number) {
	if i := n.requests.index(id); i >= 0 {
		n.requests.own = slices.Delete(n.requests.own, i, i+1)
	}
}

func (q *requests) index(id Number) int {
	return slices.IndexFunc(q.own, func(r ownRequest) bool { return r.ID == id })
}

// finish ends the wait for a command with a result.
func (q *requests) finish(r Result) {
	if i := q.index(r.ID); i >= 0 {
		if !q.own[i].silent {
			q.results = append(q.results, r)
		}
		q.own = slices.Delete(q.own, i, i+1)
	}
}

// resolve finishes the commands whose outcome the record knows.
func resolve(n *Node) {
	for i := 0; i < len(n.requests.own); {
		o := n.record.Outcome(n.requests.own[i].ID)
		if o == nil {
			i++
			continue
		}
		r := Result{ID: o.Request, Version: o.Version}
		if o.Refused != "" {
			r.Err = errors.New(o.Refused)
		}
		n.requests.finish(r)
	}
}

// sendRequests sends the commands that are due to the leader.
func sendRequests(n *Node) {
	for i := range n.requests.own {
		r := &n.requests.own[i]
		if n.at < r.due {
			continue
		}
		r.due = n.at + n.cfg.Retry
		if n.leads() {
			n.requests.enqueue(r.Request)
			continue
		}
		leader := n.leader()
		for _, p := range n.peers {
			// One of the voters leads, also if nothing came from it for long.
			if v := n.record.VoterOf(p.sender.ID); p.heardAt >= 0 && (p.sender.ID == leader || leader == (ID{}) && v != nil) {
				n.send(p, Message{Requests: []Request{r.Request}})
			}
		}
	}
}

// receiveRequests takes the commands of a message.
func receiveRequests(n *Node, p *peer, m *Message) {
	if n.leads() && p.version.Recovery == n.record.Version.Recovery {
		for i := range m.Requests[:min(len(m.Requests), MaxRequests)] {
			n.requests.enqueue(m.Requests[i])
		}
	}
}

// enqueue lets a command wait for its proposal.
func (q *requests) enqueue(r Request) {
	known := func(o Request) bool { return o.ID == r.ID }
	if r.ID == 0 || len(q.queue) >= MaxRequests || r.ID == q.proposed || slices.ContainsFunc(q.queue, known) {
		return
	}
	q.queue = append(q.queue, r)
}

// appended notes the index of the entry that is on its way.
func (q *requests) appended(entries []*raftpb.Entry) {
	for _, e := range entries {
		if q.proposed != 0 && q.entry == 0 && e.GetType() == raftpb.EntryNormal {
			q.entry = e.GetIndex()
		}
	}
}

// proposeNext proposes the next command: one at a time, since each is checked
// against the record that the former one left. While this voter leads, raft
// loses no entry, however long a majority takes to store it: a second entry
// would be void. A command is proposed again only when its entry was void,
// since another change came before it.
func (v *raftNode) proposeNext() {
	n, q := v.node, &v.node.requests
	if !v.leading {
		q.queue, q.proposed = nil, 0
		return
	}
	if q.proposed != 0 && n.record.Outcome(q.proposed) == nil {
		if q.entry == 0 || n.record.Version.Index < q.entry {
			return
		}
		q.queue = slices.Insert(q.queue, 0, q.current)
	}
	q.proposed = 0
	for len(q.queue) > 0 && q.proposed == 0 && v.complete() {
		r := q.queue[0]
		q.queue = q.queue[1:]
		if n.record.Outcome(r.ID) != nil {
			continue
		}
		e, err := prepare(n, &r)
		if err != nil {
			refusal := Command{Request: r.ID}
			if r.Epoch != nil {
				refusal.Author = Rebalancer
			}
			e.Format, e.Refused, e.Change, e.Command = n.record.Format, shorten(err.Error(), maxRefusal), Change{}, refusal
		}
		if v.raw.Propose(e.Encode()) == nil {
			q.proposed, q.current, q.entry = r.ID, r, 0
		}
	}
}

// prepare returns the entry of a command as the leader proposes it, and the
// error with which it refuses the command.
func prepare(n *Node, r *Request) (*Entry, error) {
	e := n.record.entry(r)
	e.Command.At = n.wall
	err := n.limits.lookUpChange(e)
	if err == nil && e.Dead != nil {
		e.Dead, err = n.rights.stampDead(*e.Dead)
	}
	if err == nil && e.Region != nil {
		e.Region, err = n.rights.stampRegion(*e.Region)
	}
	if err == nil && e.Revoke != nil {
		err = refusesRevoke(n, e.Revoke)
	}
	if f := e.Change.Format; err == nil && f != nil && f.Op == RaiseFormat {
		err = n.formats.refusesRaise(f.Format)
	}
	if err == nil && e.Layouts != nil && e.Layouts.Recover != nil {
		e.Layouts = &LayoutChange{}
		e.Layouts.Recover, err = n.layouts.stampRecovery(*r.Layouts.Recover)
	}
	if err == nil {
		e.Command.Text, err = n.record.check(e)
	}
	if err == nil {
		err = checkSize(e.Encode())
	}
	return e, err
}

// revocations is the first format of records with revoked daemons.
const revocations = 2

// revoke makes a change of the revoked daemons at a time in Unix milliseconds.
func (r *Record) revoke(c *revocation.Change, at int64) (err error) {
	if r.Format < revocations {
		return fmt.Errorf("the record has format %d, want %d: it rises when all daemons have read that for a day", r.Format, revocations)
	}
	r.Revoked, err = r.Revoked.After(*c, at)
	return err
}

// refusesRevoke returns why a daemon must not be revoked now, nil if it may be:
// the voters that are live without it must be a majority. A voter that is not
// live may be the revoked daemon.
func refusesRevoke(n *Node, c *revocation.Change) error {
	if c.Undo {
		return nil
	}
	left := 0
	for _, v := range n.record.Voters {
		name := revocation.Name{Region: n.cfg.Region, Daemon: n.cfg.Name}
		p := n.byID(v.Daemon)
		if v.Daemon != n.self.id() {
			if !isLive(n, p) {
				continue
			}
			name = revocation.Name{Region: p.Region, Daemon: p.Name}
		}
		if !v.Learner && name != c.Name && !n.record.Revoked.Has(name) {
			left++
		}
	}
	if all := n.record.Voting(); left <= all/2 {
		return fmt.Errorf("without daemon %s %d of %d voters are live, want %d: start others first, or wait until another one votes", c.Name, left, all, all/2+1)
	}
	return nil
}

// Try returns the text of a command, and the error with which a leader would
// refuse it that knows as much as this daemon.
func (n *Node) Try(r Request) (string, error) {
	if n.record == nil {
		return "", ErrNoCluster
	}
	n.rights.estimateEnd(&r.Change)
	e, err := prepare(n, &r)
	return e.Command.Text, err
}

// complete reports whether the record here has all committed entries: it has
// one of the present term, and all that raft delivered.
func (v *raftNode) complete() bool {
	return v.term == v.raw.BasicStatus().GetTerm() && v.node.record.Version.Index == v.applied
}

// entry returns the entry of a command, without its text and its time.
func (r *Record) entry(q *Request) *Entry {
	return &Entry{
		Format: q.Change.makes(r.Format), Changes: r.Changes, Before: r.Hash(), Change: q.Change,
		Command: Command{Request: q.ID, Author: q.Author, Reason: q.Reason},
	}
}

// shorten cuts a text to a number of bytes.
func shorten(text string, most int) string {
	if text = strings.ToValidUTF8(text, "?"); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

// checkSize returns an error for an entry that is too large.
func checkSize(entry []byte) error {
	if len(entry) > MaxEntryBytes {
		return fmt.Errorf("a change of %d bytes: want at most %d", len(entry), MaxEntryBytes)
	}
	return nil
}

// proposeVoter proposes a change of the voters.
func (v *raftNode) proposeVoter(op raftpb.ConfChangeType, s Voter) {
	data, err := json.Marshal(s)
	if err == nil {
		err = v.raw.ProposeConfChange(&raftpb.ConfChange{Type: &op, NodeId: (*uint64)(&s.Raft), Context: data})
	}
	if err != nil {
		v.node.events.AddOnce(Rejected, "", "voter", err.Error())
	}
}

func decodeVoter(data []byte) (*Voter, error) {
	var s Voter
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("control: voter: %w", err)
	}
	return &s, nil
}
