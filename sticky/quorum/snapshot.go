package quorum

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// copying is an acceptor's way to a vote: the voters it copies from, and how
// far it got.
//
// A voter of a new layout copies from a majority of each region's voters in
// each former layout, all of which have sealed that. Any majority that ever
// stored a watermark has a voter in common with them. A voter that lost its
// disk after it may have voted copies from all others: any majority that it was
// part of had another member, whose answers report the new store number from
// here on, beside which its earlier votes do not count.
type copying struct {
	number  uint64 // of the layout
	all     bool
	sources []source
	// without reports that the state of the voter itself is not known to be
	// complete yet, as after a start.
	without bool
}

// source is a voter to copy from.
type source struct {
	region, name string
	voter        uint64
	after        crdt.Key
	begun, done  bool
	generation   uint64
	generations  route.Generations // that it reported
	requestedAt  time.Duration
	requested    bool // asked at all
}

const (
	// requestAgain is the time after which a chunk is requested again.
	requestAgain = 250 * time.Millisecond
	// orderFor is how long the order of keys is kept for voters that copy.
	orderFor = time.Minute
	// chunkWatermarks bounds the watermarks of a chunk.
	chunkWatermarks = 4_096
)

// copy requests the chunks that must be copied before the acceptor may vote.
func (r *Acceptor) copy() {
	target := r.newest()
	if r.failed != nil || !r.isVoter(target) || r.next == nil && r.meta.Voting {
		r.copying = nil
		return
	}
	if r.copying == nil || r.copying.number != target.Number || r.copying.without && r.serves(target) {
		r.copying = r.newCopying(target)
	}
	c := r.copying
	if c.enough(target) {
		r.finish()
		return
	}
	for i := range c.sources {
		s := &c.sources[i]
		p := r.live.Find(s.region, s.name)
		if s.done || p.ID == 0 || s.requested && r.at-s.requestedAt < requestAgain {
			continue
		}
		s.request(r, p.ID)
	}
}

// request requests the next chunk of a source.
func (s *source) request(r *Acceptor, id crdt.Incarnation) {
	s.requestedAt, s.requested = r.at, true
	m := r.to(id)
	m.Layouts = append(m.Layouts[:0], r.newest().Clone())
	m.SnapshotRequests = append(m.SnapshotRequests, sticky.SnapshotRequest{
		Voter: r.voter, Generation: r.meta.Generation, Number: r.copying.number, After: s.after, Begin: !s.begun,
	})
}

func (r *Acceptor) newCopying(target *route.Layout) *copying {
	c := &copying{number: target.Number}
	c.all = r.lost()
	if c.all {
		for _, name := range target.VotersOf(r.cfg.Region) {
			if name != r.cfg.Name {
				c.sources = append(c.sources, source{region: r.cfg.Region, name: name, voter: route.NameHash(name)})
			}
		}
		return c
	}
	for i := range target.Formers {
		for _, region := range target.Formers[i].Regions {
			for _, name := range region.Replicas {
				if !slices.ContainsFunc(c.sources, func(s source) bool { return s.region == region.Name && s.name == name }) {
					r.addSource(c, target, region.Name, name)
				}
			}
		}
	}
	return c
}

// addSource adds a voter of a former layout to those to copy from.
func (r *Acceptor) addSource(c *copying, target *route.Layout, region, name string) {
	s := source{region: region, name: name, voter: route.NameHash(name)}
	if region == r.cfg.Region && name == r.cfg.Name {
		if !r.serves(target) {
			c.without = true
			return
		}
		s.done, s.generation, s.generations = true, r.meta.Generation, r.meta.Generations
	}
	c.sources = append(c.sources, s)
}

// enough reports whether all needed state was copied. A source that lost its
// disk since then, by the report of another one, is copied again.
func (c *copying) enough(target *route.Layout) bool {
	if c.all {
		return len(c.sources) > 0 && !slices.ContainsFunc(c.sources, func(s source) bool { return !s.done })
	}
	for i := range target.Formers {
		for _, region := range target.Formers[i].Regions {
			if c.consistent(region.Name, region.Replicas) < route.Majority(len(region.Replicas)) {
				return false
			}
		}
	}
	return true
}

// consistent counts the sources of a region that are done, among some. It
// restarts those that lost their disk since they were copied.
func (c *copying) consistent(region string, names []string) int {
	var generations route.Generations
	for i := range c.sources {
		if s := &c.sources[i]; s.region == region {
			for _, l := range s.generations {
				generations = generations.With(l)
			}
		}
	}
	n := 0
	for i := range c.sources {
		s := &c.sources[i]
		if s.region != region || !s.done || !slices.Contains(names, s.name) {
			continue
		}
		if s.generation < generations.Of(s.voter) {
			s.restart()
			continue
		}
		n++
	}
	return n
}

func (s *source) restart() {
	*s = source{region: s.region, name: s.name, voter: s.voter, requestedAt: s.requestedAt, requested: s.requested}
}

func (c *copying) wake(at time.Duration) time.Duration {
	due := at + requestAgain
	for i := range c.sources {
		if s := &c.sources[i]; !s.done && s.requestedAt+requestAgain > at {
			due = min(due, s.requestedAt+requestAgain)
		}
	}
	return due
}

// finish starts to vote.
func (r *Acceptor) finish() {
	if r.next != nil {
		r.layout, r.next = *r.next, nil
		r.putLayout()
	}
	r.copying = nil
	spread(r)
	r.meta.Voting, r.witness.over = true, true
	r.putMeta() // after the layout, and after all that was copied
	r.events.Add(Voting, "", fmt.Sprintf("layout %d", r.layout.Number))
	r.rebuild()
}

// onSnapshotRequest answers a voter that copies.
//
// The copy is for the layout in the same message: of two layouts announced by
// two recoveries, which may have the same number, each voter seals for one.
func (r *Acceptor) onSnapshotRequest(from route.Peer, m *sticky.Message, c *sticky.SnapshotRequest) error {
	if c.Voter != route.NameHash(from.Name) || from.ID == r.self {
		return r.reject(BadSnapshotRequest, from, fmt.Errorf("snapshot request of %q for voter %016x: want its own", from.Name, c.Voter))
	}
	p := sticky.SnapshotChunk{Voter: r.voter, Number: c.Number, After: c.After, Begin: c.Begin}
	target := r.newest()
	switch {
	case c.Number == 0:
		p.Last, p.Generations = true, r.meta.Generations
	case c.Number != target.Number, len(m.Layouts) != 1, m.Number != c.Number, !target.Agrees(&m.Layouts[0]):
		p.Reason = sticky.OtherLayout
	case !slices.Contains(target.VotersOf(from.Region), from.Name):
		return r.reject(BadSnapshotRequest, from, fmt.Errorf("snapshot request of %q in %q: layout %d does not name it a voter", from.Name, from.Region, c.Number))
	case r.failed != nil, !r.serves(target):
		p.Reason = sticky.NotVoting
	default:
		if from.Region == r.cfg.Region {
			r.note(route.Generation{Voter: c.Voter, Generation: c.Generation})
		}
		r.fillChunk(&p)
	}
	out := r.to(from.ID)
	if len(out.SnapshotChunks) == sticky.MaxSnapshotChunks {
		return nil // it asks again
	}
	out.SnapshotChunks = append(out.SnapshotChunks, p)
	return nil
}

// concerns reports whether a voter is one of the region's in the layout in
// force, the one before or the next.
func (r *Acceptor) concerns(voter uint64) bool {
	for _, l := range [...]*route.Layout{&r.layout, r.newest()} {
		if region := l.Region(r.cfg.Region); region != nil {
			if slices.ContainsFunc(region.Replicas, func(n string) bool { return route.NameHash(n) == voter }) {
				return true
			}
		}
		for _, f := range l.Formers {
			for _, region := range f.Regions {
				if region.Name == r.cfg.Region && slices.ContainsFunc(region.Replicas, func(n string) bool { return route.NameHash(n) == voter }) {
					return true
				}
			}
		}
	}
	return voter == r.voter
}

// fillChunk fills a chunk with the next records. The order of keys may be older
// than some records. Those were stored after the requester's store number or
// the seal was, and do not concern it.
func (r *Acceptor) fillChunk(p *sticky.SnapshotChunk) {
	if r.order == nil || p.Begin {
		r.order = r.keys()
	}
	r.orderedAt = r.at
	i := 0
	if !p.Begin {
		i = sort.Search(len(r.order), func(i int) bool { return r.order[i].Compare(p.After) > 0 })
	}
	watermarks := 0
	for ; i < len(r.order) && len(p.Records) < sticky.MaxRecords && watermarks < chunkWatermarks; i++ {
		if l := r.records[r.order[i]]; l != nil {
			p.Records = append(p.Records, l.Record)
			watermarks += len(l.Watermarks)
		}
	}
	p.Last = i == len(r.order)
	p.Ended, p.Generations = r.meta.Ended, r.meta.Generations
}

// onSnapshotChunk merges the records of another voter.
func (r *Acceptor) onSnapshotChunk(from route.Peer, p *sticky.SnapshotChunk) error {
	c := r.copying
	switch {
	case p.Number == 0:
		return r.onTestimony(from, p)
	case c == nil || p.Number != c.number:
		return nil // of an earlier try
	}
	i := slices.IndexFunc(c.sources, func(s source) bool { return s.region == from.Region && s.name == from.Name })
	if i < 0 || p.Voter != route.NameHash(from.Name) {
		return r.reject(BadSnapshotChunk, from, fmt.Errorf("snapshot chunk of %q in %q: not requested", from.Name, from.Region))
	}
	s := &c.sources[i]
	if s.done || p.Reason != sticky.NoReason || p.Begin == s.begun || p.After != s.after {
		return nil // late or not yet; it is asked again
	}
	if err := validateChunk(p); err != nil {
		return r.reject(BadSnapshotChunk, from, fmt.Errorf("snapshot chunk of %q: %w", from.Name, err))
	}
	if generation := p.Generations.Of(s.voter); s.begun && generation != s.generation {
		s.restart()
		return nil
	} else {
		s.generation, s.generations = generation, p.Generations
	}
	if len(r.records)+len(p.Records) > 2*r.cfg.MaxKeys+overflowRecords+sticky.MaxRecords {
		return r.reject(NoRoom, from, fmt.Errorf("snapshot chunk of %q: no room for more than %d keys: want more room to copy", from.Name, 2*r.cfg.MaxKeys))
	}
	r.merge(from, p)
	s.begun, s.requested = true, false // the next page at once
	if n := len(p.Records); n > 0 {
		s.after = p.Records[n-1].Key
	}
	s.done = p.Last
	r.copy()
	return nil
}

func validateChunk(p *sticky.SnapshotChunk) error {
	if len(p.Records) > sticky.MaxRecords {
		return fmt.Errorf("%d records: want at most %d", len(p.Records), sticky.MaxRecords)
	}
	if len(p.Records) == 0 && !p.Last {
		return fmt.Errorf("no records, and not the last: want some")
	}
	for i := range p.Records {
		rec := &p.Records[i]
		if err := rec.Validate(); err != nil {
			return err
		}
		after := p.After
		if i > 0 {
			after = p.Records[i-1].Key
		}
		if (i > 0 || !p.Begin) && rec.Key.Compare(after) <= 0 {
			return fmt.Errorf("record out of order: want ascending keys after those of the chunk before")
		}
	}
	return p.Generations.Validate()
}

// merge merges a chunk into the state.
func (r *Acceptor) merge(from route.Peer, p *sticky.SnapshotChunk) {
	if from.Region == r.cfg.Region {
		for _, l := range p.Generations {
			r.note(l)
		}
	}
	if p.Ended > r.meta.Ended {
		r.meta.Ended = p.Ended
		r.putMeta()
		r.boundEnded()
	}
	for i := range p.Records {
		r.join(&p.Records[i])
	}
}

// join merges a copied record. Watermarks that were stored for two proposers
// are known to neither, even if the amounts are equal. The record then promises
// no ballot of theirs: the next proposer must know the watermarks and take a
// higher ballot.
func (r *Acceptor) join(rec *sticky.Record) {
	l := r.records[rec.Key]
	if l == nil {
		l = &keyState{Record: *rec}
		r.records[rec.Key] = l
		r.put(l)
		return
	}
	low, top := l.Ballot, rec.Ballot
	if top.Less(low) {
		low, top = top, low
	}
	if top.Owner != 0 && !low.SameProposer(top) {
		top = sticky.Ballot{Round: top.Round + 1}
	}
	ended := max(l.Ended, rec.Ended)
	mine := l.Watermarks.Since(ended)
	joined := mine.Join(rec.Watermarks.Since(ended))
	if top == l.Ballot && ended == l.Ended && mine.Above(joined) {
		return
	}
	l.Ballot, l.Watermarks = top, joined
	if len(l.Watermarks) > sticky.MaxWatermarks {
		var last int64
		l.Watermarks, last = l.Watermarks.Latest(sticky.MaxWatermarks)
		ended = max(ended, last+1)
	}
	l.Ended = ended
	r.put(l)
}
