package wire

import (
	"encoding/hex"

	"github.com/georld/rld/control"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky/route"
)

// inHeader returns the part of a message that its header has: all that is not
// in each message.
func inHeader(m *control.Message) *control.Message {
	h := *m
	h.Cluster, h.Version, h.Hash = 0, control.Version{}, ""
	h.Sender = control.Sender{Waits: m.Sender.Waits}
	if a := m.Sender.Acceptor; a != nil && a.Unknown != nil {
		h.Sender.Acceptor = a
	}
	return &h
}

// putControl sets the fields of a frame that are in each message.
func putControl(f *rldv1.ControlFrame, m *control.Message) error {
	s := &m.Sender
	f.Cluster, f.Version = uint64(m.Cluster), putControlVersion(m.Version)
	f.Sender = &rldv1.ControlSender{
		Id: s.ID[:], Run: s.Run[:], Store: s.Store, Began: s.Began, Applied: s.Applied, Format: int64(s.Format), Clock: s.Clock,
		Durable: s.Durable, Witness: s.Witness, Leaving: s.Leaving, Starting: s.Starting, Majority: s.Majority,
		Heard: uint64(s.Heard), HeardOf: uint64(s.HeardOf), Stored: putControlVersion(s.Stored), Region: putControlVersion(s.Region),
		Files: uint64(s.Files), Emergencies: uint64(s.Emergencies),
	}
	if s.Leader != (control.ID{}) {
		f.Sender.Leader = s.Leader[:]
	}
	if a := s.Acceptor; a != nil && a.Unknown == nil {
		f.Sender.Acceptor = &rldv1.ControlAcceptor{
			Layout: a.Number, Log: a.Log.Number, Random: a.Log.Random, Copied: a.Copied, Failing: a.Failing, Store: a.Store,
		}
	}
	hash, err := hex.DecodeString(m.Hash)
	if err != nil || hex.EncodeToString(hash) != m.Hash || len(hash) != 0 && len(hash) != len(s.ID) {
		return malformed("hash %.40q of a record, want 32 hexadecimal digits", m.Hash)
	}
	f.Hash = hash
	return nil
}

// getControl sets the fields of a message that are not in its header.
func getControl(m *control.Message, f *rldv1.ControlFrame) error {
	from, s := f.Sender, &m.Sender
	if n := len(s.ID); len(from.GetId()) != n || len(from.GetRun()) != n || len(from.Leader) != 0 && len(from.Leader) != n || len(f.Hash) != 0 && len(f.Hash) != n {
		return malformed("an id, a run, a leader and a hash of %d, %d, %d and %d bytes, want %d, and none of the last two for none",
			len(from.GetId()), len(from.GetRun()), len(from.GetLeader()), len(f.Hash), n)
	}
	if int64(int(from.Format)) != from.Format {
		return malformed("format %d", from.Format)
	}
	m.Cluster, m.Version, m.Hash = control.Number(f.Cluster), getControlVersion(f.Version), hex.EncodeToString(f.Hash)
	was := *s
	*s = control.Sender{
		ID: control.ID(from.Id), Run: control.Run(from.Run), Store: from.Store, Began: from.Began, Applied: from.Applied,
		Format: int(from.Format), Clock: from.Clock,
		Durable: from.Durable, Witness: from.Witness, Leaving: from.Leaving, Starting: from.Starting, Majority: from.Majority,
		Heard: control.Number(from.Heard), HeardOf: control.Number(from.HeardOf),
		Stored: getControlVersion(from.Stored), Region: getControlVersion(from.Region),
		Files: control.Number(from.Files), Emergencies: control.Number(from.Emergencies), Waits: was.Waits, Acceptor: was.Acceptor,
	}
	copy(s.Leader[:], from.Leader)
	a := from.Acceptor
	switch {
	case a == nil:
	case was.Acceptor != nil:
		return malformed("two states of an acceptor, want one")
	default:
		s.Acceptor = &control.AcceptorReport{
			Number: a.Layout, Log: route.Log{Number: a.Log, Random: a.Random}, Copied: a.Copied, Failing: a.Failing, Store: a.Store,
		}
	}
	return nil
}

func putControlVersion(v control.Version) *rldv1.ControlVersion {
	if v == (control.Version{}) {
		return nil
	}
	return &rldv1.ControlVersion{Recovery: v.Recovery.Number, Random: uint64(v.Recovery.Random), Index: v.Index}
}

func getControlVersion(v *rldv1.ControlVersion) control.Version {
	return control.Version{Recovery: control.Recovery{Number: v.GetRecovery(), Random: control.Number(v.GetRandom())}, Index: v.GetIndex()}
}
