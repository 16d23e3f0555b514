package quorum

import (
	"slices"
	"time"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
)

// Proposer is a home's hold on one ledger, in memory: its ballot, and the marks
// that a majority of the region's replicas holds under it. A home consumes
// nothing beyond Held. It asks for more with Want, sends what Accepts says, and
// takes the answers in with Accepted.
//
// When a keeper has lost its ballot, the home counts Known as consumed before
// it wants anything again; so it does with a keeper that is new and learns what
// others had marked. A restarted home has a new slot and empty keepers. After
// a change of layout what is held stays held, since whoever takes over copied
// it; what is wanted next is raised at the new replicas.
//
// The zero value with a Term is ready to use. It is not safe for concurrent use.
type Proposer struct {
	// Term is the number of the keeper among all that this incarnation of the
	// daemon ever began, from 1: two of one ledger must never have the same.
	Term uint64

	number uint64 // of the layout that the raise in flight goes by
	ballot sticky.Ballot
	lost   bool   // the ballot is of no use any more
	top    uint64 // the highest round that was heard of
	seq    uint64
	held   sticky.Watermarks
	known  sticky.Watermarks
	ended  int64 // marks that ended before are no longer wanted

	flight      want // in flight, of seq
	busy        bool
	next        want // wanted next
	queued      bool
	cast        []cast            // the votes of seq
	generations route.Generations // what they told
	sent        time.Duration
	tries       int
}

// want is what a home wants held.
type want struct{ known, watermarks sticky.Watermarks }

// cast is what a replica last said of the raise in flight.
type cast struct {
	voter, generation uint64
	why               sticky.Reason // NoWhy: it holds the marks
}

// Outcome is what a vote came to.
type Outcome uint8

// The outcomes.
const (
	// Pending: nothing changed.
	Pending Outcome = iota
	// Accepted2: Held grew.
	Chosen
	// Lost: nothing more is held under this ballot. Known, which what was held
	// is part of, must be counted as consumed before the next Want, which takes a
	// higher ballot.
	Lost
	// Stuck: so many replicas cannot vote that there is no majority, or the
	// marks have ended. Unless these have, the raise goes on for a while.
	Stuck
)

// The pace of raises.
const (
	// AcceptAgain is the time between two attempts at replicas without a vote.
	AcceptAgain = 50 * time.Millisecond
	// giveUp is after how many attempts a raise is dropped. Who still wants it
	// says so again.
	giveUp = 20
	// knownFor is for how long marks are known after their end, in
	// milliseconds: about as long as replicas may hold them.
	knownFor = 5 * 60_000
)

// Held returns the marks that a majority holds under the ballot. They must not
// be changed.
func (k *Proposer) Held() sticky.Watermarks { return k.held }

// Known returns what others marked, as far as refusals told, and after Lost all
// that was held. They must not be changed.
func (k *Proposer) Known() sticky.Watermarks { return k.known }

// Ballot returns the ballot, the zero value before the first Want.
func (k *Proposer) Ballot() sticky.Ballot { return k.ballot }

// Busy reports whether a raise is in flight.
func (k *Proposer) Busy() bool { return k.busy }

// Want says what is to be held. consumed is all that the home counts as
// consumed, by itself and by others; marks are what it wants to go up to. A
// raise in flight goes on, and the last want follows it. Watermarks that ended
// before now, in Unix milliseconds, are left out, and never wanted again.
//
// The end of a label is always the same, or grows with its amount.
func (k *Proposer) Want(self crdt.Incarnation, now int64, consumed, watermarks sticky.Watermarks) {
	if k.ballot.Owner != self {
		*k = Proposer{Term: k.Term, ballot: sticky.Ballot{Round: 1, Owner: self, Term: k.Term}, ended: k.ended}
	}
	if len(watermarks) > sticky.MaxWatermarks {
		watermarks, _ = watermarks.Latest(sticky.MaxWatermarks)
	}
	k.prune(now, watermarks)
	watermarks = watermarks.Since(k.ended)
	switch {
	case len(watermarks) == 0, !k.lost && k.held.Above(watermarks):
		k.queued = false
		return
	case k.busy && k.flight.watermarks.Above(watermarks):
		k.queued = false
		return
	}
	known, _ := consumed.Latest(sticky.MaxWatermarks)
	w := want{slices.Clone(known), slices.Clone(watermarks)}
	if k.lost {
		k.ballot.Round, k.lost = k.top+1, false
	}
	if k.busy {
		k.next, k.queued = w, true
		return
	}
	k.begin(w)
}

// prune forgets what ended before now.
func (k *Proposer) prune(now int64, watermarks sticky.Watermarks) {
	for _, m := range [...]sticky.Watermarks{k.held, k.flight.watermarks, watermarks} {
		if first := m.FirstEnd(); len(m) > 0 && first < now {
			for _, x := range m {
				if x.End < now {
					k.ended = max(k.ended, x.End+1)
				}
			}
		}
	}
	k.held = k.held.Since(k.ended)
	k.known = k.known.Since(now - knownFor)
}

// begin sends a raise on its way, with the next call of Accepts.
func (k *Proposer) begin(w want) {
	k.seq++
	k.flight, k.busy, k.queued = w, true, false
	k.cast, k.generations, k.tries = k.cast[:0], nil, 0
}

// Accepts calls to for each message that is due: at once to all replicas that
// live, and each AcceptAgain to those that have not voted for the raise. The key
// is the caller's to fill in; the marks are never changed again.
func (k *Proposer) Accepts(at time.Duration, v *route.Routing, to func(crdt.Incarnation, sticky.Accept)) {
	if !k.busy {
		return
	}
	if k.number != v.Number() {
		k.number = v.Number()
		if k.tries > 0 {
			next, queued := k.next, k.queued
			k.begin(k.flight)
			k.next, k.queued = next, queued
		}
	}
	if k.tries > 0 && at-k.sent < AcceptAgain {
		return
	}
	if k.tries == giveUp {
		k.end()
		if !k.busy {
			return
		}
	}
	k.tries++
	k.sent = at
	r := sticky.Accept{Ballot: k.ballot, Seq: k.seq, Known: k.flight.known, Watermarks: k.flight.watermarks}
	for _, s := range v.Voters() {
		if c := k.voted(s.ID); s.Incarnation != 0 && (c == nil || c.why != sticky.NoReason || !k.counts(c)) {
			to(s.Incarnation, r)
		}
	}
}

// Due returns when Accepts has something to send next, and whether it has.
func (k *Proposer) Due() (time.Duration, bool) {
	if k.tries == 0 {
		return 0, k.busy
	}
	return k.sent + AcceptAgain, k.busy
}

// Accepted takes in a replica's answer.
func (k *Proposer) Accepted(vote *sticky.Accepted, v *route.Routing) Outcome {
	if !k.busy || vote.Ballot != k.ballot || vote.Seq != k.seq || k.number != v.Number() ||
		!slices.ContainsFunc(v.Voters(), func(s route.Voter) bool { return s.ID == vote.Voter }) {
		return Pending
	}
	if vote.Generations.Validate() != nil || vote.Held.Validate() != nil {
		return Pending
	}
	k.record(vote)
	ok, open, outvoted, ended := 0, 0, 0, 0
	for _, s := range v.Voters() {
		c := k.voted(s.ID)
		switch {
		case c == nil || !k.counts(c):
			if s.Incarnation != 0 {
				open++
			}
		case c.why == sticky.NoReason:
			ok++
		case c.why == sticky.Outvoted:
			outvoted++
		case c.why == sticky.Ended:
			ended++
		}
	}
	switch need := v.Majority(); {
	case ok >= need:
		k.held = k.held.Join(k.flight.watermarks)
		k.end()
		return Chosen
	case ok+open >= need && (outvoted == 0 || k.tries < 2):
		return Pending
	case outvoted > 0:
		k.lose()
		return Lost
	case ended > 0:
		k.end()
	}
	return Stuck
}

// record notes a vote, and what it tells of others.
func (k *Proposer) record(vote *sticky.Accepted) {
	for _, l := range vote.Generations {
		k.generations = k.generations.With(l.Voter, l.Generation)
	}
	c := cast{vote.Voter, vote.Generations.Of(vote.Voter), vote.Reason}
	if !vote.OK && c.why == sticky.NoReason {
		c.why = sticky.NotVoting
	}
	if vote.OK {
		c.why = sticky.NoReason
	}
	switch old := k.voted(vote.Voter); {
	case old == nil:
		k.cast = append(k.cast, c)
	case old.generation < c.generation || old.generation == c.generation && old.why != sticky.NoReason:
		*old = c
	}
	if !vote.OK {
		k.known, _ = k.known.Join(vote.Held).Latest(sticky.MaxWatermarks)
		if vote.Promised.Round <= sticky.MaxRound {
			k.top = max(k.top, vote.Promised.Round)
		}
	}
}

// lose gives the ballot up, and what was held with it.
func (k *Proposer) lose() {
	k.known, _ = k.known.Join(k.held).Latest(sticky.MaxWatermarks)
	k.top = max(k.top, k.ballot.Round)
	k.held, k.lost, k.busy, k.queued = nil, true, false, false
	k.flight = want{}
}

// end ends the raise in flight; what is queued follows.
func (k *Proposer) end() {
	k.busy, k.flight = false, want{}
	if !k.queued {
		return
	}
	w := k.next
	w.watermarks = w.watermarks.Since(k.ended)
	k.next, k.queued = want{}, false
	if len(w.watermarks) > 0 && !k.held.Above(w.watermarks) {
		k.begin(w)
	}
}

func (k *Proposer) voted(voter uint64) *cast {
	for i := range k.cast {
		if k.cast[i].voter == voter {
			return &k.cast[i]
		}
	}
	return nil
}

// counts reports whether a vote is not of an earlier life of its replica than
// another vote knows: that replica may have forgotten what it voted for.
func (k *Proposer) counts(c *cast) bool {
	return c.generation >= k.generations.Of(c.voter)
}
