package quorum

import (
	"testing"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// mutation is a rule of the protocol that a world breaks. It is made of the
// inputs, outputs and state of daemons that keep the rule.
type mutation uint16

const (
	answersEarly       mutation = 1 << iota // before the entries are on disk
	acceptsOlder                            // ballots than the one promised
	ignoresKnown                            // a takeover need not know the watermarks
	halfIsMajority                          // of the voters
	forgetsLoss                             // votes at once after the loss of a disk
	copiesFew                               // from a majority only, after the loss of a disk
	ignoresGenerations                      // votes from before the loss of a disk count
	keepsPromise                            // of two proposers, in a snapshot
	votesUnsealed                           // under the layout that it sealed
	oneTerm                                 // all proposers of a daemon have the same term
)

func (s *setup) mutated(m mutation) bool { return s.mutation&m != 0 }

// mutateSent changes a message that an acceptor sends.
func (w *world) mutateSent(m *sticky.Message) {
	for i := range m.Accepted {
		a := &m.Accepted[i]
		if w.s.mutated(acceptsOlder) && a.Reason == sticky.Outvoted && a.Ballot.Less(a.Promised) {
			a.OK, a.Reason, a.Promised, a.Held = true, sticky.NoReason, sticky.Ballot{}, nil
		}
	}
}

// receive delivers a message to an acceptor.
func (w *world) receive(m *machine, c *sticky.Message) {
	before, next := sticky.Ballot{}, m.r.next
	if l := m.r.records[theKey]; l != nil {
		before = l.Ballot
		if w.s.mutated(ignoresKnown) && len(c.Accepts) == 1 {
			a := c.Accepts[0]
			a.Known = a.Known.Join(l.Watermarks)
			c.Accepts = []sticky.Accept{a}
		}
	}
	if w.s.mutated(votesUnsealed) && len(c.Accepts) == 1 && m.r.meta.Voting && c.Number == m.r.layout.Number {
		m.r.next = nil
	}
	_ = m.r.Receive(m.at, theNow, c)
	if next != nil && len(c.Accepts) == 1 {
		m.r.next = next
	}
	if len(c.SnapshotChunks) == 0 {
		return
	}
	if l := m.r.records[theKey]; w.s.mutated(keepsPromise) && l != nil && l.Ballot.Owner == 0 {
		for _, rec := range c.SnapshotChunks[0].Records {
			if l.Ballot = before; before.Less(rec.Ballot) {
				l.Ballot = rec.Ballot
			}
		}
	}
	if x := m.r.copying; w.s.mutated(copiesFew) && x != nil && x.all {
		done := 1
		for _, s := range x.sources {
			if s.done {
				done++
			}
		}
		for i := range x.sources {
			x.sources[i].done = x.sources[i].done || done >= route.Majority(len(x.sources)+1)
		}
	}
}

// mutations are worlds that a search proves clean without their mutation.
func mutations() []*setup {
	return []*setup{
		{
			name: "answers before the store", mutation: answersEarly, async: true,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, crash: 2, pokes: 1,
		},
		{
			name: "accepts an older ballot", mutation: acceptsOlder,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 3, pokes: 1,
		},
		{
			name: "a takeover need not know the watermarks", mutation: ignoresKnown,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 2,
		},
		{
			name: "half is a majority", mutation: halfIsMajority,
			daemon: 2, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 2,
		},
		{
			name: "votes at once after the loss of a disk", mutation: forgetsLoss,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, lose: 1, pokes: 1,
		},
		{
			name: "copies from a majority after the loss of a disk", mutation: copiesFew,
			daemon: 5, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, lose: 1, pokes: 2,
		},
		{
			name: "votes from before the loss of a disk count", mutation: ignoresGenerations,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 2, wants: 2, lose: 1, pokes: 2,
		},
		{
			name: "a snapshot keeps the promise to one of two proposers", mutation: keepsPromise,
			daemon: 3, owners: []int{0, 1}, limit: 2, headroom: 1, wants: 3, lose: 1, pokes: 3,
		},
		{
			name: "no seal at a change of layout", mutation: votesUnsealed,
			daemon: 5, set: []int{0, 1, 2}, change: []int{2, 3, 4}, owners: []int{1, 4}, limit: 2, headroom: 2, wants: 2, pokes: 2,
		},
		{
			name: "a proposer that starts again passes for the one before", mutation: oneTerm,
			daemon: 3, owners: []int{0}, limit: 2, headroom: 1, wants: 3, rebirth: 1,
		},
	}
}

// TestMutations breaks one rule at a time: a random search finds that too many
// hits are admitted, and finds nothing in the same world with the rule.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of search")
	}
	for _, s := range mutations() {
		t.Run(s.name, func(t *testing.T) {
			const most = uint64(20_000)
			runs := most
			for seed := range most {
				if _, bad := wander(s, seed, 150); bad != nil {
					runs = seed
					break
				}
			}
			if runs == most {
				t.Fatalf("not found in %d random runs", runs)
			}
			sound := *s
			sound.mutation = 0
			for seed := range min(runs+1, 500) {
				if _, bad := wander(&sound, seed, 150); bad != nil {
					t.Fatalf("without the mutation, run %d: %v", seed, bad)
				}
			}
		})
	}
}

// TestWander takes random walks through worlds too large to explore.
func TestWander(t *testing.T) {
	for _, s := range []*setup{
		{name: "three lose disks", daemon: 3, owners: []int{0, 1, 2}, limit: 3, headroom: 1, wants: 3, crash: 3, lose: 3, pokes: 8, rebirth: 1, async: true, late: true},
		{name: "five", daemon: 5, owners: []int{0, 1, 4}, limit: 3, headroom: 2, wants: 4, crash: 3, lose: 2, pokes: 8, rebirth: 1, async: true},
		{name: "layout changes", daemon: 6, set: []int{0, 1, 2}, change: []int{0, 2, 3, 4, 5}, owners: []int{0, 4}, limit: 3, headroom: 1, wants: 4, crash: 2, lose: 1, pokes: 10, async: true},
		{name: "layout changes and disks are lost", daemon: 5, set: []int{0, 1, 2}, change: []int{1, 3, 4}, owners: []int{0, 3}, limit: 3, headroom: 1, wants: 4, crash: 1, lose: 2, pokes: 12, late: true},
	} {
		t.Run(s.name, func(t *testing.T) {
			runs := uint64(1_000)
			if testing.Short() {
				runs = 100
			}
			most := uint64(0)
			for seed := range runs {
				w, bad := wander(s, seed, 250)
				if bad != nil {
					t.Fatalf("run %d: %v", seed, bad)
				}
				most = max(most, w.worst())
			}
			if most != s.limit {
				t.Errorf("no run consumed more than %d: want %d in some, or the test proves nothing", most, s.limit)
			}
		})
	}
}
