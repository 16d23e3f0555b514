package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/crdt"
)

// restTicks is the time between two heartbeats to a voter at rest, in
// Config.Heartbeat. It is shorter than an election timeout by some heartbeats,
// so that a voter that lost one gets the next in time.
const restTicks = 6

// sendAll sends messages of raft. Voters at rest get every sixth heartbeat, all
// at the same time: a voter rejects a candidate for an election timeout after
// the latest one, and that must not begin later than at the candidate.
func (v *raftNode) sendAll(messages []*raftpb.Message) {
	beat, beats := v.quiet >= restTicks, false
	for _, m := range messages {
		if m.GetType() == raftpb.MsgHeartbeat && len(m.GetContext()) == 0 {
			beats = true
			if !beat && v.rests(m.GetTo()) {
				continue
			}
		}
		v.send(m)
	}
	if beat && beats {
		v.quiet = 0
	}
}

// rests reports whether a voter has all entries, and has answered the latest
// message to it, for which it has two heartbeats.
func (v *raftNode) rests(voter uint64) (rests bool) {
	p := v.node.byID(v.daemons[Number(voter)])
	if p == nil || p.unanswered && v.node.at-p.raftAt >= v.node.cfg.Heartbeat*3/2 {
		return false
	}
	v.raw.WithProgress(func(id uint64, _ raft.ProgressType, is tracker.Progress) {
		if id == voter {
			rests = is.State == tracker.StateReplicate && is.Match+1 == is.Next
		}
	})
	return rests
}

// send sends a message of raft to a voter, once the log is stored.
func (v *raftNode) send(m *raftpb.Message) {
	n := v.node
	v.addCommit(m)
	if p := n.byID(v.daemons[Number(m.GetTo())]); p != nil {
		p.raftAt, p.unanswered = n.at, true
		n.hold(p, Message{Log: v.log, Raft: []*raftpb.Message{m}})
	} else {
		n.afterStore(func() { v.raw.ReportUnreachable(m.GetTo()) })
	}
	if m.GetType() == raftpb.MsgSnap { // it is sent again if the next probe fails
		n.afterStore(func() { v.raw.ReportSnapshot(m.GetTo(), raft.SnapshotFinish) })
	}
}

// receiveRaft handles the messages of another voter.
func receiveRaft(n *Node, p *peer, m *Message) {
	for _, r := range m.Raft {
		v := n.raft
		if v == nil || v.log != m.Log || r.GetTo() != uint64(v.id) {
			return
		}
		if v.stalled() {
			return
		}
		err := v.check(p, r)
		if f, newer := errors.AsType[*FormatError](err); newer {
			n.formats.leaveUnread(v.log, f)
			return
		}
		if err != nil {
			n.events.AddOnce(Rejected, p.Name, "raft", err.Error())
			continue
		}
		p.unanswered = false
		if !v.learnCommit(r) {
			v.step(r)
		}
	}
}

// answersVote reports whether a message grants or rejects a vote.
func answersVote(m *raftpb.Message) bool {
	return m.GetType() == raftpb.MsgVoteResp || m.GetType() == raftpb.MsgPreVoteResp
}

// addCommit adds the last entry that is known to be committed to the answer to
// a candidate, see learnCommit. raft does not read these fields of an answer.
func (v *raftNode) addCommit(m *raftpb.Message) {
	if !answersVote(m) {
		return
	}
	if h, _, err := v.storage.InitialState(); err == nil {
		if term, err := v.storage.Term(h.GetCommit()); err == nil {
			m.Commit, m.LogTerm = new(h.GetCommit()), &term
		}
	}
}

// learnCommit takes the committed entry of the answer to a candidate, and
// restarts raft with it if that is new. It returns true if it did. raft learns
// what is committed from leaders alone. If none is left, a candidate that has
// the removal of a voter in its log may not know that this is committed, and
// still need its vote. The removed voter rejects it if it has further entries,
// and cannot lead itself: nobody would ever be elected. Logs with an entry of
// the same index and term are equal up to it.
func (v *raftNode) learnCommit(r *raftpb.Message) bool {
	if !answersVote(r) || v.busy || v.leader() || v.raw.HasReady() {
		return false
	}
	n, is, commit := v.node, v.raw.BasicStatus(), r.GetCommit()
	if term, err := v.storage.Term(commit); err != nil || term != r.GetLogTerm() || commit <= is.GetCommit() {
		return false
	}
	next := raftpb.HardState{Term: new(is.GetTerm()), Vote: new(is.GetVote()), Commit: &commit}
	if err := v.storage.SetHardState(&next); err != nil {
		return false
	}
	n.queue(hardOf(v.id, &next))
	if err := n.startRaft(v.id, v.storage); err != nil {
		n.events.Add(Rejected, "", err.Error())
		return false
	}
	n.raft.unled, n.raft.removed, n.raft.due = v.unled, v.removed, v.due
	maps.Copy(n.raft.daemons, v.daemons)
	return true
}

// check returns an error for a message that its sender may not send to this
// voter. It notes the daemon of a voter that is not known yet.
func (v *raftNode) check(p *peer, r *raftpb.Message) error {
	from := Number(r.GetFrom())
	if is, known := v.daemons[from]; known && is != p.sender.ID {
		return fmt.Errorf("message of voter %v, which is %v", from, is)
	} else if !known && len(v.daemons) < 2*maxDaemons {
		v.daemons[from] = p.sender.ID
	}
	if err := checkRaft(r); err != nil || r.GetType() != raftpb.MsgSnap {
		return err
	}
	s, err := checkSnapshot(r.GetSnapshot(), v.node.cfg.Format)
	if err == nil && (s.Cluster.ID != v.node.record.Cluster.ID || s.Version.Recovery != v.log) {
		err = fmt.Errorf("snapshot of cluster %v and recovery %v", s.Cluster.ID, s.Version.Recovery)
	}
	return err
}

// step hands a message to raft.
func (v *raftNode) step(r *raftpb.Message) {
	v.guard(func() error {
		was := v.raw.BasicStatus()
		_ = v.raw.Step(r) // an error drops the message
		is := v.raw.BasicStatus()
		leads := r.GetType() == raftpb.MsgHeartbeat || r.GetType() == raftpb.MsgApp || r.GetType() == raftpb.MsgSnap
		leads = leads && r.GetTerm() >= is.GetTerm()
		v.unled = v.unled && !leads
		if leads { // it may be silent at rest
			v.postpone(electionTicks + restTicks/3)
		} else if is.GetVote() != was.GetVote() && is.GetVote() != uint64(v.id) {
			v.postpone(electionTicks)
		}
		return nil
	})
}

// postpone draws the time of the next election, not before a number of
// heartbeats.
func (v *raftNode) postpone(least int) {
	n := v.node
	v.due = n.at + n.between(time.Duration(least)*n.cfg.Heartbeat, 2*n.cfg.election())
}

// checkRaft returns an error for a message that no voter sends, and on which
// raft could panic.
func checkRaft(m *raftpb.Message) error {
	switch m.GetType() {
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgSnap, raftpb.MsgHeartbeat,
		raftpb.MsgHeartbeatResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp:
	default:
		return fmt.Errorf("message of type %v between voters", m.GetType())
	}
	if m.GetTerm() == 0 {
		return fmt.Errorf("%v of term 0", m.GetType())
	}
	if len(m.GetEntries()) > 0 && m.GetType() != raftpb.MsgApp || m.GetSnapshot() != nil && m.GetType() != raftpb.MsgSnap {
		return fmt.Errorf("%v with entries or a snapshot", m.GetType())
	}
	for i, e := range m.GetEntries() {
		if e.GetIndex() != m.GetIndex()+uint64(i)+1 || e.GetTerm() == 0 || e.GetTerm() > m.GetTerm() {
			return fmt.Errorf("entry %d of term %d at place %d after %d in term %d", e.GetIndex(), e.GetTerm(), i, m.GetIndex(), m.GetTerm())
		}
		if err := checkEntry(e); err != nil {
			return err
		}
	}
	heartbeat := m.GetType() == raftpb.MsgHeartbeat || m.GetType() == raftpb.MsgHeartbeatResp
	if n := len(m.GetContext()); heartbeat && n != 0 && n != 8 {
		return fmt.Errorf("%v with a context of %d bytes: want 0 or 8", m.GetType(), n)
	}
	return nil
}

// checkSnapshot returns the record of a snapshot, and an error for one that no
// leader sends.
func checkSnapshot(s *raftpb.Snapshot, reads int) (*Record, error) {
	r, err := unpackRecord(s.GetData(), reads)
	if err != nil {
		return nil, err
	}
	at := s.GetMetadata()
	if at.GetIndex() != r.Version.Index || at.GetTerm() == 0 {
		return nil, fmt.Errorf("snapshot of index %d and term %d with version %v", at.GetIndex(), at.GetTerm(), r.Version)
	}
	var voters, learners []uint64
	for _, o := range r.Voters {
		if o.Learner {
			learners = append(learners, uint64(o.Raft))
		} else {
			voters = append(voters, uint64(o.Raft))
		}
	}
	c := at.GetConfState()
	joint := len(c.GetVotersOutgoing())+len(c.GetLearnersNext()) > 0 || c.GetAutoLeave()
	if joint || !slices.Equal(slices.Sorted(slices.Values(c.GetVoters())), voters) ||
		!slices.Equal(slices.Sorted(slices.Values(c.GetLearners())), learners) {
		return nil, fmt.Errorf("snapshot with the voters %v and the learners %v: the record has %v and %v", c.GetVoters(), c.GetLearners(), voters, learners)
	}
	return r, nil
}

// checkEntry returns an error for an entry that no leader proposes.
func checkEntry(e *raftpb.Entry) (err error) {
	switch e.GetType() {
	case raftpb.EntryNormal:
		err = checkSize(e.GetData())
	case raftpb.EntryConfChange:
		_, _, err = decodeChange(e.GetData())
	default:
		err = fmt.Errorf("entry of type %v", e.GetType())
	}
	return err
}

// maxAsks bounds the questions without an answer.
const maxAsks = 256

// ask asks raft for the index up to which everything was committed before now.
func (v *raftNode) ask(from crdt.Incarnation, ask Number) {
	if v.stalled() || v.asks >= maxAsks || !v.leader() { // raft of a follower would send it on, of term 0
		return // it asks again
	}
	v.asks++
	ctx := binary.BigEndian.AppendUint64(nil, uint64(from))
	v.raw.ReadIndex(binary.BigEndian.AppendUint64(ctx, uint64(ask)))
}

// answer sends an answer of raft to the daemon that asked.
func (v *raftNode) answer(s raft.ReadState) {
	v.asks = 0
	if len(s.RequestCtx) != 16 {
		return
	}
	n, from := v.node, crdt.Incarnation(binary.BigEndian.Uint64(s.RequestCtx))
	t := &Answer{Number(binary.BigEndian.Uint64(s.RequestCtx[8:])), Version{n.record.Version.Recovery, s.Index}}
	if from == n.address {
		n.confirmation.answered(t)
	} else if p := n.peer(from); p != nil {
		n.send(p, Message{Answer: t})
	}
}

// decodeChange reads a change of the voters.
func decodeChange(data []byte) (*raftpb.ConfChange, *Voter, error) {
	var c raftpb.ConfChange
	if err := proto.Unmarshal(data, &c); err != nil {
		return nil, nil, fmt.Errorf("control: change of the voters: %w", err)
	}
	voter, err := decodeVoter(c.GetContext())
	return &c, voter, err
}
