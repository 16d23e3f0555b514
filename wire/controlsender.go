package wire

import (
	"github.com/georld/rld/control"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky/route"
)

// inHeader returns the part of a message that its header has: all that has no
// field of its own in a frame.
func inHeader(m *control.Message) *control.Message {
	h := *m
	h.Cluster, h.Version = 0, control.Version{}
	h.Sender = control.Sender{Waits: m.Sender.Waits}
	if a := m.Sender.Acceptor; a != nil && a.Unknown != nil {
		h.Sender.Acceptor = a
	}
	h.Want, h.Ask, h.Entries = false, 0, nil
	return &h
}

// headerless reports that a header would be empty, as in most messages: then it
// need not be encoded.
func headerless(m *control.Message) bool {
	a := m.Sender.Acceptor
	return len(m.Sender.Waits)+len(m.Requests)+len(m.Emergencies) == 0 && (a == nil || a.Unknown == nil) &&
		m.Log == (control.Recovery{}) && m.Answer == nil && m.Nonce == nil && m.Proof == nil && m.Ended == nil &&
		m.Founding == nil && m.Yield == nil
}

// fieldsOf returns the fields of a message that are true or false, in the order
// of their bits; nil for other bits.
func fieldsOf(m *control.Message) [8]*bool {
	s := &m.Sender
	return [...]*bool{&s.Durable, &s.Witness, &s.Leaving, &s.Starting, &s.Majority, &m.Want, nil, nil}
}

const (
	// ofCluster is the flag of a version whose recovery has the random number
	// of the cluster, as the first one does.
	ofCluster = 1 << 6
	// leads is the flag of a sender that is its own leader.
	leads = 1 << 7
)

// putControl sets the fields of a frame that are in each message.
func putControl(f *rldv1.ControlFrame, m *control.Message) {
	s := &m.Sender
	f.State, f.Known, f.Changed, f.Clock = m.State, m.Known, uint32(m.Changed), s.Clock
	if m.Since != 0 {
		f.Since = m.State - m.Since + 1
	}
	f.Cluster, f.Recovery, f.Random, f.Index = uint64(m.Cluster), m.Version.Recovery.Number, uint64(m.Version.Recovery.Random), m.Version.Index
	f.Hash, f.Store, f.Began, f.Applied, f.Format = m.Hash, s.Store, s.Began, s.Applied, int64(s.Format)
	f.Heard, f.HeardOf, f.Stored, f.Region = uint64(s.Heard), uint64(s.HeardOf), putControlVersion(s.Stored), putControlVersion(s.Region)
	f.Files, f.Emergencies, f.Voter = uint64(s.Files), uint64(s.Emergencies), uint64(s.Voter)
	f.Age, f.Ask = m.Age, uint64(m.Ask)
	for i, is := range fieldsOf(m) {
		if is != nil && *is {
			f.Flags |= 1 << i
		}
	}
	if f.Random != 0 && f.Random == f.Cluster {
		f.Random, f.Flags = 0, f.Flags|ofCluster
	}
	switch s.Leader {
	case control.ID{}:
	case s.ID:
		f.Flags |= leads
	default:
		f.Leader = s.Leader[:]
	}
	if a := s.Acceptor; a != nil && a.Unknown == nil {
		f.Acceptor = &rldv1.ControlAcceptor{
			Layout: a.Number, Log: a.Log.Number, Random: a.Log.Random, Copied: a.Copied, Failing: a.Failing, Store: a.Store,
		}
	}
}

// getControl sets the fields of a message that are not in its header.
func getControl(m *control.Message, f *rldv1.ControlFrame) error {
	s := &m.Sender
	random, leader := f.Random, control.ID{}
	switch n := len(f.Leader); {
	case n == 0 && f.Flags&leads != 0:
		leader = s.ID
	case n == len(leader) && f.Flags&leads == 0:
		leader = control.ID(f.Leader)
	case n > 0:
		return malformed("a leader of %d bytes with flags %x, want %d, or none", n, f.Flags, len(leader))
	}
	fields := fieldsOf(m)
	switch {
	case int64(int(f.Format)) != f.Format || f.Flags >= 1<<len(fields):
		return malformed("format %d and flags %x", f.Format, f.Flags)
	case f.Since > f.State:
		return malformed("statement %d since %d before it", f.State, f.Since)
	case f.Flags&ofCluster != 0 && (f.Cluster == 0 || random != 0):
		return malformed("random number %x of a recovery of cluster %x with flags %x", random, f.Cluster, f.Flags)
	case f.Flags&ofCluster != 0:
		random = f.Cluster
	}
	m.State, m.Known, m.Changed = f.State, f.Known, control.Parts(f.Changed)
	if f.Since > 0 {
		m.Since = f.State - f.Since + 1
	}
	m.Age, m.Ask = f.Age, control.Number(f.Ask)
	m.Cluster, m.Hash = control.Number(f.Cluster), f.Hash
	m.Version = control.Version{Recovery: control.Recovery{Number: f.Recovery, Random: control.Number(random)}, Index: f.Index}
	was := *s
	*s = control.Sender{
		ID: was.ID, Run: was.Run, Leader: leader, Store: f.Store, Began: f.Began, Applied: f.Applied, Format: int(f.Format), Clock: f.Clock,
		Heard: control.Number(f.Heard), HeardOf: control.Number(f.HeardOf), Voter: control.Number(f.Voter),
		Stored: getControlVersion(f.Stored), Region: getControlVersion(f.Region),
		Files: control.Number(f.Files), Emergencies: control.Number(f.Emergencies), Waits: was.Waits, Acceptor: was.Acceptor,
	}
	for i, is := range fields {
		if is != nil {
			*is = f.Flags&(1<<i) != 0
		}
	}
	a := f.Acceptor
	switch {
	case a == nil:
	case was.Acceptor != nil:
		return malformed("two states of an acceptor, want one")
	default:
		s.Acceptor = &control.AcceptorReport{
			Number: a.Layout, Log: route.Log{Number: a.Log, Random: a.Random}, Copied: a.Copied, Failing: a.Failing, Store: a.Store,
		}
	}
	if !m.OnlyChanged() {
		return malformed("a part of statement %d that did not change", m.State)
	}
	if m.Log != (control.Recovery{}) && m.Log == m.Version.Recovery {
		return malformed("a log that is that of the version")
	}
	return getItems(m, f.Entries)
}

// itemFlags returns the fields of an item that are true or false, in the order
// of their bits.
func itemFlags(it *control.Item, v *control.Voter) [4]*bool {
	return [...]*bool{&v.Learner, &v.Witness, &v.Former, &it.Remove}
}

// putItems returns committed entries as a frame has them.
func putItems(items []control.Item) (all []*rldv1.ControlItem) {
	last := uint64(0)
	for _, it := range items {
		out, v := &rldv1.ControlItem{Index: it.Index - last, Entry: it.Entry}, &control.Voter{}
		if last = it.Index; it.Voter != nil {
			v = it.Voter
			out.Raft, out.Daemon, out.Region = uint64(v.Raft), v.Daemon[:], v.Region
		}
		for i, is := range itemFlags(&it, v) {
			if *is {
				out.Flags |= 1 << i
			}
		}
		all = append(all, out)
	}
	return all
}

// getItems sets the committed entries of a message.
func getItems(m *control.Message, all []*rldv1.ControlItem) error {
	if n := len(all); n > control.MaxEntries { // before their work
		return &SizeError{What: "entries", Got: n, Max: control.MaxEntries}
	}
	last := uint64(0)
	for _, in := range all {
		it, v := control.Item{Index: last + in.Index}, &control.Voter{}
		last = it.Index
		flags := itemFlags(&it, v)
		if in.Flags >= 1<<len(flags) {
			return malformed("entry %d with flags %x", it.Index, in.Flags)
		}
		for i, is := range flags {
			*is = in.Flags&(1<<i) != 0
		}
		if len(in.Entry) > 0 {
			it.Entry = in.Entry
		}
		none := in.Raft == 0 && in.Region == "" && !v.Learner && !v.Witness && !v.Former
		switch len(in.Daemon) {
		case 0:
			if !none {
				return malformed("entry %d with a voter without a daemon", it.Index)
			}
		case len(v.Daemon):
			v.Raft, v.Daemon, v.Region = control.Number(in.Raft), control.ID(in.Daemon), in.Region
			it.Voter = v
		default:
			return malformed("entry %d with a daemon of %d bytes", it.Index, len(in.Daemon))
		}
		m.Entries = append(m.Entries, it)
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
