package quorum

import (
	"testing"

	"github.com/georld/rld/sticky"
)

// TestJoinOfTwoProposers: a record that is copied from two proposers promises
// the ballot of neither.
func TestJoinOfTwoProposers(t *testing.T) {
	g := newRig(t, Start{})
	g.accept(2, 3, 1, nil, g.watermark(60, 20))
	key := rigKey(1)
	g.r.join(&sticky.Record{Key: key, Ballot: sticky.Ballot{Round: 3, Owner: 2, Term: 1}, Watermarks: g.watermark(60, 30)})
	g.expect("one proposer", g.r.records[key].Ballot, sticky.Ballot{Round: 3, Owner: 2, Term: 1})
	g.r.join(&sticky.Record{Key: key, Ballot: sticky.Ballot{Round: 2, Owner: 3, Term: 1}, Watermarks: g.watermark(60, 25)})
	g.expect("two proposers", g.r.records[key].Ballot, sticky.Ballot{Round: 4})
	g.expect("watermark", g.r.records[key].Watermarks.Amount(60), uint64(30))
}

// TestSealed: a voter does not vote under a layout that it sealed, nor under
// the next one before it has copied.
func TestSealed(t *testing.T) {
	g := newRig(t, Start{})
	next := g.r.layout.Clone()
	next.Number = 2
	g.r.next = &next
	if ok, why := g.r.voting(); ok {
		t.Errorf("votes: %q", why)
	}
	for number, want := range map[uint64]sticky.Reason{1: sticky.OtherLayout, 2: sticky.NotVoting} {
		g.expect("layout", g.r.mayVote(number), want)
	}
}
