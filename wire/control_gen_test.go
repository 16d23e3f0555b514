package wire

import (
	"bytes"

	"go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky/route"
)

// exampleControl is a comparison of versions with a daemon that has no
// statement of the sender.
func exampleControl() *control.Message {
	return &control.Message{
		From: 0x1111111111111111, To: 0x2222222222222222,
		Statement: control.Statement{
			Sender: control.Sender{
				ID: control.ID(bytes.Repeat([]byte{0x33}, 16)), Run: control.Run(bytes.Repeat([]byte{0x44}, 16)), Store: 1_000_000, Durable: true,
				Leader: control.ID(bytes.Repeat([]byte{0x55}, 16)), Began: 900_000, Applied: 1_000_000, Format: 1, Clock: 1_767_744_000_000,
				Heard: 7, HeardOf: 0x7777777777777777, Files: 0x8888888888888888, Acceptor: &control.AcceptorReport{
					Number: 100, Log: route.Log{Random: 0x6666666666666666}, Copied: true, Store: 1_767_744_000_000,
				},
			},
			Cluster: 0x6666666666666666,
			Version: control.Version{Recovery: control.Recovery{Random: 0x6666666666666666}, Index: 1_000_000},
			Hash:    0x99999999,
		},
		State: 1, Known: 1,
	}
}

// exampleRest is a comparison of versions without a change.
func exampleRest() *control.Message {
	m := exampleControl()
	m.State, m.Known, m.Since, m.Sender.Clock = 120, 90, 120, 100_000
	return m.Without()
}

// exampleBeat is a heartbeat of a leader without a change.
func exampleBeat() *control.Message {
	m := exampleRest()
	m.Raft, m.Sender.Voter, m.ToVoter = exampleHeartbeat().Raft, 0x7777777777777777, 0x8888888888888888
	return m
}

// exampleEntries is a message about a voter that was added.
func exampleEntries() *control.Message {
	m := exampleRest()
	m.Entries = []control.Item{{Index: 30, Voter: &control.Voter{Raft: 0x7777777777777777, Daemon: control.ID(bytes.Repeat([]byte{0x33}, 16)), Region: "us", Learner: true}}}
	return m
}

// exampleHeartbeat is a heartbeat of a leader.
func exampleHeartbeat() *control.Message {
	m := exampleControl()
	m.Raft = []*raftpb.Message{{
		Type: new(raftpb.MsgHeartbeat), From: new(uint64(0x7777777777777777)), To: new(uint64(0x8888888888888888)),
		Term: new(uint64(100)), Commit: new(uint64(1_000_000)),
	}}
	return m
}

// The generators of messages as nodes send them. Lists are nil or not empty, as
// decoding makes them.

func genControlID(t *rapid.T, what string) control.ID {
	return control.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, what))
}

func genControlRun(t *rapid.T) control.Run { return control.Run(genControlID(t, "run")) }

func genControlBytes(t *rapid.T, what string) []byte {
	return rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, what)
}

func genControlNumber(t *rapid.T, what string) control.Number {
	return control.Number(rapid.Uint64().Draw(t, what))
}

func genControlVersion(t *rapid.T, what string) control.Version {
	return control.Version{
		Recovery: control.Recovery{Number: rapid.Uint32().Draw(t, what), Random: genControlNumber(t, what)},
		Index:    rapid.Uint64().Draw(t, what),
	}
}

func genControlChange(t *rapid.T) control.Change {
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 3:
		v := genControlVersion(t, "if")
		return control.Change{Limits: &control.LimitsChange{Rules: &control.RulesChange{
			Set: &control.RuleSet{Hash: rapid.String().Draw(t, "hash"), Bytes: 3, Data: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "data")}, If: &v,
		}}}
	case 4:
		o := &control.OverrideChange{Unset: rapid.Bool().Draw(t, "unset")}
		o.Target, o.Setting = genTarget(t), control.Setting{Requests: new(rapid.Uint32().Draw(t, "requests"))}
		return control.Change{Limits: &control.LimitsChange{Override: o}}
	case 5:
		return control.Change{Dead: &control.DeadID{ID: genControlID(t, "id"), From: rapid.Int64().Draw(t, "from"), Until: rapid.Int64().Draw(t, "until")}}
	case 0:
		return control.Change{Dropped: &control.Command{
			Request: genControlNumber(t, "request"), Version: genControlVersion(t, "version"), At: rapid.Int64().Draw(t, "at"),
			Author: rapid.String().Draw(t, "author"), Text: rapid.String().Draw(t, "text"),
		}}
	case 1:
		return control.Change{Note: &control.Note{Text: rapid.String().Draw(t, "text")}}
	}
	return control.Change{Region: &control.RegionChange{
		Op: control.WeighRegion, Name: rapid.String().Draw(t, "region"), Weight: rapid.Uint32().Draw(t, "weight"),
	}}
}

func genTarget(t *rapid.T) control.Target {
	return control.Target{Domain: "d", Rule: rapid.String().Draw(t, "rule"), RuleID: genControlNumber(t, "rule id"), Window: rapid.Int64().Draw(t, "window")}
}

func genControlItem(t *rapid.T) control.Item {
	it := control.Item{Index: rapid.Uint64().Draw(t, "index")}
	switch rapid.IntRange(0, 2).Draw(t, "item") {
	case 1:
		e := control.Entry{Format: 1, Before: rapid.String().Draw(t, "before"), Change: genControlChange(t)}
		it.Entry = e.Encode()
	case 2:
		it.Voter = &control.Voter{Raft: genControlNumber(t, "raft"), Daemon: genControlID(t, "daemon"), Region: rapid.String().Draw(t, "region")}
		it.Remove = rapid.Bool().Draw(t, "remove")
	}
	return it
}

func genControlFounding(t *rapid.T) *control.FoundingMessage {
	ballot := func(what string) control.Ballot {
		return control.Ballot{Round: rapid.Uint64().Draw(t, what), Proposer: genControlID(t, what)}
	}
	m := &control.FoundingMessage{
		Founders: []string{"a", "b"}, Step: "promise", Ballot: ballot("ballot"), Promised: ballot("promised"), Accepted: ballot("accepted"),
	}
	if rapid.Bool().Draw(t, "value") {
		m.Value = &control.Founding{
			Cluster: genControlNumber(t, "cluster"), Begun: rapid.Int64().Draw(t, "begun"), From: rapid.Int64().Draw(t, "from"),
			Regions: []control.FirstRegion{{Name: rapid.String().Draw(t, "region"), Weight: rapid.Uint32().Draw(t, "weight")}},
		}
		for range rapid.IntRange(0, control.MaxFounders).Draw(t, "founders") {
			m.Value.Founders = append(m.Value.Founders, control.Founder{
				Name: rapid.String().Draw(t, "name"), Daemon: genControlID(t, "daemon"), Raft: genControlNumber(t, "raft"),
			})
		}
	}
	return m
}

func genControlRaft(t *rapid.T) *raftpb.Message {
	number := func(least uint64, what string) *uint64 {
		return some(new(rapid.Uint64Range(least, 1<<63).Draw(t, what)))
	}
	r := &raftpb.Message{
		Type: new(rapid.SampledFrom([]raftpb.MessageType{
			raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgPreVote, raftpb.MsgSnap, raftpb.MsgHeartbeat, raftpb.MsgReadIndex,
		}).Draw(t, "type")),
		From: number(1, "from"), To: number(1, "to"), Term: number(0, "term"), Index: number(0, "index"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "raft entries") {
		r.Entries = append(r.Entries, &raftpb.Entry{
			Index: number(0, "index"), Term: number(0, "term"), Type: new(raftpb.EntryConfChange),
			Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
		})
	}
	if rapid.Bool().Draw(t, "snapshot") {
		r.Snapshot = &raftpb.Snapshot{
			Data:     []byte("{}"),
			Metadata: &raftpb.SnapshotMetadata{Index: number(0, "index"), ConfState: &raftpb.ConfState{Voters: []uint64{1, 1 << 63}}},
		}
		r.Context = []byte("context")
	}
	return r
}

func genControlNonce(t *rapid.T) *control.Nonce {
	return &control.Nonce{Number: genControlNumber(t, "nonce"), ID: genControlID(t, "id"), Run: genControlRun(t)}
}

// genControlAcceptor returns the state of an acceptor, nil for none. One with
// an unknown layout is in the header.
func genControlAcceptor(t *rapid.T) *control.AcceptorReport {
	a := &control.AcceptorReport{
		Number: rapid.Uint64().Draw(t, "layout"), Log: route.Log{Number: rapid.Uint64().Draw(t, "log"), Random: rapid.Uint64().Draw(t, "random")},
		Copied: rapid.Bool().Draw(t, "copied"), Failing: rapid.Bool().Draw(t, "failing"), Store: rapid.Uint64().Draw(t, "store"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "acceptor") {
	case 0:
		return nil
	case 1:
		a.Unknown = &route.Layout{Number: rapid.Uint64().Draw(t, "unknown")}
	}
	return a
}

func genControl(t *rapid.T) *control.Message {
	m := &control.Message{
		From: crdt.Incarnation(rapid.Uint64Min(1).Draw(t, "from")), To: crdt.Incarnation(rapid.Uint64Min(1).Draw(t, "to")),
		Statement: control.Statement{
			Sender: control.Sender{
				ID: genControlID(t, "id"), Run: genControlRun(t), Store: rapid.Uint64().Draw(t, "store"),
				Durable: rapid.Bool().Draw(t, "durable"), Leaving: rapid.Bool().Draw(t, "leaving"),
				Began:    rapid.Uint64().Draw(t, "began"),
				Applied:  rapid.Uint64().Draw(t, "applied"),
				Starting: rapid.Bool().Draw(t, "starting"), Majority: rapid.Bool().Draw(t, "majority"), Leader: genControlID(t, "leader"),
				Heard: genControlNumber(t, "heard"), HeardOf: genControlNumber(t, "heard of"),
				Witness: rapid.Bool().Draw(t, "witness"), Format: rapid.Int().Draw(t, "format"), Clock: rapid.Int64().Draw(t, "clock"),
				Files: genControlNumber(t, "files"), Voter: genControlNumber(t, "voter"), Acceptor: genControlAcceptor(t),
			},
			Cluster: genControlNumber(t, "cluster"), Version: genControlVersion(t, "version"), Hash: rapid.Uint32().Draw(t, "hash"),
		},
		Want: rapid.Bool().Draw(t, "want"), Ask: genControlNumber(t, "ask"),
	}
	if rapid.Bool().Draw(t, "limits") {
		m.Sender.Stored, m.Sender.Region, m.Sender.Emergencies = genControlVersion(t, "stored"), genControlVersion(t, "of the region"), genControlNumber(t, "emergencies")
		for range rapid.IntRange(0, 2).Draw(t, "waits") {
			m.Sender.Waits = append(m.Sender.Waits, rapid.String().Draw(t, "waits for"))
		}
		m.Emergencies = []control.Emergency{{
			ID: genControlNumber(t, "emergency"), Target: genTarget(t), Setting: control.Setting{Mode: control.ModeEnforce, Block: true},
			Until: rapid.Int64().Draw(t, "until"), Author: rapid.String().Draw(t, "author"), Signature: []byte{1},
		}}
	}
	m.State, m.Known, m.Age = rapid.Uint64Range(0, 1<<62).Draw(t, "state"), rapid.Uint64().Draw(t, "known"), rapid.Int64().Draw(t, "age")
	switch rapid.IntRange(0, 3).Draw(t, "statement") {
	case 0:
		m.Version.Recovery.Random = m.Cluster
	case 1:
		m.Sender.Leader = m.Sender.ID
	case 2:
		m.Since, m.Changed = rapid.Uint64Range(0, m.State).Draw(t, "since"), control.Parts(rapid.Uint32Range(0, uint32(control.AllParts)).Draw(t, "changed"))
		if m.Since == 0 {
			m.Changed = 0
		}
	}
	several := func(what string) int { return max(0, rapid.IntRange(-2, 3).Draw(t, what)) }
	for range several("entries") {
		m.Entries = append(m.Entries, genControlItem(t))
		m.Log = genControlVersion(t, "log").Recovery
	}
	for range several("raft") {
		m.Raft = append(m.Raft, genControlRaft(t))
		if r := m.Raft[len(m.Raft)-1]; r.GetFrom() == uint64(m.Sender.Voter) { // it is not sent
			r.From = nil
		}
		m.Log = genControlVersion(t, "log").Recovery
	}
	for range several("requests") {
		m.Requests = append(m.Requests, control.Request{
			ID: genControlNumber(t, "id"), Author: rapid.String().Draw(t, "author"), Reason: rapid.String().Draw(t, "reason"), Change: genControlChange(t),
		})
	}
	switch rapid.IntRange(0, 7).Draw(t, "part") {
	case 4:
		m.Ended = &control.Ended{ID: genControlID(t, "id"), Reason: rapid.String().Draw(t, "reason")}
	case 5:
		m.Nonce = genControlNonce(t)
	case 6:
		m.Proof = &control.Proof{
			Nonce: *genControlNonce(t), Signature: control.Signature{Public: genControlBytes(t, "public"), Value: genControlBytes(t, "value")},
		}
	case 1:
		m.Base = rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "base")
	case 2:
		m.Answer = &control.Answer{Ask: genControlNumber(t, "ask"), Version: genControlVersion(t, "answer")}
	case 3:
		m.Founding = genControlFounding(t)
	}
	return m.Without()
}
