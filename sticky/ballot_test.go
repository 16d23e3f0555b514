package sticky

import "testing"

// TestSameProposer: a daemon that forgot a key proposes anew, and does not know
// what its former proposer stored.
func TestSameProposer(t *testing.T) {
	b := Ballot{Round: 1, Owner: 2, Term: 3}
	for o, want := range map[Ballot]bool{
		b: true, {Round: 9, Owner: 2, Term: 3}: true, {Round: 1, Owner: 2, Term: 4}: false, {Round: 1, Owner: 3, Term: 3}: false,
	} {
		if b.SameProposer(o) != want {
			t.Errorf("%+v and %+v: same proposer %v", b, o, !want)
		}
	}
	if (Ballot{Round: 1}).SameProposer(Ballot{Round: 1}) {
		t.Error("two ballots without an owner have one proposer")
	}
}
