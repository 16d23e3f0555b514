package agent

import (
	"fmt"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// Message is a message from one incarnation to another. It belongs to the
// receiver, except for the content of its epochs and acknowledgements, which
// must not be modified.
type Message struct {
	// From and To are incarnations; Region and Name are the sender's.
	From, To     crdt.Incarnation
	Region, Name string
	// Stamp is the sender's hybrid logical clock.
	Stamp hlc.Timestamp
	// Member is the sender as a participant of its region's epochs. The caller
	// of Receive checks that it is that of the sender's id.
	Member uint64
	// Genesis are the fingerprints of the genesis of the regions and of the
	// daemons of the sender's region.
	Genesis [2]uint64
	// Ready reports whether the sender has learned the epochs of its region.
	Ready bool
	// Leaving reports whether the sender will stop soon: the next epoch of its
	// region must leave it out. It is not Ready then.
	Leaving bool

	// Regions is about the epochs of regions. Daemons is about those of the
	// region's daemons, and Votes are the votes of these; both are empty across
	// regions.
	Regions, Daemons Section
	Votes            []epoch.Vote
	// HasVotes are the fingerprints of the votes the sender has, ascending.
	HasVotes []uint64
	// Extension extends the receiver's horizon, nil for none.
	Extension *epoch.Extension

	// Period is the number of the period of Demand, 0 for none. Within a region
	// it is the demand of the sender, across regions that of its region.
	Period uint64
	Demand []Demand
	// Heard is the latest period of the receiver's demand at the sender.
	Heard uint64
}

// Section is the part of a message about one table.
type Section struct {
	// Base and Settled are the sender's oldest and greatest settled epoch.
	Base, Settled epoch.ID
	// Has are the fingerprints of the sender's items above its base, ascending.
	Has []uint64
	// Claim states that the sender's base is settled, nil for none.
	Claim *epoch.Claim
	// Epochs and Acks are items that the receiver lacks.
	Epochs []epoch.Epoch
	Acks   []epoch.Ack
}

// Demand is the number of hits offered for a rule in a period, admitted and
// denied.
type Demand struct {
	Rule, Hits uint64
}

// The bounds of a message.
const (
	// MaxHas bounds the fingerprints of a section.
	MaxHas = 1 << 14
	// MaxItems bounds the epochs of a section; the acknowledgements, and the
	// votes, are at most MaxItems times epoch.MaxMembers.
	MaxItems = epoch.MaxEpochs
	// fillBytes is the approximate size of the items of a message.
	fillBytes = 1 << 20
)

// Validate returns an error if the message is malformed.
func (m *Message) Validate() error {
	if err := m.validate(); err != nil {
		return fmt.Errorf("message of %s: %w", m.From, err)
	}
	return nil
}

func (m *Message) validate() error {
	if len(m.Name) == 0 || len(m.Name) > maxName || len(m.Region) == 0 || len(m.Region) > maxName {
		return fmt.Errorf("names of %d and %d bytes: want 1 to %d", len(m.Region), len(m.Name), maxName)
	}
	if err := m.Regions.validate(); err != nil {
		return fmt.Errorf("regions: %w", err)
	}
	if err := m.Daemons.validate(); err != nil {
		return fmt.Errorf("daemons: %w", err)
	}
	if len(m.Votes) > maxVotes || len(m.HasVotes) > MaxHas {
		return fmt.Errorf("%d votes and %d fingerprints of votes: want at most %d and %d",
			len(m.Votes), len(m.HasVotes), maxVotes, MaxHas)
	}
	if i := unsorted(m.HasVotes); i > 0 {
		return fmt.Errorf("fingerprint %d of %d votes out of order: want them ascending, each once", i, len(m.HasVotes))
	}
	for _, v := range m.Votes {
		if len(v.Locals) > epoch.MaxEpochs {
			return fmt.Errorf("vote of %d with %d epochs: want at most %d", v.Daemon, len(v.Locals), epoch.MaxEpochs)
		}
		if err := v.Ack.Validate(); err != nil {
			return fmt.Errorf("vote of %d: %w", v.Daemon, err)
		}
	}
	if len(m.Demand) > MaxRules || m.Period == 0 && len(m.Demand) > 0 {
		return fmt.Errorf("demand of %d rules in period %d: want at most %d, and a period",
			len(m.Demand), m.Period, MaxRules)
	}
	for i := range m.Demand {
		if i > 0 && m.Demand[i-1].Rule >= m.Demand[i].Rule {
			return fmt.Errorf("demand of rule %016x out of order: want them ascending, each once",
				m.Demand[i].Rule)
		}
	}
	return nil
}

func (s *Section) validate() error {
	switch {
	case len(s.Has) > MaxHas:
		return fmt.Errorf("%d fingerprints: want at most %d", len(s.Has), MaxHas)
	case len(s.Epochs) > MaxItems:
		return fmt.Errorf("%d epochs: want at most %d", len(s.Epochs), MaxItems)
	case len(s.Acks) > MaxItems*epoch.MaxMembers:
		return fmt.Errorf("%d acknowledgements: want at most %d", len(s.Acks), MaxItems*epoch.MaxMembers)
	}
	if i := unsorted(s.Has); i > 0 {
		return fmt.Errorf("fingerprint %d of %d out of order: want them ascending, each once", i, len(s.Has))
	}
	for _, e := range s.Epochs {
		if err := e.Validate(); err != nil {
			return err
		}
	}
	for _, a := range s.Acks {
		if err := a.Validate(); err != nil {
			return err
		}
	}
	if s.Claim == nil {
		return nil
	}
	return s.Claim.Base.Validate()
}

// Empty reports whether the section has no content.
func (s *Section) Empty() bool {
	return s.Base == epoch.ID{} && s.Settled == epoch.ID{} && len(s.Has) == 0 &&
		s.Claim == nil && len(s.Epochs) == 0 && len(s.Acks) == 0
}

// unsorted returns the place of the first number that is not above its
// predecessor, 0 for none.
func unsorted(numbers []uint64) int {
	for i := 1; i < len(numbers); i++ {
		if numbers[i-1] >= numbers[i] {
			return i
		}
	}
	return 0
}
