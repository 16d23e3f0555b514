package wire

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
)

// RightsVersion is the version of the encoding of messages about epochs, the
// first byte of their frames.
const RightsVersion = 0x41

// IsRights reports whether a frame is about epochs, by its first byte.
func IsRights(frame []byte) bool { return len(frame) > 0 && frame[0] == RightsVersion }

// EncodeRights appends the frame of a message to dst and returns the extended
// slice. It only reads the message and keeps no part of it. Equal messages have
// equal frames on all daemons of one build.
//
// On an error it returns dst as it was: a *SizeError when the frame would
// exceed MaxFrameBytes, a *FormatError when the message is not valid.
func EncodeRights(dst []byte, m *agent.Message) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return dst, malformed("%v", err)
	}
	return seal(dst, RightsVersion, rightsFrame(m))
}

// DecodeRights returns the message of a frame, which shares no memory with it.
// Empty lists are nil. The message is valid on its own; the receiver checks its
// content and its sender. The error is a *VersionError, a *SizeError, a
// *ChecksumError for a frame that was cut or changed, or a *FormatError.
func DecodeRights(frame []byte) (*agent.Message, error) {
	var f rldv1.RightsFrame
	if err := unseal(frame, RightsVersion, &f); err != nil {
		return nil, err
	}
	var c rightsReader
	m := c.message(&f)
	if c.err != nil {
		return nil, c.err
	}
	if err := m.Validate(); err != nil {
		return nil, malformed("%v", err)
	}
	return m, nil
}

func rightsFrame(m *agent.Message) *rldv1.RightsFrame {
	f := &rldv1.RightsFrame{
		From: uint64(m.From), To: uint64(m.To), Region: m.Region, Name: m.Name,
		Stamp: uint64(m.Stamp), Member: m.Member, Genesis: m.Genesis[:],
		Ready: m.Ready, Leaving: m.Leaving, Regions: rightsSection(&m.Regions), HasVotes: m.HasVotes,
		Period: m.Period, HasPeriod: m.Heard,
	}
	if !m.Daemons.Empty() {
		f.Daemons = rightsSection(&m.Daemons)
	}
	f.Votes = listOf(m.Votes, func(v *epoch.Vote) *rldv1.RightsVote {
		return &rldv1.RightsVote{Daemon: v.Daemon, Ack: rightsAck(&v.Ack), Locals: rightsIDs(v.Locals)}
	})
	if g := m.Extension; g != nil {
		f.Extension = &rldv1.RightsExtension{By: g.By, To: g.To, Under: rightsID(g.Under), UntilMs: g.Until}
	}
	for _, d := range m.Demand {
		f.DemandRules = append(f.DemandRules, d.Rule)
		f.DemandHits = append(f.DemandHits, d.Hits)
	}
	return f
}

func rightsSection(s *agent.Section) *rldv1.RightsSection {
	out := &rldv1.RightsSection{
		Base: rightsID(s.Base), Settled: rightsID(s.Settled), Has: s.Has,
		Epochs: listOf(s.Epochs, rightsEpoch), Acks: listOf(s.Acks, rightsAck),
	}
	if c := s.Claim; c != nil {
		out.Claim = &rldv1.RightsClaim{
			Base: rightsEpoch(&c.Base), FromMs: c.From, Held: rightsHeld(c.Held),
		}
	}
	return out
}

func (c *rightsReader) message(f *rldv1.RightsFrame) *agent.Message {
	if len(f.Genesis) != 2 || len(f.DemandRules) != len(f.DemandHits) {
		c.fail("%d genesis, %d rules with %d demands: want 2, and one demand each",
			len(f.Genesis), len(f.DemandRules), len(f.DemandHits))
		return nil
	}
	m := &agent.Message{
		From: crdt.Incarnation(f.From), To: crdt.Incarnation(f.To), Region: f.Region, Name: f.Name,
		Stamp: hlc.Timestamp(f.Stamp), Member: f.Member,
		Genesis: [2]uint64(f.Genesis), Ready: f.Ready, Leaving: f.Leaving, HasVotes: f.HasVotes, Period: f.Period, Heard: f.HasPeriod,
		Regions: c.section(f.Regions), Daemons: c.section(f.Daemons),
		Votes: fromList(f.Votes, func(v *rldv1.RightsVote) epoch.Vote {
			return epoch.Vote{Daemon: v.Daemon, Ack: c.ack(v.Ack), Locals: idsOf(v.Locals)}
		}),
	}
	if g := f.Extension; g != nil {
		m.Extension = &epoch.Extension{By: g.By, To: g.To, Under: idOf(g.Under), Until: g.UntilMs}
	}
	for i, rule := range f.DemandRules {
		m.Demand = append(m.Demand, agent.Demand{Rule: rule, Hits: f.DemandHits[i]})
	}
	return m
}

func (c *rightsReader) section(s *rldv1.RightsSection) agent.Section {
	out := agent.Section{
		Base: idOf(s.GetBase()), Settled: idOf(s.GetSettled()), Has: s.GetHas(),
		Epochs: fromList(s.GetEpochs(), c.epoch), Acks: fromList(s.GetAcks(), c.ack),
	}
	if claim := s.GetClaim(); claim != nil {
		out.Claim = &epoch.Claim{Base: c.epoch(claim.Base), From: claim.FromMs, Held: heldOf(claim.Held)}
	}
	return out
}
