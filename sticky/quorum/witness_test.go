package quorum

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// stored returns the state that a log adds up to.
func storedOf(t *testing.T, log []Entry) *Stored {
	t.Helper()
	s := &Stored{}
	for _, e := range log {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestOlderDisk: a voter that starts asks the others which of its writes they
// know. It votes when all have answered, or after 5 s. One whose disk lacks a
// write that any of them knows counts as one that lost its disk.
func TestOlderDisk(t *testing.T) {
	first := newRig(t, Start{})
	for key := range uint64(3) {
		first.accept(2, 1, key, nil, first.watermark(60, 5))
	}
	v := first.accept(2, 1, 9, nil, first.watermark(60, 5))
	own := v.Generations.Get(route.NameHash("a"))
	if own.Writes != first.r.meta.Writes || own.Writes < 4 {
		t.Fatalf("a vote of write %d, and %d are on disk: want the number of its write", own.Writes, first.r.meta.Writes)
	}
	for name, tc := range map[string]struct {
		writes   uint64 // that the others know
		answers  []crdt.Incarnation
		accepted bool          // they send it with an Accept instead
		wait     time.Duration // since the start
		votes    bool
		lost     bool
	}{
		"nobody answers":            {},
		"one answers":               {writes: own.Writes, answers: []crdt.Incarnation{2}},
		"nobody answers in time":    {wait: witnessFor, votes: true},
		"both know all":             {writes: own.Writes, answers: []crdt.Incarnation{2, 3}, votes: true},
		"both know less":            {writes: 1, answers: []crdt.Incarnation{2, 3}, votes: true},
		"one knows more":            {writes: own.Writes + 1, answers: []crdt.Incarnation{3}, lost: true},
		"an owner knows more":       {writes: own.Writes + 1, accepted: true, lost: true},
		"an owner knows more, late": {writes: own.Writes + 1, accepted: true, wait: witnessFor, lost: true},
		"one of another region":     {writes: own.Writes + 1, answers: []crdt.Incarnation{5}},
		"one that is not asked":     {writes: own.Writes, answers: []crdt.Incarnation{2, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, Start{Stored: storedOf(t, first.log)})
			g.pass(tc.wait)
			g.ready()
			known := route.Generations(nil).With(route.Generation{Voter: own.Voter, Generation: own.Generation, Writes: tc.writes})
			for _, from := range tc.answers {
				_ = g.receive(sticky.Message{From: from, SnapshotChunks: []sticky.SnapshotChunk{{
					Voter: route.NameHash(g.r.live.Get(from).Name), Last: true, Generations: known,
				}}})
			}
			if tc.accepted {
				_ = g.receive(sticky.Message{From: 2, Accepts: []sticky.Accept{{
					Key: rigKey(7), Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Seq: 1,
					Watermarks: g.watermark(60, 1), Generations: known,
				}}})
			}
			g.ready()
			if s := g.r.Status(); s.Voting != tc.votes || s.Lost != tc.lost {
				t.Errorf("voting %v (%s), lost %v: want %v and %v", s.Voting, s.Reason, s.Lost, tc.votes, tc.lost)
			}
			if again := storedOf(t, append(first.log, g.log...)); tc.lost != (again.Meta.Generation > own.Generation) || again.Meta.Voting == tc.lost {
				t.Errorf("on disk is %+v", again.Meta)
			}
		})
	}
}

// TestWitness: a voter keeps the store numbers of other voters that the owner
// in its daemon counts, and those that owners send, and answers with them.
func TestWitness(t *testing.T) {
	g := newRig(t, Start{})
	known := func(writes uint64) route.Generations {
		return route.Generations(nil).With(route.Generation{Voter: route.NameHash("b"), Generation: 3, Writes: writes})
	}
	ask := func() uint64 {
		_ = g.receive(sticky.Message{From: 2, SnapshotRequests: []sticky.SnapshotRequest{{Voter: route.NameHash("b"), Generation: 3}}})
		for _, m := range g.ready() {
			if m.To == 2 && len(m.SnapshotChunks) == 1 && m.SnapshotChunks[0].Number == 0 {
				return m.SnapshotChunks[0].Generations.Get(route.NameHash("b")).Writes
			}
		}
		t.Fatal("no answer")
		return 0
	}
	_ = g.receive(sticky.Message{From: 2, Accepted: []sticky.Accepted{{Voter: route.NameHash("b"), OK: true, Generations: known(7)}}})
	g.expect("of a vote", ask(), uint64(7))
	_ = g.receive(sticky.Message{From: 3, Accepted: []sticky.Accepted{{Voter: route.NameHash("b"), OK: true, Generations: known(99)}}})
	g.expect("of another daemon", ask(), uint64(7))
	_ = g.receive(sticky.Message{From: 3, Accepts: []sticky.Accept{{
		Key: rigKey(7), Ballot: sticky.Ballot{Round: 1, Owner: 3, Term: 1}, Seq: 1, Watermarks: g.watermark(60, 1), Generations: known(9),
	}}})
	g.expect("of an owner", ask(), uint64(9))
	g.accept(2, 1, 1, nil, g.watermark(60, 5)) // with the next store
	g.expect("on disk", storedOf(t, g.log).Meta.Generations.Get(route.NameHash("b")).Writes, uint64(9))
}
