package wire

import (
	"fmt"
	"math"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

// The messages of strict.proto as a reader finds them.

// fixed returns a field of 8 bytes, 0 when it is left out.
func (r *reader) fixed(t tag) uint64 {
	if !r.next(t) {
		return 0
	}
	v := r.word()
	if v == 0 {
		r.fail("field %d is 0 or no number, want it left out", t.number())
	}
	return v
}

func (r *reader) sint(t tag) int64 { return unzigzag(r.uint(t)) }

// upTo returns a number that is at most limit.
func (r *reader) upTo(t tag, limit uint64) uint64 {
	v := r.uint(t)
	if v > limit {
		r.fail("field %d is %d, want at most %d", t.number(), v, limit)
		return 0
	}
	return v
}

func (r *reader) key(hi, lo tag) crdt.Key { return crdt.Key{Hi: r.fixed(hi), Lo: r.fixed(lo)} }

func (r *reader) why(t tag) sticky.Reason { return sticky.Reason(r.upTo(t, uint64(sticky.MaxReason))) }

// text returns a string, "" when it is left out.
func (r *reader) text(t tag) string {
	content := r.content(t)
	if content != nil && len(content) == 0 {
		r.fail("field %d is empty, want it left out", t.number())
	}
	return string(content)
}

// texts returns the strings of a list.
func (r *reader) texts(t tag) []string {
	n := r.repeats(t)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, string(r.content(t)))
	}
	return list
}

// repeats returns how many fields t come next.
func (r *reader) repeats(t tag) int {
	n := 0
	for b := r.b; len(b) > 0 && b[0] == byte(t); n++ {
		size, used := uvarint(b[1:])
		b = b[1+used:]
		if used == 0 || size > uint64(len(b)) {
			r.fail("field %d is cut, or its length not as short as can be", t.number())
			return 0
		}
		b = b[size:]
	}
	return n
}

// readList returns the items of a list of at most limit, nil for none.
func readList[T any](r *reader, t tag, limit int, read func(*reader, *T)) []T {
	n := r.repeats(t)
	if n > limit {
		r.d.exceed(fmt.Sprintf("fields %d", t.number()), n, limit)
		r.b = nil
		return nil
	}
	if n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		content := r.content(t)
		rest := r.b
		r.b = content
		read(r, &list[i])
		r.end()
		if r.d.err != nil {
			r.b = nil
			return nil
		}
		r.b = rest
	}
	return list
}

func readAsk(r *reader, a *sticky.LeaseRequest) {
	a.ID = r.uint(askID)
	a.Lessee = crdt.Incarnation(r.fixed(askHolder))
	a.Owner = crdt.Incarnation(r.fixed(askOwner))
	a.Key = r.key(askHi, askLo)
	a.Rule = r.fixed(askRule)
	a.Reserve = r.flag(askReserve)
	a.Window = r.sint(askWindow)
	a.Want = r.uint(askWant)
	a.Need = r.uint(askNeed)
	a.Extra = r.uint(askExtra)
	a.Returned = r.uint(askReturned)
	a.Within = uint32(r.upTo(askWithin, math.MaxUint32))
	a.Hops = uint8(r.upTo(askHops, math.MaxUint8))
	a.Prefetch = r.uint(askPrefetch)
}

func readGrant(r *reader, g *sticky.LeaseGrant) {
	g.ID = r.uint(grantID)
	g.Owner = crdt.Incarnation(r.fixed(grantOwner))
	g.Round = r.uint(grantRound)
	g.Key = r.key(grantHi, grantLo)
	g.Rule = r.fixed(grantRule)
	flags := r.upTo(grantFlags, allFlags)
	g.Reserve = flags&flagReserve != 0
	g.Denied = flags&flagDenied != 0
	g.Never = flags&flagNever != 0
	g.Window = r.sint(grantWindow)
	g.Until = r.sint(grantUntil)
	g.Total = r.uint(grantTotal)
	g.Retry = r.sint(grantRetry)
	g.Remaining = r.uint(grantRemaining)
	g.Reset = r.sint(grantReset)
	g.Reason = r.why(grantWhy)
	g.Keep = r.uint(grantKeep)
}

// watermarks returns the marks of a list. Their number is the caller's to bound.
func (r *reader) watermarks(t tag) sticky.Watermarks {
	return readList(r, t, math.MaxInt, readWatermark)
}

func readWatermark(r *reader, m *sticky.Watermark) {
	m.Window = r.sint(watermarkWindow)
	m.Amount = r.uint(watermarkAmount)
	m.End = r.sint(watermarkEnd)
}

func readAccept(r *reader, a *sticky.Accept) {
	a.Key = r.key(acceptHi, acceptLo)
	a.Ballot = r.ballot(acceptRound, acceptOwner, acceptTerm)
	a.Seq = r.uint(acceptSeq)
	a.Known = r.watermarks(acceptKnown)
	a.Watermarks = r.watermarks(acceptWatermarks)
}

func (r *reader) ballot(round, owner, term tag) sticky.Ballot {
	return sticky.Ballot{Round: r.uint(round), Owner: crdt.Incarnation(r.fixed(owner)), Term: r.uint(term)}
}

func readVote(r *reader, v *sticky.Accepted) {
	v.Key = r.key(voteHi, voteLo)
	v.Ballot = r.ballot(voteRound, voteOwner, voteTerm)
	v.Seq = r.uint(voteSeq)
	v.Voter = r.fixed(voteVoter)
	v.OK = r.flag(voteOK)
	v.Reason = r.why(voteWhy)
	v.Promised = r.ballot(votePromisedRound, votePromisedOwner, votePromisedTerm)
	v.Held = r.watermarks(voteHeld)
	v.Generations = readList(r, voteGenerations, math.MaxInt, readGeneration)
}

func readGeneration(r *reader, l *route.Generation) {
	l.Voter = r.fixed(generationVoter)
	l.Generation = r.uint(generationGeneration)
}

func readCopy(r *reader, c *sticky.SnapshotRequest) {
	c.Voter = r.fixed(copyVoter)
	c.Generation = r.uint(copyGeneration)
	c.Number = r.uint(copyNumber)
	c.After = r.key(copyHi, copyLo)
	c.Begin = r.flag(copyBegin)
}

func readPage(r *reader, p *sticky.SnapshotChunk) {
	p.Voter = r.fixed(pageVoter)
	p.Number = r.uint(pageNumber)
	p.After = r.key(pageHi, pageLo)
	p.Begin = r.flag(pageBegin)
	p.Reason = r.why(pageWhy)
	p.Records = readList(r, pageRecords, sticky.MaxRecords, readRecord)
	p.Last = r.flag(pageLast)
	p.Ended = r.sint(pageEnded)
	p.Generations = readList(r, pageGenerations, math.MaxInt, readGeneration)
}

func readRecord(r *reader, is *sticky.Record) {
	is.Key = r.key(recordHi, recordLo)
	is.Ballot = r.ballot(recordRound, recordOwner, recordTerm)
	is.Watermarks = r.watermarks(recordWatermarks)
	is.Ended = r.sint(recordEnded)
}

func readLayout(r *reader, l *route.Layout) {
	l.Number = r.uint(layoutNumber)
	l.Regions = readList(r, layoutRegions, math.MaxInt, readRegion)
	l.Pins = readList(r, layoutPins, math.MaxInt, readPin)
}

func readRegion(r *reader, g *route.Region) {
	g.Name = r.text(regionName)
	g.Weight = uint32(r.upTo(regionWeight, math.MaxUint32))
	g.Replicas = r.texts(regionReplicas)
	g.Former = r.texts(regionFormer)
	g.Generations = readList(r, regionGenerations, math.MaxInt, readGeneration)
}

func readPin(r *reader, p *route.Pin) {
	p.Rule = r.fixed(pinRule)
	p.Region = r.text(pinRegion)
}

func readMeta(r *reader, m *quorum.Meta) {
	m.Generation = r.uint(metaGeneration)
	m.Voting = r.flag(metaVoting)
	m.Ended = r.sint(metaEnded)
	m.Generations = readList(r, metaGenerations, math.MaxInt, readGeneration)
}
