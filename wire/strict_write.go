package wire

import (
	"encoding/binary"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

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

func (e *encoder) ballot(round, owner, term tag, b sticky.Ballot) {
	e.uint(round, b.Round)
	e.word(owner, uint64(b.Owner))
	e.uint(term, b.Term)
}

func (e *encoder) ask(a *sticky.LeaseRequest) {
	at := e.open(strictAsks)
	e.uint(askID, a.ID)
	e.word(askHolder, uint64(a.Lessee))
	e.word(askOwner, uint64(a.Owner))
	e.ledger(askHi, askLo, a.Key)
	e.word(askRule, a.Rule)
	e.flag(askReserve, a.Reserve)
	e.sint(askWindow, a.Window)
	e.uint(askWant, a.Want)
	e.uint(askNeed, a.Need)
	e.uint(askExtra, a.Extra)
	e.uint(askReturned, a.Returned)
	e.uint(askWithin, uint64(a.Within))
	e.uint(askHops, uint64(a.Hops))
	e.uint(askPrefetch, a.Prefetch)
	e.close(at)
}

// The flags of a grant.
const (
	flagReserve = 1 << iota
	flagDenied
	flagNever

	allFlags = flagReserve | flagDenied | flagNever
)

func (e *encoder) grant(g *sticky.LeaseGrant) {
	at := e.open(strictGrants)
	e.uint(grantID, g.ID)
	e.word(grantOwner, uint64(g.Owner))
	e.uint(grantRound, g.Round)
	e.ledger(grantHi, grantLo, g.Key)
	e.word(grantRule, g.Rule)
	flags := uint64(0)
	if g.Reserve {
		flags |= flagReserve
	}
	if g.Denied {
		flags |= flagDenied
	}
	if g.Never {
		flags |= flagNever
	}
	e.uint(grantFlags, flags)
	e.sint(grantWindow, g.Window)
	e.sint(grantUntil, g.Until)
	e.uint(grantTotal, g.Total)
	e.sint(grantRetry, g.Retry)
	e.uint(grantRemaining, g.Remaining)
	e.sint(grantReset, g.Reset)
	e.uint(grantWhy, uint64(g.Reason))
	e.uint(grantKeep, g.Keep)
	e.close(at)
}

func (e *encoder) watermarks(t tag, watermarks sticky.Watermarks) {
	for i := range watermarks {
		at := e.open(t)
		e.sint(watermarkWindow, watermarks[i].Window)
		e.uint(watermarkAmount, watermarks[i].Amount)
		e.sint(watermarkEnd, watermarks[i].End)
		e.close(at)
	}
}

func (e *encoder) accept(r *sticky.Accept) {
	at := e.open(strictAccepts)
	e.ledger(acceptHi, acceptLo, r.Key)
	e.ballot(acceptRound, acceptOwner, acceptTerm, r.Ballot)
	e.uint(acceptSeq, r.Seq)
	e.watermarks(acceptKnown, r.Known)
	e.watermarks(acceptWatermarks, r.Watermarks)
	e.close(at)
}

func (e *encoder) vote(v *sticky.Accepted) {
	at := e.open(strictVotes)
	e.ledger(voteHi, voteLo, v.Key)
	e.ballot(voteRound, voteOwner, voteTerm, v.Ballot)
	e.uint(voteSeq, v.Seq)
	e.word(voteVoter, v.Voter)
	e.flag(voteOK, v.OK)
	e.uint(voteWhy, uint64(v.Reason))
	e.ballot(votePromisedRound, votePromisedOwner, votePromisedTerm, v.Promised)
	e.watermarks(voteHeld, v.Held)
	e.generations(voteGenerations, v.Generations)
	e.close(at)
}

func (e *encoder) generations(t tag, generations []route.Generation) {
	for i := range generations {
		at := e.open(t)
		e.word(generationVoter, generations[i].Voter)
		e.uint(generationGeneration, generations[i].Generation)
		e.close(at)
	}
}

func (e *encoder) copy(c *sticky.SnapshotRequest) {
	at := e.open(strictCopies)
	e.word(copyVoter, c.Voter)
	e.uint(copyGeneration, c.Generation)
	e.uint(copyNumber, c.Number)
	e.ledger(copyHi, copyLo, c.After)
	e.flag(copyBegin, c.Begin)
	e.close(at)
}

func (e *encoder) page(p *sticky.SnapshotChunk) {
	at := e.open(strictPages)
	e.word(pageVoter, p.Voter)
	e.uint(pageNumber, p.Number)
	e.ledger(pageHi, pageLo, p.After)
	e.flag(pageBegin, p.Begin)
	e.uint(pageWhy, uint64(p.Reason))
	for i := range p.Records {
		record := e.open(pageRecords)
		e.record(&p.Records[i])
		e.close(record)
	}
	e.flag(pageLast, p.Last)
	e.sint(pageEnded, p.Ended)
	e.generations(pageGenerations, p.Generations)
	e.close(at)
}

func (e *encoder) record(r *sticky.Record) {
	e.ledger(recordHi, recordLo, r.Key)
	e.ballot(recordRound, recordOwner, recordTerm, r.Ballot)
	e.watermarks(recordWatermarks, r.Watermarks)
	e.sint(recordEnded, r.Ended)
}

func (e *encoder) layout(l *route.Layout) {
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
		e.generations(regionGenerations, g.Generations)
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

func (e *encoder) meta(m *quorum.Meta) {
	e.uint(metaGeneration, m.Generation)
	e.flag(metaVoting, m.Voting)
	e.sint(metaEnded, m.Ended)
	e.generations(metaGenerations, m.Generations)
}
