package quorum

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

// accept answers an Accept.
func (r *Acceptor) accept(m *sticky.Message, accept *sticky.Accept) {
	v := sticky.Accepted{
		Key: accept.Key, Ballot: accept.Ballot, Seq: accept.Seq,
		Voter: r.voter,
	}
	for _, g := range accept.Generations {
		r.note(g)
	}
	if v.Reason = r.mayVote(m.Number); v.Reason == sticky.NoReason {
		r.hold(accept, &v)
	}
	v.OK = v.Reason == sticky.NoReason
	if v.OK {
		r.stats.Votes++
	} else {
		r.stats.Refusals[v.Reason]++
	}
	out := r.to(m.From)
	out.Accepted = append(out.Accepted, v)
}

// mayVote returns the reason why the acceptor does not vote under a layout,
// NoReason if it does.
func (r *Acceptor) mayVote(number uint64) sticky.Reason {
	if number != r.newest().Number {
		return sticky.OtherLayout
	}
	if ok, _ := r.voting(); !ok {
		return sticky.NotVoting
	}
	return sticky.NoReason
}

// hold accepts watermarks, or sets the reason in v.
//
// A ballot below the promised one is refused. The first ballot of a proposer is
// accepted only if its owner knows all watermarks held here, since another
// owner may have consumed up to them; a proposer knows those accepted under its
// own ballots. Watermarks that have ended by the median clock of the region
// need not be known. They end for good instead: later Accepts of them are
// refused.
func (r *Acceptor) hold(accept *sticky.Accept, v *sticky.Accepted) {
	l, shared := recordOf(r, accept.Key)
	v.Shared = shared
	ended, watermarks := max(l.Ended, r.meta.Ended), l.Watermarks
	v.Promised, v.Held = l.Ballot, watermarks.Since(ended)
	if accept.Ballot.Less(l.Ballot) {
		v.Reason = sticky.Outvoted
		return
	}
	over := r.clocks.passed(r.at, r.now) - 2*r.cfg.MaxOffset.Milliseconds()
	if !accept.Ballot.SameProposer(l.Ballot) {
		for _, x := range watermarks.Since(ended) {
			switch known := accept.Known.Amount(x.Window); {
			case known >= x.Amount:
			case x.End < over:
				ended = max(ended, x.End+1)
			case len(accept.Known) >= sticky.MaxWatermarks && x.Window < accept.Known[0].Window:
				v.Reason = sticky.Full // the owner knows as many as it can
				return
			default:
				v.Reason = sticky.Outvoted
				return
			}
		}
	}
	joined := watermarks.Since(ended).Join(accept.Watermarks)
	if len(joined) > sticky.MaxWatermarks {
		var last int64
		joined, last = joined.Latest(sticky.MaxWatermarks)
		if last >= over {
			v.Reason = sticky.Full
			return
		}
		ended = max(ended, last+1)
	}
	if first := accept.Watermarks.FirstEnd(); first < ended {
		v.Reason = sticky.Ended
		return
	}
	v.Promised, v.Held, v.Shared = sticky.Ballot{}, nil, false
	if ended == max(l.Ended, r.meta.Ended) {
		ended = l.Ended // nothing new
	}
	if l.Ballot == accept.Ballot && ended == l.Ended && watermarks.Above(joined) {
		return
	}
	l.Ballot, l.Watermarks, l.Ended = accept.Ballot, joined, ended
	r.records[l.Key] = l
	r.put(l)
}

// validateAccept returns why an Accept of a sender is rejected, NoRejection if
// it is not.
func validateAccept(accept *sticky.Accept, from crdt.Incarnation) Rejection {
	switch b := accept.Ballot; {
	case b.Owner != from || b.Owner == 0 || b.Round == 0 || b.Round > sticky.MaxRound:
		return BadBallot
	case len(accept.Watermarks) == 0, accept.Watermarks.Validate() != nil, accept.Known.Validate() != nil, accept.Generations.Validate() != nil:
		return BadWatermarks
	}
	return NoRejection
}

// The pace at which ended watermarks are forgotten.
const (
	pruneEvery = time.Minute
	// pruneLag is how long after their end watermarks are forgotten, beside
	// twice the greatest offset of clocks, in milliseconds.
	pruneLag = 60_000
)

// prune forgets watermarks that ended long ago, and keys without any. It does
// not begin before a daemon that has just started knows the clocks of others.
func (r *Acceptor) prune() {
	to := r.clocks.passed(r.at, r.now) - 2*r.cfg.MaxOffset.Milliseconds() - pruneLag
	if r.at-r.started < pruneEvery || to-r.meta.Ended < pruneEvery.Milliseconds() || r.failed != nil {
		return
	}
	r.meta.Ended = to
	r.putMeta()
	for key, l := range r.records {
		l.Watermarks = l.Watermarks.Since(to)
		if len(l.Watermarks) == 0 && l.Ended <= to {
			delete(r.records, key)
		}
	}
}
