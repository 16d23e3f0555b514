package wire

import (
	"github.com/georld/rld/crdt"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

func strictWatermark(w *sticky.Watermark) *rldv1.Watermark {
	return &rldv1.Watermark{Window: w.Window, Amount: w.Amount, EndMs: w.End}
}

func watermarkOf(w *rldv1.Watermark) sticky.Watermark {
	return sticky.Watermark{Window: w.Window, Amount: w.Amount, End: w.EndMs}
}

func ballotOf(round, owner, term uint64) sticky.Ballot {
	return sticky.Ballot{Round: round, Owner: crdt.Incarnation(owner), Term: term}
}

func strictAccept(a *sticky.Accept) *rldv1.WatermarkAccept {
	return &rldv1.WatermarkAccept{
		Key: uint64(a.Key), Round: a.Ballot.Round, Owner: uint64(a.Ballot.Owner),
		Term: a.Ballot.Term, Seq: a.Seq, Known: listOf(a.Known, strictWatermark),
		Watermarks:  listOf(a.Watermarks, strictWatermark),
		Generations: listOf(a.Generations, strictGeneration),
	}
}

func acceptOf(a *rldv1.WatermarkAccept) sticky.Accept {
	return sticky.Accept{
		Key: crdt.Key(a.Key), Ballot: ballotOf(a.Round, a.Owner, a.Term), Seq: a.Seq,
		Known: fromList(a.Known, watermarkOf), Watermarks: fromList(a.Watermarks, watermarkOf),
		Generations: fromList(a.Generations, generationOf),
	}
}

func strictAccepted(a *sticky.Accepted) *rldv1.WatermarkAccepted {
	return &rldv1.WatermarkAccepted{
		Key: uint64(a.Key), Round: a.Ballot.Round, Owner: uint64(a.Ballot.Owner),
		Term: a.Ballot.Term, Seq: a.Seq, Voter: a.Voter, Ok: a.OK, Reason: uint32(a.Reason),
		PromisedRound: a.Promised.Round, PromisedOwner: uint64(a.Promised.Owner),
		PromisedTerm: a.Promised.Term, Held: listOf(a.Held, strictWatermark),
		Generations: listOf(a.Generations, strictGeneration), Shared: a.Shared,
	}
}

func acceptedOf(a *rldv1.WatermarkAccepted) sticky.Accepted {
	return sticky.Accepted{
		Key: crdt.Key(a.Key), Ballot: ballotOf(a.Round, a.Owner, a.Term), Seq: a.Seq,
		Voter: a.Voter, OK: a.Ok, Reason: reasonOf(a.Reason),
		Promised: ballotOf(a.PromisedRound, a.PromisedOwner, a.PromisedTerm),
		Held:     fromList(a.Held, watermarkOf), Generations: fromList(a.Generations, generationOf), Shared: a.Shared,
	}
}

func strictSnapshotRequest(r *sticky.SnapshotRequest) *rldv1.SnapshotRequest {
	return &rldv1.SnapshotRequest{
		Voter: r.Voter, Generation: r.Generation, Number: r.Number, After: uint64(r.After),
		Begin: r.Begin,
	}
}

func snapshotRequestOf(r *rldv1.SnapshotRequest) sticky.SnapshotRequest {
	return sticky.SnapshotRequest{
		Voter: r.Voter, Generation: r.Generation, Number: r.Number,
		After: crdt.Key(r.After), Begin: r.Begin,
	}
}

func strictChunk(c *sticky.SnapshotChunk) *rldv1.SnapshotChunk {
	return &rldv1.SnapshotChunk{
		Voter: c.Voter, Number: c.Number, After: uint64(c.After), Begin: c.Begin,
		Reason: uint32(c.Reason), Records: listOf(c.Records, strictRecord), Last: c.Last, EndedMs: c.Ended,
		Generations: listOf(c.Generations, strictGeneration),
	}
}

func chunkOf(c *rldv1.SnapshotChunk) sticky.SnapshotChunk {
	return sticky.SnapshotChunk{
		Voter: c.Voter, Number: c.Number, After: crdt.Key(c.After), Begin: c.Begin,
		Reason: reasonOf(c.Reason), Records: fromList(c.Records, strictRecordOf), Last: c.Last, Ended: c.EndedMs,
		Generations: fromList(c.Generations, generationOf),
	}
}

func strictRecord(r *sticky.Record) *rldv1.StrictRecord {
	return &rldv1.StrictRecord{
		Key: uint64(r.Key), Round: r.Ballot.Round, Owner: uint64(r.Ballot.Owner),
		Term: r.Ballot.Term, Watermarks: listOf(r.Watermarks, strictWatermark), EndedMs: r.Ended,
	}
}

func strictRecordOf(r *rldv1.StrictRecord) sticky.Record {
	return sticky.Record{
		Key: crdt.Key(r.Key), Ballot: ballotOf(r.Round, r.Owner, r.Term),
		Watermarks: fromList(r.Watermarks, watermarkOf), Ended: r.EndedMs,
	}
}

func strictGeneration(g *route.Generation) *rldv1.StrictGeneration {
	return &rldv1.StrictGeneration{Voter: g.Voter, Generation: g.Generation, Writes: g.Writes}
}

func generationOf(g *rldv1.StrictGeneration) route.Generation {
	return route.Generation{Voter: g.Voter, Generation: g.Generation, Writes: g.Writes}
}

func strictRegion(r *route.Region) *rldv1.StrictRegion {
	return &rldv1.StrictRegion{
		Name: r.Name, Weight: r.Weight, Replicas: r.Replicas,
		Generations: listOf(r.Generations, strictGeneration),
	}
}

func regionOf(r *rldv1.StrictRegion) route.Region {
	return route.Region{
		Name: r.Name, Weight: r.Weight, Replicas: r.Replicas,
		Generations: fromList(r.Generations, generationOf),
	}
}

func strictPin(p *route.Pin) *rldv1.StrictPin {
	return &rldv1.StrictPin{Rule: p.Rule, Region: p.Region}
}

func pinOf(p *rldv1.StrictPin) route.Pin { return route.Pin{Rule: p.Rule, Region: p.Region} }

func strictLayout(l *route.Layout) *rldv1.StrictLayout {
	return &rldv1.StrictLayout{
		Number: l.Number, LogNumber: l.Log.Number, LogRandom: l.Log.Random,
		Regions: listOf(l.Regions, strictRegion),
		Pins:    listOf(l.Pins, strictPin),
		Formers: listOf(l.Formers, strictFormer),
		Lost: listOf(l.Lost, func(x *route.Loss) *rldv1.StrictLoss {
			return &rldv1.StrictLoss{
				Region: x.Region, FromMs: x.From, Regions: listOf(x.Regions, strictRegion), Pins: listOf(x.Pins, strictPin),
			}
		}),
		Reserves: listOf(l.Reserves, func(r *route.Reserves) *rldv1.StrictReserves {
			return &rldv1.StrictReserves{FromMs: r.From, Regions: uint32(r.Regions), NewRegions: r.New}
		}),
	}
}

func layoutOf(l *rldv1.StrictLayout) route.Layout {
	return route.Layout{
		Number: l.Number, Log: route.Log{Number: l.LogNumber, Random: l.LogRandom},
		Regions: fromList(l.Regions, regionOf),
		Pins:    fromList(l.Pins, pinOf),
		Formers: fromList(l.Formers, formerOf),
		Lost: fromList(l.Lost, func(x *rldv1.StrictLoss) route.Loss {
			return route.Loss{
				Region: x.Region, From: x.FromMs, Regions: fromList(x.Regions, regionOf), Pins: fromList(x.Pins, pinOf),
			}
		}),
		Reserves: fromList(l.Reserves, func(r *rldv1.StrictReserves) route.Reserves {
			return route.Reserves{From: r.FromMs, Regions: int(r.Regions), New: r.NewRegions}
		}),
	}
}

func strictFormer(f *route.Former) *rldv1.StrictFormer {
	return &rldv1.StrictFormer{
		Number: f.Number, LogNumber: f.Log.Number, LogRandom: f.Log.Random,
		Regions: listOf(f.Regions, func(r *route.FormerRegion) *rldv1.StrictFormerRegion {
			return &rldv1.StrictFormerRegion{Name: r.Name, Replicas: r.Replicas}
		}),
	}
}

func formerOf(f *rldv1.StrictFormer) route.Former {
	return route.Former{
		Number: f.Number, Log: route.Log{Number: f.LogNumber, Random: f.LogRandom},
		Regions: fromList(f.Regions, func(r *rldv1.StrictFormerRegion) route.FormerRegion {
			return route.FormerRegion{Name: r.Name, Replicas: r.Replicas}
		}),
	}
}
