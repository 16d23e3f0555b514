package audit

import (
	"cmp"

	"github.com/georld/rld/control"
	"github.com/georld/rld/sim"
)

// promises checks the messages of voters and founders of the control log. A
// voter goes to no earlier term and votes once in each, a term has one leader,
// and a founder accepts nothing below a ballot that it promised. A daemon whose
// disk was lost, damaged or replaced is not checked: it forgets its promises.
type promises struct {
	finding
	terms    map[uint64]uint64                      // the greatest one that a voter sent
	votes    map[term]uint64                        // the candidate, by voter and term
	leaders  map[control.Recovery]map[uint64]uint64 // the voter, by recovery and term
	promised map[control.ID]control.Ballot          // the greatest one
}

// term is a term of a voter.
type term struct{ voter, term uint64 }

func newPromises(f finding) promises {
	return promises{
		finding: f, terms: make(map[uint64]uint64), votes: make(map[term]uint64),
		leaders: make(map[control.Recovery]map[uint64]uint64), promised: make(map[control.ID]control.Ballot),
	}
}

// sent checks a message of a daemon.
func (p *promises) sent(d *sim.Daemon, m *control.Message) {
	if forgets(d) {
		return
	}
	for _, r := range m.Raft {
		p.raft(d, m.Log, term{r.GetFrom(), r.GetTerm()}, r.GetTo(), r.GetType().String(), r.GetReject())
	}
	if f := m.Founding; f != nil {
		p.founding(d, m.Sender.ID, f)
	}
}

// raft checks a message of raft of a kind.
func (p *promises) raft(d *sim.Daemon, log control.Recovery, of term, to uint64, kind string, rejects bool) {
	switch kind {
	case "MsgPreVote", "MsgPreVoteResp":
		return // of a term that may never be
	case "MsgAppResp":
		return // raft returns it behind messages of a later term
	case "MsgVote":
		p.vote(d, of, of.voter)
	case "MsgVoteResp":
		if !rejects {
			p.vote(d, of, to)
		}
		return // as of MsgAppResp
	case "MsgApp", "MsgHeartbeat", "MsgSnap":
		all := p.leaders[log]
		if all == nil {
			all = make(map[uint64]uint64)
			p.leaders[log] = all
		}
		was, known := all[of.term]
		p.check(!known || was == of.voter, "%s leads term %d as %x, and %x does", d.Name, of.term, of.voter, was)
		all[of.term] = of.voter
	default:
	}
	p.check(of.term >= p.terms[of.voter], "%s goes from term %d to %d", d.Name, p.terms[of.voter], of.term)
	p.terms[of.voter] = of.term
}

// vote checks that a voter has one candidate in a term.
func (p *promises) vote(d *sim.Daemon, in term, candidate uint64) {
	was, known := p.votes[in]
	p.check(!known || was == candidate, "%s votes in term %d for %x, and voted for %x", d.Name, in.term, candidate, was)
	p.votes[in] = candidate
}

func (p *promises) founding(d *sim.Daemon, id control.ID, f *control.FoundingMessage) {
	was := p.promised[id]
	order := cmp.Or(cmp.Compare(f.Ballot.Round, was.Round), f.Ballot.Proposer.Compare(was.Proposer))
	switch f.Step {
	case "promise", "accepted":
		p.check(order >= 0, "%s answers %q of round %d, and promised round %d", d.Name, f.Step, f.Ballot.Round, was.Round)
		p.promised[id] = f.Ballot
	default:
	}
}
