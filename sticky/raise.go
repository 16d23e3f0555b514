package sticky

import (
	"time"

	"github.com/georld/rld/crdt"
)

// raise answers a home that wants marks held.
func (r *Replica) raise(m *Message, raise *Raise) {
	v := Vote{
		Key: raise.Key, Ballot: raise.Ballot, Seq: raise.Seq,
		Voter: NameHash(r.cfg.Name), Lives: r.meta.Lives,
	}
	if v.Why = r.mayVote(m.Number); v.Why == NoWhy {
		r.hold(raise, &v)
	}
	v.OK = v.Why == NoWhy
	if v.OK {
		r.stats.Votes++
	} else {
		r.stats.Refusals[v.Why]++
	}
	out := r.to(m.From)
	out.Votes = append(out.Votes, v)
}

// mayVote returns why the replica does not vote under the layout of a number.
func (r *Replica) mayVote(number uint64) Why {
	if r.broken&flawOpen != 0 && r.meta.Voting && number == r.layout.Number {
		return NoWhy
	}
	if number != r.newest().Number {
		return OtherLayout
	}
	if ok, _ := r.voting(); !ok {
		return NotVoting
	}
	return NoWhy
}

// hold takes the marks of a raise in, or says in the vote why not.
//
// A ballot below the one promised is refused. The first ballot of a keeper is
// taken only when its home knows all marks that are held, since somebody may
// have consumed up to them. What is held under a keeper's own earlier ballot, it
// knows. Marks that are over on this replica's clock need not be known: they
// are ended for good instead, whoever comes.
func (r *Replica) hold(raise *Raise, v *Vote) {
	l := r.records[raise.Key]
	if l == nil {
		if len(r.records) >= r.cfg.MaxLedgers {
			v.Why = Full
			return
		}
		l = &ledger{}
	}
	ended, marks := max(l.ended, r.meta.Ended), l.marks
	v.Promised, v.Held = l.ballot, marks.since(ended)
	older := raise.Ballot.Less(l.ballot)
	if older && r.broken&flawOlder == 0 {
		v.Why = Outvoted
		return
	}
	over := r.now - 2*r.cfg.MaxOffset.Milliseconds()
	if !older && !sameKeeper(raise.Ballot, l.ballot) && r.broken&flawBlank == 0 {
		for _, x := range marks.since(ended) {
			switch known := raise.Known.Amount(x.Label); {
			case known >= x.Amount:
			case x.End < over:
				ended = max(ended, x.End+1)
			default:
				v.Why = Outvoted
				return
			}
		}
	}
	joined := marks.since(ended).Join(raise.Marks)
	if len(joined) > MaxMarks {
		var last int64
		joined, last = joined.latest(MaxMarks)
		if last >= over {
			v.Why = Full
			return
		}
		ended = max(ended, last+1)
	}
	if first := raise.Marks.firstEnd(); first < ended {
		v.Why = Ended
		return
	}
	v.Promised, v.Held = Ballot{}, nil
	if ended == max(l.ended, r.meta.Ended) {
		ended = l.ended // nothing new
	}
	if l.ballot == raise.Ballot && ended == l.ended && marks.above(joined) {
		return
	}
	l.ballot, l.marks, l.ended = raise.Ballot, joined, ended
	r.records[raise.Key] = l
	r.put(raise.Key, l)
}

// sameKeeper reports whether two ballots are of one keeper, who hence knows
// what was marked under either.
func sameKeeper(a, b Ballot) bool { return a.Home == b.Home && a.Term == b.Term && a.Home != 0 }

// validate returns what is wrong with a raise of a sender, NoRefusal for nothing.
func (raise *Raise) validate(from crdt.Slot) Refusal {
	switch b := raise.Ballot; {
	case b.Home != from || b.Home == 0 || b.Round == 0 || b.Round > MaxRound:
		return BadBallot
	case len(raise.Marks) == 0, raise.Marks.Validate() != nil, raise.Known.Validate() != nil:
		return BadMarks
	}
	return NoRefusal
}

// The pace of forgetting.
const (
	pruneEvery = time.Minute
	// pruneLag is how long after their end marks are forgotten, beside twice the
	// greatest offset of clocks, in milliseconds.
	pruneLag = 60_000
)

// prune forgets marks that ended long ago. Ledgers without any go.
func (r *Replica) prune() {
	to := r.now - 2*r.cfg.MaxOffset.Milliseconds() - pruneLag
	if to-r.meta.Ended < pruneEvery.Milliseconds() || r.failed != nil {
		return
	}
	r.meta.Ended = to
	r.putMeta()
	for key, l := range r.records {
		l.marks = l.marks.since(to)
		if len(l.marks) == 0 && l.ended <= to {
			delete(r.records, key)
		}
	}
}
