package control

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// raftNode is the part of a daemon in raft: a voter of the record.
//
// raft draws its election timeout from a random source of its own. It is never
// read: ticks of a leader count heartbeats, those of others only the lease of
// their leader (TickQuiesced), and elections come from due.
type raftNode struct {
	node    *Node
	id      Number
	log     Recovery
	raw     *raft.RawNode
	storage *raft.MemoryStorage
	conf    *raftpb.ConfState
	applied uint64 // the last index that raft delivered
	term    uint64 // of the entry there
	busy    bool   // a Ready is being stored
	dated   bool   // the snapshot lacks a voter, which would refuse it
	leading bool
	unled   bool   // an election was due since the last message of a leader
	asks    int    // since the last answer
	quiet   int    // ticks of a leader since the last heartbeat to all
	removed uint64 // index at which the record lost this voter, 0 if it did not
	// daemons are those of the voters, also of some that are removed: others
	// may not know yet that they are.
	daemons map[Number]ID

	ticked  time.Duration
	due     time.Duration            // of an election
	began   map[Number]time.Duration // when a learner was first seen
	learned map[Number]time.Duration // since when a learner is up to date
	failed  map[ID]time.Duration     // when a learner was given up
}

// electionTicks is the least election timeout in heartbeats. The greatest is
// twice as long.
const electionTicks = 10

// maxTicks bounds the ticks that a process catches up after a pause.
const maxTicks = 2 * electionTicks

// startRaft starts a voter with a log.
func (n *Node) startRaft(id Number, storage *raft.MemoryStorage) error {
	_, conf, err := storage.InitialState()
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	first, err := storage.FirstIndex()
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	v := &raftNode{
		node: n, id: id, log: n.record.Version.Recovery, storage: storage, conf: conf, applied: first - 1, ticked: n.at,
		daemons: map[Number]ID{},
	}
	v.forget()
	v.meet(n.record)
	if last, err := storage.LastIndex(); err == nil && last >= first {
		entries, _ := storage.Entries(first, last+1, 1<<62)
		v.meetIn(entries)
	}
	_, err = guard(func() (err error) {
		v.raw, err = raft.NewRawNode(&raft.Config{
			ID: uint64(id), ElectionTick: electionTicks, HeartbeatTick: 1, Storage: storage, Applied: v.applied,
			MaxSizePerMsg: fillBytes, MaxInflightMsgs: 64, MaxUncommittedEntriesSize: 4 * MaxEntryBytes,
			CheckQuorum: true, PreVote: true, DisableProposalForwarding: true, StepDownOnRemoval: true, Logger: silent{},
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	n.raft = v
	v.postpone(electionTicks)
	return nil
}

// resumeRaft starts the voter that the disk holds.
func resumeRaft(n *Node, s *Start) error {
	if n.record == nil {
		return fmt.Errorf("control: a voter without a record")
	}
	// The record of a snapshot is stored after it.
	if snap, err := s.storage.Snapshot(); err == nil && len(snap.GetData()) > 0 {
		r, err := unpackRecord(snap.GetData(), n.cfg.Format)
		if err != nil {
			return fmt.Errorf("control: %w", err)
		}
		if r.Version.Recovery == n.record.Version.Recovery && r.Version.Index > n.record.Version.Index {
			n.record, n.log = r, nil
			n.queue(stored{Base: r.Encode()})
		}
	}
	return n.startRaft(s.voter, s.storage)
}

// meet notes the daemons of the voters of a record.
func (v *raftNode) meet(r *Record) {
	for _, o := range r.Voters {
		v.daemons[o.Raft] = o.Daemon
	}
	for id := range v.daemons { // removed ones are needed for a while
		if len(v.daemons) > maxDaemons && r.Voter(id) == nil {
			delete(v.daemons, id)
		}
	}
}

// meetIn notes the daemons of the voters that entries add or remove.
func (v *raftNode) meetIn(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetType() == raftpb.EntryConfChange {
			if _, o, err := decodeChange(e.GetData()); err == nil {
				v.daemons[o.Raft] = o.Daemon
			}
		}
	}
}

// maxDaemons bounds the voters whose daemons are known.
const maxDaemons = 32

// followVoters starts or stops the voter of this daemon, to match the record.
func (n *Node) followVoters() {
	if n.record == nil {
		return
	}
	is := n.record.VoterOf(n.self.id())
	if v := n.raft; v != nil && (v.log != n.record.Version.Recovery || (is == nil || is.Raft != v.id) && v.released()) {
		if v.leading {
			v.lead(false)
		}
		n.raft = nil
		n.queue(stored{Voter: new(Number)})
	}
	if n.raft != nil || is == nil || !n.cfg.Durable || n.abstains != "" {
		return
	}
	if lostVoter(n.record, is) {
		n.runs.end(is.Daemon, "its disk lacks the log of its voter")
		return
	}
	storage := raft.NewMemoryStorage()
	n.queue(stored{Voter: &is.Raft, Log: n.record.Version.Recovery})
	if r := n.record; r.Version.Index == r.First { // all first voters begin with the same snapshot
		s := &snapshot{Index: r.First, Term: 1, Record: r.Encode()}
		for _, o := range r.Voters {
			s.Voters = append(s.Voters, uint64(o.Raft))
		}
		first := raftpb.HardState{Term: &s.Term, Vote: new(uint64), Commit: &s.Index}
		n.queue(stored{Of: is.Raft, Snapshot: s})
		n.queue(hardOf(is.Raft, &first))
		if err := errors.Join(storage.ApplySnapshot(s.raft()), storage.SetHardState(&first)); err != nil {
			n.events.Add(Rejected, "", err.Error())
			return
		}
	}
	if err := n.startRaft(is.Raft, storage); err != nil {
		n.events.Add(Rejected, "", err.Error())
	}
}

// released reports whether a majority of the voters of the record know that
// this one is removed. Until then they may need its vote: raft counts a voter
// until its removal is known to be committed.
func (v *raftNode) released() bool {
	n, know := v.node, 0
	if v.removed == 0 {
		v.removed = n.record.Version.Index
	}
	for _, o := range n.record.Voters {
		p := n.byID(o.Daemon)
		if !o.Learner && (o.Daemon == n.self.id() || p != nil && p.version.Recovery == v.log && p.sender.Applied >= v.removed) {
			know++
		}
	}
	return 2*know > n.record.Voting()
}

// snapshot adds the items that restore the voter.
func (v *raftNode) snapshot(add func(stored)) {
	add(stored{Voter: &v.id, Log: v.log})
	first, _ := v.storage.FirstIndex()
	if s, err := v.storage.Snapshot(); err == nil && s.GetMetadata().GetIndex() > 0 {
		add(snapshotOf(v.id, s))
		first = s.GetMetadata().GetIndex() + 1
	}
	last, _ := v.storage.LastIndex()
	if last >= first {
		entries, err := v.storage.Entries(first, last+1, 1<<62)
		for i := 0; err == nil && i < len(entries); i++ {
			add(appendedOf(v.id, entries[i]))
		}
	}
	if h, _, err := v.storage.InitialState(); err == nil && !raft.IsEmptyHardState(h) {
		add(hardOf(v.id, h))
	}
}

// leads reports whether this daemon leads the log.
func (n *Node) leads() bool { return n.raft != nil && n.raft.leading }

// Leads reports whether this daemon leads the control log.
func (n *Node) Leads() bool { return n.leads() }

// turnRaft runs the timers of the voter and does its work.
func (n *Node) turnRaft() {
	n.followVoters()
	v := n.raft
	if v == nil {
		return
	}
	v.guard(v.tick)
	for range MaxRaft {
		if n.raft != v || v.busy {
			break
		}
		v.proposeNext()
		if !v.raw.HasReady() {
			break
		}
		v.guard(v.handle)
	}
}

// tick lets the time pass in raft, and begins an election that is due.
func (v *raftNode) tick() error {
	n := v.node
	if v.stalled() {
		return nil
	}
	for range maxTicks {
		if v.ticked+n.cfg.Heartbeat > n.at {
			break
		}
		v.ticked += n.cfg.Heartbeat
		if v.leader() {
			v.raw.Tick()
			v.quiet++
		} else {
			v.raw.TickQuiesced() //nolint:staticcheck // see raftNode
		}
	}
	v.ticked = max(v.ticked, n.at-n.cfg.Heartbeat)
	if n.at < v.due {
		return nil
	}
	v.postpone(electionTicks)
	if v.leader() {
		return nil
	}
	v.unled = true
	return v.raw.Campaign()
}

// stalled reports whether the disk fails: raft would collect messages that
// cannot be sent. For others this voter is away.
func (v *raftNode) stalled() bool { return v.busy && v.node.disk.failing != nil }

// leader reports whether raft leads now, before it is stored.
func (v *raftNode) leader() bool { return v.raw.BasicStatus().RaftState == raft.StateLeader }

// handle stores a Ready of raft, and then sends its messages and applies it.
func (v *raftNode) handle() error {
	n, rd := v.node, v.raw.Ready()
	if !raft.IsEmptySnap(rd.Snapshot) {
		n.queue(snapshotOf(v.id, rd.Snapshot))
	}
	v.meetIn(rd.Entries)
	n.requests.appended(rd.Entries)
	for _, e := range rd.Entries {
		n.queue(appendedOf(v.id, e))
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		n.queue(hardOf(v.id, rd.HardState))
	}
	v.busy = true
	v.sendAll(rd.Messages)
	n.afterStore(func() {
		switch v {
		case n.raft:
			v.guard(func() error { return v.advance(&rd) })
			v.busy = false
		case n.stopped: // the disk has it, and must keep it
			_, _ = guard(func() error { return v.keep(&rd) })
		}
	})
	return nil
}

// keep takes what is stored into the state that the disk is rewritten from.
func (v *raftNode) keep(rd *raft.Ready) error {
	if !raft.IsEmptySnap(rd.Snapshot) {
		if err := v.storage.ApplySnapshot(rd.Snapshot); err != nil {
			return err
		}
	}
	if err := v.storage.Append(rd.Entries); err != nil {
		return err
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		return v.storage.SetHardState(rd.HardState)
	}
	return nil
}

// advance takes over a Ready that is stored.
func (v *raftNode) advance(rd *raft.Ready) error {
	n := v.node
	if err := v.keep(rd); err != nil {
		return err
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		if err := v.restore(rd.Snapshot); err != nil {
			return err
		}
	}
	if rd.SoftState != nil && (rd.SoftState.RaftState == raft.StateLeader) != v.leading {
		v.lead(!v.leading)
	}
	before := n.record.Version.Index
	for _, e := range rd.CommittedEntries {
		if err := v.committed(e); err != nil {
			return err
		}
	}
	for _, s := range rd.ReadStates {
		v.answer(s)
	}
	v.raw.Advance(*rd)
	if n.record.Version.Index > before {
		v.quiet = restTicks // the next heartbeat repeats what is committed
		push(n, before)
	}
	return v.compact()
}

// restore takes over a snapshot of the leader.
func (v *raftNode) restore(s *raftpb.Snapshot) error {
	at := s.GetMetadata()
	v.conf, v.applied, v.term, v.dated = at.GetConfState(), at.GetIndex(), at.GetTerm(), false
	r, err := unpackRecord(s.GetData(), v.node.cfg.Format)
	if err != nil {
		return err
	}
	v.meet(r)
	if r.Version.Compare(v.node.record.Version) > 0 {
		v.node.adopt(r)
	}
	return nil
}

// forget drops the observations of a former leadership.
func (v *raftNode) forget() {
	v.node.missing = map[Number]time.Duration{}
	v.began, v.learned, v.failed = map[Number]time.Duration{}, map[Number]time.Duration{}, map[ID]time.Duration{}
}

// lead notes that this daemon leads the log, or does so no more.
func (v *raftNode) lead(is bool) {
	v.leading, v.asks = is, 0
	v.forget()
	if is { // the record of the leader is the one that counts
		v.node.diverged = false
	}
	v.node.requests.proposed = 0
	text := "this daemon leads"
	if !is {
		text = "this daemon leads no more"
	}
	v.node.events.Add(LeaderChanged, "", text)
}

// committed applies an entry of raft.
func (v *raftNode) committed(e *raftpb.Entry) error {
	it := Item{Index: e.GetIndex()}
	if e.GetType() == raftpb.EntryConfChange {
		c, voter, err := decodeChange(e.GetData())
		if err != nil {
			return err
		}
		it.Voter, it.Remove = voter, c.GetType() == raftpb.ConfChangeRemoveNode
		v.conf, v.dated = v.raw.ApplyConfChange(c), true
	} else {
		it.Entry = e.GetData()
	}
	v.applied, v.term = e.GetIndex(), e.GetTerm()
	if it.Index == v.node.record.Version.Index+1 {
		v.node.apply(&it)
	}
	if n := v.node; it.Voter != nil && n.record.Voting()%2 == 0 { // a majority of them is one more
		n.due.place = n.at
	}
	return nil
}

// compact makes a snapshot for voters that lag, and drops entries that it
// contains. The disk is compacted by its driver.
func (v *raftNode) compact() error {
	n := v.node
	first, err := v.storage.FirstIndex()
	full := v.applied >= first+uint64(2*n.cfg.Entries)
	if err != nil || n.record.Version.Index != v.applied || !v.dated && !full {
		return err
	}
	if _, err = v.storage.CreateSnapshot(v.applied, v.conf, n.form.packed(n.record)); err != nil {
		return err
	}
	v.dated = false
	if !full {
		return nil
	}
	return v.storage.Compact(v.applied - uint64(n.cfg.Entries))
}

// guard runs a step of raft. raft reports by its logger that its log
// contradicts a message: the disk then lacks entries that were acknowledged.
// After any other fault the voter stops.
func (v *raftNode) guard(step func() error) {
	switch old, err := guard(step); {
	case v.node.raft != v || err == nil:
	case old:
		v.node.runs.end(v.node.self.id(), err.Error())
	default:
		v.node.abstain(err.Error())
	}
}

// contradiction is the panic value of silent.
type contradiction string

// guard turns a panic into an error, and reports whether raft's logger made it.
func guard(step func() error) (old bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			_, old = p.(contradiction)
			err = fmt.Errorf("%v", p)
		}
	}()
	return false, step()
}

// abstain stops the voter of this daemon until the next start. The daemon gives
// its vote away, and follows the log as far as it can.
func (n *Node) abstain(why string) {
	n.abstains = why
	if n.raft != nil {
		n.raft, n.stopped = nil, n.raft
	}
	n.events.AddOnce(Abstains, "", why, why)
}

// silent is a logger of raft. It panics where raft does.
type silent struct{}

func (silent) Debug(...any)              {}
func (silent) Debugf(string, ...any)     {}
func (silent) Info(...any)               {}
func (silent) Infof(string, ...any)      {}
func (silent) Warning(...any)            {}
func (silent) Warningf(string, ...any)   {}
func (silent) Error(...any)              {}
func (silent) Errorf(string, ...any)     {}
func (silent) Fatal(v ...any)            { panic(contradiction(fmt.Sprint(v...))) }
func (silent) Fatalf(f string, v ...any) { panic(contradiction(fmt.Sprintf(f, v...))) }
func (silent) Panic(v ...any)            { panic(contradiction(fmt.Sprint(v...))) }
func (silent) Panicf(f string, v ...any) { panic(contradiction(fmt.Sprintf(f, v...))) }
