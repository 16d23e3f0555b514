package quorum

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Proposer is an owner's hold on one key, in memory: its ballot, and the
// watermarks that a majority of the region's voters has stored under it. An
// owner consumes only below Held. It asks for more with Want, sends the
// messages of Accepts, and passes the answers to Accepted.
//
// After the ballot is Lost, the owner counts Known as consumed before it calls
// Want again; so it does when a new proposer learns the watermarks of others. A
// restarted owner has another incarnation and empty proposers. A change of
// layout does not affect Held, since the new voters copied it; the next Want
// goes to them.
//
// The zero value with a Term is ready to use. It is not safe for concurrent
// use.
type Proposer struct {
	// Term numbers all proposers that this incarnation of the daemon ever
	// started, from 1. No two of them share it.
	Term uint64

	number uint64 // of the layout of the attempt under way
	ballot sticky.Ballot
	lost   bool   // the ballot is of no use any more
	top    uint64 // the highest round of any ballot received
	seq    uint64
	held   sticky.Watermarks
	known  sticky.Watermarks
	shared bool  // known may have watermarks of other keys
	ended  int64 // watermarks that ended before are not wanted any more

	flight      want              // the attempt under way, of seq; empty for none
	next        want              // the attempt after it, empty for none
	cast        []cast            // the votes of seq
	generations route.Generations // that all answers so far reported
	sent        time.Duration
	tries       int
}

// want is the watermarks of one attempt, never empty, and the consumption known
// with it.
type want struct{ known, watermarks sticky.Watermarks }

// cast is a voter's last answer to the attempt under way.
type cast struct {
	voter, generation uint64
	why               sticky.Reason // NoReason: it stored the watermarks
}

// Outcome is the effect of an Accepted.
type Outcome uint8

// The outcomes.
const (
	// Pending: nothing changed.
	Pending Outcome = iota
	// Chosen: a majority stored the watermarks, and Held grew.
	Chosen
	// Lost: the ballot was outvoted and holds nothing any more. Known, which
	// includes the former Held, must be counted as consumed before the next
	// Want, which takes a higher ballot.
	Lost
	// Stuck: too many voters cannot vote, or the watermarks have ended. In the
	// first case the attempt goes on for a while.
	Stuck
	// Crowded: too many voters have no room for the key. The attempt is over.
	Crowded
)

// The pace of attempts.
const (
	// AcceptAgain is the time between two messages to voters without an answer.
	AcceptAgain = 50 * time.Millisecond
	// giveUp is the number of messages after which an attempt is dropped. An
	// owner that still needs it calls Want again.
	giveUp = 20
	// knownFor is how long watermarks are known after their end, in
	// milliseconds: about as long as voters hold them.
	knownFor = 5 * 60_000
)

// Held returns the watermarks that a majority has stored under the ballot. They
// must not be changed.
func (k *Proposer) Held() sticky.Watermarks { return k.held }

// Known returns the watermarks of others, as far as refusals reported them, and
// after Lost all that was held. They must not be changed.
func (k *Proposer) Known() sticky.Watermarks { return k.known }

// Shared reports that Known may have watermarks of other keys: voters have no
// room for the key.
func (k *Proposer) Shared() bool { return k.shared }

// Ballot returns the ballot, the zero value before the first Want.
func (k *Proposer) Ballot() sticky.Ballot { return k.ballot }

// Busy reports whether an attempt is under way.
func (k *Proposer) Busy() bool { return len(k.flight.watermarks) > 0 }

// Want requests watermarks. consumed is all that the owner counts as consumed,
// by itself and by others. An attempt under way goes on, and the last Want
// follows it. Watermarks that ended before now, in Unix milliseconds, are left
// out for good.
//
// The end of a window is always the same, or grows with its amount.
func (k *Proposer) Want(self crdt.Incarnation, now int64, consumed, watermarks sticky.Watermarks) {
	if k.ballot.Owner != self {
		*k = Proposer{Term: k.Term, ballot: sticky.Ballot{Round: 1, Owner: self, Term: k.Term}, ended: k.ended}
	}
	watermarks, _ = watermarks.Latest(sticky.MaxWatermarks)
	k.prune(now, watermarks)
	watermarks = watermarks.Since(k.ended)
	switch {
	case len(watermarks) == 0, !k.lost && k.held.Above(watermarks), k.flight.watermarks.Above(watermarks):
		k.next = want{}
		return
	}
	known, _ := consumed.Latest(sticky.MaxWatermarks)
	w := want{slices.Clone(known), slices.Clone(watermarks)}
	if k.lost {
		k.ballot.Round, k.lost = k.top+1, false
	}
	if k.Busy() {
		k.next = w
		return
	}
	k.begin(w)
}

// prune forgets watermarks that ended before now.
func (k *Proposer) prune(now int64, watermarks sticky.Watermarks) {
	for _, m := range [...]sticky.Watermarks{k.held, k.flight.watermarks, watermarks} {
		for _, x := range m {
			if x.End < now {
				k.ended = max(k.ended, x.End+1)
			}
		}
	}
	k.held = k.held.Since(k.ended)
	k.known = k.known.Since(now - knownFor)
	k.shared = k.shared && len(k.known) > 0
}

// begin starts an attempt. The next call of Accepts sends it.
func (k *Proposer) begin(w want) {
	k.seq++
	k.flight = w
	k.cast, k.tries = k.cast[:0], 0
}

// Accepts calls to for each message that is due: at once for all live voters,
// and every AcceptAgain for those that have not answered. The caller fills in
// the key. The watermarks are never changed again.
func (k *Proposer) Accepts(at time.Duration, v *route.Routing, to func(crdt.Incarnation, sticky.Accept)) {
	if !k.Busy() {
		return
	}
	if k.number != v.Number() {
		k.number = v.Number()
		if k.tries > 0 {
			k.begin(k.flight)
		}
	}
	if k.tries > 0 && at-k.sent < AcceptAgain {
		return
	}
	if k.tries == giveUp {
		k.end()
		if !k.Busy() {
			return
		}
	}
	k.tries++
	k.sent = at
	r := sticky.Accept{Ballot: k.ballot, Seq: k.seq, Known: k.flight.known, Watermarks: k.flight.watermarks, Generations: k.generations}
	for _, s := range v.Voters() {
		if c := k.voted(s.ID); s.Incarnation != 0 && (c == nil || c.why != sticky.NoReason || !k.counts(c)) {
			to(s.Incarnation, r)
		}
	}
}

// Accepted handles a voter's answer.
func (k *Proposer) Accepted(vote *sticky.Accepted, v *route.Routing) Outcome {
	if !k.Busy() || vote.Ballot != k.ballot || vote.Seq != k.seq || k.number != v.Number() ||
		!slices.ContainsFunc(v.Voters(), func(s route.Voter) bool { return s.ID == vote.Voter }) {
		return Pending
	}
	if vote.Generations.Validate() != nil || vote.Held.Validate() != nil {
		return Pending
	}
	k.record(vote)
	ok, open, outvoted, ended, full := 0, 0, 0, 0, 0
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
		case c.why == sticky.Full:
			full++
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
	case full > 0:
		k.end()
		return Crowded
	}
	return Stuck
}

// record records an answer, and the watermarks and store numbers in it.
func (k *Proposer) record(vote *sticky.Accepted) {
	for _, g := range vote.Generations {
		k.generations = k.generations.With(g)
	}
	if k.generations.Full() { // of voters that are none any more
		k.generations = vote.Generations
	}
	c := cast{vote.Voter, vote.Generations.Of(vote.Voter), cmp.Or(vote.Reason, sticky.NotVoting)}
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
		k.shared = k.shared || vote.Shared && len(vote.Held) > 0
		if vote.Promised.Round <= sticky.MaxRound {
			k.top = max(k.top, vote.Promised.Round)
		}
	}
}

// lose gives up the ballot and the watermarks held under it.
func (k *Proposer) lose() {
	k.known, _ = k.known.Join(k.held).Latest(sticky.MaxWatermarks)
	k.top = max(k.top, k.ballot.Round)
	k.held, k.lost, k.flight, k.next = nil, true, want{}, want{}
}

// end ends the attempt under way and starts the queued one.
func (k *Proposer) end() {
	w := k.next
	k.flight, k.next = want{}, want{}
	w.watermarks = w.watermarks.Since(k.ended)
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

// counts reports whether no other answer has a later store number of the voter,
// which may have forgotten its vote then.
func (k *Proposer) counts(c *cast) bool {
	return c.generation >= k.generations.Of(c.voter)
}
