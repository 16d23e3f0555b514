package wire

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
)

// FuzzRightsReceive hands a rights agent whatever a peer's frame may hold, as
// if it were from that peer: it may refuse it or believe it, but goes on
// working.
func FuzzRightsReceive(f *testing.F) {
	gen := rapid.Custom(genRights)
	for seed := range 8 {
		frame, err := EncodeRights(nil, gen.Example(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame[sealSize:], seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, payload []byte, aged bool) {
		m, err := DecodeRights(sealedRights(payload))
		if err != nil {
			return
		}
		r := newRegions(t, 2, 10*time.Second)
		r.run(3*time.Second, nil)
		honest := r.toFirst(2)
		for range 300 { // agents that lack nothing rest for 5 s
			if honest == nil {
				r.run(20*time.Millisecond, nil)
				honest = r.toFirst(2)
			}
		}
		if honest == nil {
			t.Fatal("the second sends nothing to the first")
		}
		m.From, m.To, m.Region, m.Name = honest.From, honest.To, honest.Region, honest.Name
		m.Member, m.Genesis = honest.Member, honest.Genesis
		m.Daemons, m.Votes, m.HasVotes, m.Extension = agent.Section{}, nil, nil, nil
		for i := range m.Regions.Epochs {
			e := &m.Regions.Epochs[i]
			e.ID.Stamp = honest.Stamp.Next() // one that may be learned
			e.Horizon = 0
			if aged && e.Validate() != nil {
				e.Pred = honest.Regions.Settled
			}
		}
		_ = r.agents[0].Receive(r.at, 1_767_225_600_000+r.at.Milliseconds(), m)
		r.run(15*time.Second, moving)
		for i, o := range r.agents {
			if base, _ := o.Allotment(r.rules[0].ID, 1000, 1_767_225_600_000, 0, false); base > 1000 {
				t.Fatalf("office %d holds %d of 1000", i, base)
			}
			o.Status()
		}
		r.agents[0].Dead([]epoch.Retirement{{ID: 99, From: 1}})
		r.agents[0].Regions([]agent.Region{{Name: "a", ID: 1}, {Name: "c", ID: 3}}, nil)
		r.run(time.Second, moving)
	})
}

// toFirst returns a message of a daemon for the first one that is on its way,
// nil for none.
func (r *rightsWorld) toFirst(from crdt.Incarnation) *agent.Message {
	for _, p := range r.flight {
		if m, err := DecodeRights(p.frame); err == nil && p.to == 0 && m.From == from {
			return m
		}
	}
	return nil
}
