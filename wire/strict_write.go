package wire

import (
	"encoding/binary"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

// The messages of strict.proto as an encoder writes them.

// word writes 8 bytes, or nothing for 0.
func (e *encoder) word(t tag, v uint64) {
	if v != 0 {
		e.b = binary.LittleEndian.AppendUint64(append(e.b, byte(t)), v)
	}
}

func (e *encoder) sint(t tag, v int64) { e.uint(t, zigzag(v)) }

// text writes a string, also an empty one: that is for an item of a list.
func (e *encoder) text(t tag, s string) {
	e.b = binary.AppendUvarint(append(e.b, byte(t)), uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) ledger(hi, lo tag, k crdt.Key) {
	e.word(hi, k.Hi)
	e.word(lo, k.Lo)
}

func (e *encoder) ballot(round, home, term tag, b sticky.Ballot) {
	e.uint(round, b.Round)
	e.word(home, uint64(b.Home))
	e.uint(term, b.Term)
}

func (e *encoder) ask(a *sticky.Ask) {
	at := e.open(strictAsks)
	e.uint(askID, a.ID)
	e.word(askHolder, uint64(a.Holder))
	e.word(askHome, uint64(a.Home))
	e.ledger(askHi, askLo, a.Key)
	e.word(askRule, a.Rule)
	e.flag(askFloor, a.Floor)
	e.sint(askLabel, a.Label)
	e.uint(askWant, a.Want)
	e.uint(askNeed, a.Need)
	e.uint(askExtra, a.Extra)
	e.uint(askReturned, a.Returned)
	e.uint(askWithin, uint64(a.Within))
	e.uint(askHops, uint64(a.Hops))
	e.uint(askStock, a.Stock)
	e.close(at)
}

// The flags of a grant.
const (
	flagFloor = 1 << iota
	flagDenied
	flagNever

	allFlags = flagFloor | flagDenied | flagNever
)

func (e *encoder) grant(g *sticky.Grant) {
	at := e.open(strictGrants)
	e.uint(grantID, g.ID)
	e.word(grantHome, uint64(g.Home))
	e.uint(grantRound, g.Round)
	e.ledger(grantHi, grantLo, g.Key)
	e.word(grantRule, g.Rule)
	flags := uint64(0)
	if g.Floor {
		flags |= flagFloor
	}
	if g.Denied {
		flags |= flagDenied
	}
	if g.Never {
		flags |= flagNever
	}
	e.uint(grantFlags, flags)
	e.sint(grantLabel, g.Label)
	e.sint(grantUntil, g.Until)
	e.uint(grantTotal, g.Total)
	e.sint(grantRetry, g.Retry)
	e.uint(grantRemaining, g.Remaining)
	e.sint(grantReset, g.Reset)
	e.uint(grantWhy, uint64(g.Why))
	e.uint(grantKeep, g.Keep)
	e.close(at)
}

func (e *encoder) marks(t tag, marks sticky.Marks) {
	for i := range marks {
		at := e.open(t)
		e.sint(markLabel, marks[i].Label)
		e.uint(markAmount, marks[i].Amount)
		e.sint(markEnd, marks[i].End)
		e.close(at)
	}
}

func (e *encoder) raise(r *sticky.Raise) {
	at := e.open(strictRaises)
	e.ledger(raiseHi, raiseLo, r.Key)
	e.ballot(raiseRound, raiseHome, raiseTerm, r.Ballot)
	e.uint(raiseSeq, r.Seq)
	e.marks(raiseKnown, r.Known)
	e.marks(raiseMarks, r.Marks)
	e.close(at)
}

func (e *encoder) vote(v *sticky.Vote) {
	at := e.open(strictVotes)
	e.ledger(voteHi, voteLo, v.Key)
	e.ballot(voteRound, voteHome, voteTerm, v.Ballot)
	e.uint(voteSeq, v.Seq)
	e.word(voteVoter, v.Voter)
	e.flag(voteOK, v.OK)
	e.uint(voteWhy, uint64(v.Why))
	e.ballot(votePromisedRound, votePromisedHome, votePromisedTerm, v.Promised)
	e.marks(voteHeld, v.Held)
	e.lives(voteLives, v.Lives)
	e.close(at)
}

func (e *encoder) lives(t tag, lives []sticky.Life) {
	for i := range lives {
		at := e.open(t)
		e.word(lifeVoter, lives[i].Voter)
		e.uint(lifeLife, lives[i].Life)
		e.close(at)
	}
}

func (e *encoder) copy(c *sticky.Copy) {
	at := e.open(strictCopies)
	e.word(copyVoter, c.Voter)
	e.uint(copyLife, c.Life)
	e.uint(copyNumber, c.Number)
	e.ledger(copyHi, copyLo, c.After)
	e.flag(copyBegin, c.Begin)
	e.close(at)
}

func (e *encoder) page(p *sticky.Page) {
	at := e.open(strictPages)
	e.word(pageVoter, p.Voter)
	e.uint(pageNumber, p.Number)
	e.ledger(pageHi, pageLo, p.After)
	e.flag(pageBegin, p.Begin)
	e.uint(pageWhy, uint64(p.Why))
	for i := range p.Records {
		record := e.open(pageRecords)
		e.record(&p.Records[i])
		e.close(record)
	}
	e.flag(pageLast, p.Last)
	e.sint(pageEnded, p.Ended)
	e.lives(pageLives, p.Lives)
	e.close(at)
}

func (e *encoder) record(r *sticky.Record) {
	e.ledger(recordHi, recordLo, r.Key)
	e.ballot(recordRound, recordHome, recordTerm, r.Ballot)
	e.marks(recordMarks, r.Marks)
	e.sint(recordEnded, r.Ended)
}

func (e *encoder) layout(l *sticky.Layout) {
	e.uint(layoutNumber, l.Number)
	for i := range l.Regions {
		g := &l.Regions[i]
		at := e.open(layoutRegions)
		if g.Name != "" {
			e.text(regionName, g.Name)
		}
		e.uint(regionWeight, uint64(g.Weight))
		for _, name := range g.Replicas {
			e.text(regionReplicas, name)
		}
		for _, name := range g.Former {
			e.text(regionFormer, name)
		}
		e.lives(regionLives, g.Lives)
		e.close(at)
	}
	for i := range l.Pins {
		at := e.open(layoutPins)
		e.word(pinRule, l.Pins[i].Rule)
		if l.Pins[i].Region != "" {
			e.text(pinRegion, l.Pins[i].Region)
		}
		e.close(at)
	}
}

func (e *encoder) meta(m *sticky.Meta) {
	e.uint(metaLife, m.Life)
	e.flag(metaVoting, m.Voting)
	e.sint(metaEnded, m.Ended)
	e.lives(metaLives, m.Lives)
}
