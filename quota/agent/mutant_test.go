package agent

import (
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// mutation is a broken rule of the rig: its disks, messages and daemons behave
// as if agents broke the rule.
type mutation uint8

const (
	mutationEarly    mutation = 1 << iota // disks report records as stored before they are
	mutationSpeak                         // one daemon's vote is enough for its region
	mutationUnheld                        // acknowledgements among daemons carry no dependencies
	mutationAmnesiac                      // a daemon that lost its record keeps its identity
)

// speak makes the region's acknowledgements from the first vote for each epoch.
func speak(a *Agent) {
	for i := 1; i < a.region.Len(); i++ {
		k := a.region.At(i)
		if votes := a.votes.of(k.Epoch.ID); len(votes) > 0 && !hasAck(&k, a.cfg.Generation) {
			if a.region.TakeAck(votes[0].Ack) == nil {
				a.changes++
			}
		}
	}
	a.advance()
}

// unheld removes the dependencies from a message.
func unheld(m *Message) {
	m.Daemons.Acks = slices.Clone(m.Daemons.Acks)
	for i := range m.Daemons.Acks {
		m.Daemons.Acks[i].Held = nil
	}
	if m.Daemons.Claim != nil {
		m.Daemons.Claim = &epoch.Claim{Base: m.Daemons.Claim.Base, From: m.Daemons.Claim.From}
	}
}
