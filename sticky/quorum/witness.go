package quorum

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// witness is how an acceptor that starts learns whether its disk is as it was.
// Others have the numbers of its writes, with the votes that they counted. One
// with a lower number has lost votes: its disk was put back from a copy, or its
// log was cut.
type witness struct {
	// over reports that the others have answered, or that witnessFor is over.
	over     bool
	answered []uint64 // voters
	asked    time.Duration
}

// witnessFor is how long an acceptor waits for voters that do not answer: of
// its former votes these may be the only ones to know.
const witnessFor = 5 * time.Second

// testify asks the other voters of the region for the latest write of this
// acceptor that they know, before it votes or is copied from.
func (r *Acceptor) testify() {
	x := &r.witness
	if x.over || r.self == 0 || r.newest().Number == 0 || r.failed != nil || !r.meta.Voting {
		return // or it does not vote anyway
	}
	due, waits := r.at >= x.asked+requestAgain || x.asked == 0, false
	voters := slices.Concat(r.layout.VotersOf(r.cfg.Region), r.newest().VotersOf(r.cfg.Region))
	slices.Sort(voters)
	for _, name := range slices.Compact(voters) {
		if name == r.cfg.Name || slices.Contains(x.answered, route.NameHash(name)) {
			continue
		}
		waits = true
		if p := r.live.Find(r.cfg.Region, name); p.ID != 0 && due {
			x.asked = max(r.at, 1)
			m := r.to(p.ID)
			m.SnapshotRequests = append(m.SnapshotRequests, sticky.SnapshotRequest{Voter: r.voter, Generation: r.meta.Generation})
		}
	}
	if x.over = !waits || r.at-r.started >= witnessFor; x.over {
		x.answered = nil
	}
}

// onTestimony keeps the store numbers that another voter has received.
func (r *Acceptor) onTestimony(from route.Peer, p *sticky.SnapshotChunk) error {
	if from.Region != r.cfg.Region || p.Voter != route.NameHash(from.Name) || p.Generations.Validate() != nil {
		return r.reject(BadSnapshotChunk, from, fmt.Errorf("store numbers of %q in %q: want those of a voter of %q", from.Name, from.Region, r.cfg.Region))
	}
	for _, g := range p.Generations {
		r.note(g)
	}
	if !r.witness.over && !slices.Contains(r.witness.answered, p.Voter) {
		r.witness.answered = append(r.witness.answered, p.Voter)
		r.testify()
	}
	return nil
}

// countsVote notes the write of a vote that an owner in this daemon counts.
func (r *Acceptor) countsVote(from route.Peer, a *sticky.Accepted) {
	if from.Region == r.cfg.Region && a.Voter == route.NameHash(from.Name) && a.Generations.Validate() == nil {
		r.note(a.Generations.Get(a.Voter))
	}
}

// note records the store number of a voter. A later disk is stored before the
// answer is sent, as is all that was received before; a later write of the same
// disk with the next store.
func (r *Acceptor) note(g route.Generation) {
	if g.Voter == r.voter {
		if own := (route.Generation{Voter: r.voter, Generation: r.meta.Generation, Writes: r.meta.Writes}); own.Before(g) {
			r.older(own, g)
		}
		return
	}
	known := r.meta.Generations.Of(g.Voter)
	generations := r.meta.Generations.With(g)
	if generations.Full() {
		generations = slices.DeleteFunc(slices.Clone(generations), func(l route.Generation) bool { return !r.concerns(l.Voter) })
	}
	if generations.Full() || r.failed != nil {
		return
	}
	if r.meta.Generations = generations; known < generations.Of(g.Voter) {
		r.putMeta()
	}
}

// older makes the acceptor one that lost its disk: that is older than it was,
// since others know of a later write.
func (r *Acceptor) older(own, known route.Generation) {
	if r.failed != nil {
		return
	}
	r.meta.Generation, r.meta.Voting, r.witness.over = known.Generation+1, false, true
	r.meta.Generations = r.meta.Generations.With(route.Generation{Voter: r.voter, Generation: r.meta.Generation})
	r.putMeta()
	r.copying = nil
	r.events.Add(LostDisk, "", fmt.Sprintf(
		"its disk is older than it was: it has write %d of store number %d, and another voter knows write %d of %d; copies the state of all other voters before it votes",
		own.Writes, own.Generation, known.Writes, known.Generation))
	r.rebuild()
}
