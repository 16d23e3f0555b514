package control

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// stored is one item on disk. Items are applied in their order. Exactly one
// field is there.
type stored struct {
	Self *storedSelf `json:"self,omitempty"`
	// Base replaces the record. Item is a committed entry of the recovery Log.
	// A journal that was rewritten may hold entries of an earlier recovery, or
	// that the record has.
	Base json.RawMessage `json:"base,omitempty"`
	Log  Recovery        `json:"log,omitzero"`
	Item *Item           `json:"item,omitempty"`
	// Voter is the name in raft of the voter that this daemon is in the
	// recovery Log, 0 for none: a new one has an empty log.
	Voter *Number `json:"voter,omitempty"`
	// Of is the voter that the next ones belong to: another one may have begun
	// before they reach the disk. Snapshot replaces its log, Append are entries
	// of it, Hard is its term, its vote and what it knows to be committed.
	Of       Number    `json:"of,omitzero"`
	Snapshot *snapshot `json:"snapshot,omitempty"`
	Append   *appended `json:"append,omitempty"`
	Hard     *hard     `json:"hard,omitempty"`
	Founding *promise  `json:"founding,omitempty"`
	// Written are the writes of the voters that this daemon knows of.
	Written []Written `json:"written,omitempty"`
	// Dropped are the dropped commands to report.
	Dropped *[]Command `json:"dropped,omitempty"`
	// Emergencies are the emergency overrides.
	Emergencies *[]heldEmergency `json:"emergencies,omitempty"`
	// Former are limits of records whose end a recovery dropped.
	Former *[]Limits `json:"former,omitempty"`
}

// ofVoter reports whether the item is of a voter.
func (s *stored) ofVoter() bool { return s.Voter != nil || s.Of != 0 }

// storedSelf is the daemon as its own disk knows it.
type storedSelf struct {
	Key   storedKey `json:"key"`
	Run   Run       `json:"run"`
	Store uint64    `json:"store"`
	// Holds is the record of rights that the daemon has.
	Holds Holding `json:"holds,omitzero"`
}

// id returns the id, zero for a daemon without a key.
func (i *storedSelf) id() ID {
	if i.Key.Key == nil {
		return ID{}
	}
	return i.Key.ID()
}

// snapshot is the beginning of the log of a voter.
type snapshot struct {
	Index    uint64          `json:"index"`
	Term     uint64          `json:"term"`
	Voters   []uint64        `json:"voters"`
	Learners []uint64        `json:"learners,omitempty"`
	Record   json.RawMessage `json:"record"`
}

// appended is an entry in the log of a voter.
type appended struct {
	Index uint64           `json:"index"`
	Term  uint64           `json:"term"`
	Type  raftpb.EntryType `json:"type"`
	Data  []byte           `json:"data,omitempty"`
}

type hard struct {
	Term   uint64 `json:"term"`
	Vote   uint64 `json:"vote"`
	Commit uint64 `json:"commit"`
}

// maxItem bounds the JSON form of an item on disk: a record, or an entry in
// base64.
const maxItem = maxRecordJSON + 1<<20

// encode returns the bytes of an item.
func (s *stored) encode() []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("control: an item has no JSON form: %v", err)) // all its types have one
	}
	if len(data) <= fastPack {
		return packAt(flate.BestSpeed, data)
	}
	return pack(data)
}

// fastPack is the greatest size of an item on disk that is compressed fast. It
// fits into a record of the journal in any case.
const fastPack = 1 << 20

// Start is the state of a node before it starts, from its disk.
type Start struct {
	reads    int // the newest format
	self     storedSelf
	record   *Record
	log      []Item
	voter    Number
	voterLog Recovery // that it votes in
	storage  *raft.MemoryStorage
	founding promise
	written  []Written
	dropped  []Command

	emergencies []heldEmergency
	former      []Limits
}

// Recover returns the state that stored items add up to. Items of a newer
// format than Config.Format are a *FormatError.
func Recover(items [][]byte, c Config) (*Start, error) {
	s := &Start{storage: raft.NewMemoryStorage(), reads: c.withDefaults().Format}
	for i, data := range items {
		if err := s.apply(data); err != nil {
			return nil, fmt.Errorf("item %d of %d of the control log: %w", i, len(items), err)
		}
	}
	return s, nil
}

func (s *Start) apply(data []byte) error {
	data, err := unpack(data, maxItem)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var in stored
	if err := d.Decode(&in); err != nil {
		return err
	}
	switch {
	case in.Self != nil:
		if in.Self.Key.Key == nil {
			return errors.New("a daemon without a key")
		}
		if in.Self.id() != s.self.id() { // a voter of another id has ended
			s.voter, s.storage = 0, raft.NewMemoryStorage()
		}
		s.self = *in.Self
	case in.Base != nil:
		r, err := DecodeRecord(in.Base, s.reads)
		if err != nil {
			return err
		}
		s.record, s.log = r, nil
	case in.Item != nil:
		return s.applyItem(in.Log, in.Item)
	case in.Voter != nil:
		s.voter, s.voterLog, s.storage = *in.Voter, in.Log, raft.NewMemoryStorage()
	case in.Founding != nil:
		s.founding = *in.Founding
	case in.Dropped != nil:
		s.dropped = (*in.Dropped)[:min(len(*in.Dropped), maxDropped)]
	case in.Emergencies != nil:
		s.emergencies = (*in.Emergencies)[:min(len(*in.Emergencies), MaxEmergencies)]
	case in.Former != nil:
		return s.applyFormer(*in.Former)
	case in.Written != nil:
		s.written = in.Written[:min(len(in.Written), maxWritten)]
	default:
		return s.applyRaft(&in)
	}
	return nil
}

// applyFormer takes limits that a recovery dropped.
func (s *Start) applyFormer(all []Limits) error {
	s.former = all[:min(len(all), maxFormer)]
	for i := range s.former {
		if err := errors.Join(s.former[i].validate(), s.former[i].verify()); err != nil {
			return err
		}
	}
	return nil
}

// applyItem applies a committed entry that follows the record.
func (s *Start) applyItem(log Recovery, it *Item) error {
	if s.record == nil || log == s.record.Version.Recovery && it.Index > s.record.Version.Index+1 {
		return fmt.Errorf("entry %d does not follow the record", it.Index)
	}
	if log != s.record.Version.Recovery || it.Index <= s.record.Version.Index {
		return nil
	}
	next, err := s.record.after(it, s.reads)
	if next == nil {
		return fmt.Errorf("entry %d: %w", it.Index, err)
	}
	s.record, s.log = next, append(s.log, *it)
	return nil
}

// applyRaft applies an item of the log of a voter, unless that has ended.
func (s *Start) applyRaft(in *stored) error {
	if in.Of != s.voter || in.Of == 0 {
		return nil
	}
	last, err := s.storage.LastIndex()
	if err != nil {
		return err
	}
	switch {
	case in.Snapshot != nil:
		if has, err := s.storage.Snapshot(); err == nil && has.GetMetadata().GetIndex() >= in.Snapshot.Index {
			return nil // a rewrite may hold one twice
		}
		if err := s.storage.ApplySnapshot(in.Snapshot.raft()); err != nil {
			return err
		}
		return s.covers(in.Snapshot)
	case in.Append != nil:
		first, err := s.storage.FirstIndex()
		if err != nil {
			return err
		}
		switch a := in.Append; {
		case a.Index > last+1:
			return fmt.Errorf("entry %d after a log from %d to %d", a.Index, first, last)
		case a.Index < first: // a rewrite may hold more
			return nil
		}
		return s.storage.Append([]*raftpb.Entry{in.Append.raft()})
	case in.Hard != nil:
		if in.Hard.Commit > last {
			return fmt.Errorf("committed to %d of a log to %d", in.Hard.Commit, last)
		}
		return s.storage.SetHardState(&raftpb.HardState{Term: &in.Hard.Term, Vote: &in.Hard.Vote, Commit: &in.Hard.Commit})
	}
	return fmt.Errorf("an item without content")
}

// covers makes the hard state cover a snapshot: a write may end between them. A
// vote in the term of the snapshot would be stored, and so the term is.
func (s *Start) covers(in *snapshot) error {
	h, _, err := s.storage.InitialState()
	if err != nil || h.GetCommit() >= in.Index {
		return err
	}
	next := &raftpb.HardState{Term: new(h.GetTerm()), Vote: new(h.GetVote()), Commit: &in.Index}
	if in.Term > h.GetTerm() {
		next.Term, next.Vote = &in.Term, new(uint64)
	}
	return s.storage.SetHardState(next)
}

// resumes reports whether the disk holds a voter that may have sent something:
// it stored a term first. Any other one starts anew. One of an earlier recovery
// than the record has ended.
func (s *Start) resumes() bool {
	if s.voter == 0 || s.record != nil && s.record.Version.Recovery != s.voterLog {
		return false
	}
	h, _, err := s.storage.InitialState()
	return err != nil || h.GetTerm() > 0
}

func (s *snapshot) raft() *raftpb.Snapshot {
	return &raftpb.Snapshot{Data: pack(s.Record), Metadata: &raftpb.SnapshotMetadata{
		Index: &s.Index, Term: &s.Term, ConfState: &raftpb.ConfState{Voters: s.Voters, Learners: s.Learners},
	}}
}

func (a *appended) raft() *raftpb.Entry {
	return &raftpb.Entry{Index: &a.Index, Term: &a.Term, Type: &a.Type, Data: a.Data}
}

// snapshotOf returns the item of a snapshot of a voter, which was checked.
func snapshotOf(of Number, s *raftpb.Snapshot) stored {
	m := s.GetMetadata()
	form, err := unpack(s.GetData(), maxRecordJSON)
	if err != nil {
		panic(fmt.Sprintf("control: a snapshot of raft: %v", err))
	}
	return stored{Of: of, Snapshot: &snapshot{
		Index: m.GetIndex(), Term: m.GetTerm(), Voters: m.GetConfState().GetVoters(),
		Learners: m.GetConfState().GetLearners(), Record: form,
	}}
}

func appendedOf(of Number, e *raftpb.Entry) stored {
	return stored{Of: of, Append: &appended{Index: e.GetIndex(), Term: e.GetTerm(), Type: e.GetType(), Data: e.GetData()}}
}

func hardOf(of Number, h *raftpb.HardState) stored {
	return stored{Of: of, Hard: &hard{Term: h.GetTerm(), Vote: h.GetVote(), Commit: h.GetCommit()}}
}

const (
	// packed is the first byte of packed data. No JSON form begins with it.
	packed = 1
	// packFrom is the least number of bytes that pack compresses.
	packFrom = 4 << 10
)

// pack returns a shorter form of a JSON form for the disk and for messages. The
// result depends on the version of the compressor: it is never hashed or
// compared.
func pack(data []byte) []byte { return packAt(flate.DefaultCompression, data) }

// packAt does the same at a level of compression.
func packAt(level int, data []byte) []byte {
	if len(data) < packFrom {
		return data
	}
	var b bytes.Buffer
	b.WriteByte(packed)
	w, err := flate.NewWriter(&b, level)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("control: %d bytes cannot be packed: %v", len(data), err)) // a buffer takes everything
	}
	return b.Bytes()
}

// unpack returns the JSON form that pack was given, of at most a number of
// bytes.
func unpack(data []byte, most int) ([]byte, error) {
	if len(data) == 0 || data[0] != packed {
		return data, nil
	}
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%d packed bytes: %w", len(data), err)
	case len(out) > most:
		return nil, fmt.Errorf("%d packed bytes: more than %d unpacked, want at most that", len(data), most)
	}
	return out, nil
}
