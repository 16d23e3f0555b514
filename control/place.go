package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/georld/rld/crdt"
)

// The numbers of voters, and how many regions five of them need.
const (
	fewVoters   = 3
	manyVoters  = 5
	manyRegions = 3
)

// placement holds the voters, and the daemons that could become voters.
type placement struct {
	node     *Node
	durable  []*peer        // that do not vote, live and staying
	open     int            // regions that do not drain, and those of witnesses
	regions  map[string]int // voters by region
	learners []Voter
	gone     []Voter // voters that are away for too long or leave, as their regions may
	votes    int
}

// place lets the leader change the voters, one at a time: it adds voters where
// there are too few, replaces one that is away or leaves by a daemon of its
// region, or of any if the region leaves, and lets a learner vote when it is up
// to date for some time. Where two votes are missing, two learn before one of
// them votes: of four voters in three regions one has two, and without it there
// is no majority.
func (n *Node) place() {
	v := n.raft
	if v == nil || !v.leading || v.busy || n.at < n.due.place {
		return
	}
	n.due.place = n.at + n.cfg.Retry
	if !v.complete() {
		return
	}
	p := placementOf(n)
	if p.expedites() {
		n.due.place = n.at + n.cfg.Retry/4
	}
	want, others := p.want(), 0
	if len(p.gone) > 0 || p.balances() {
		others = 1 // takes the place of a voter
	}
	both := p.votes%2 == 1 && p.votes+2 <= want && !p.expedites()
	switch learn := len(p.learners); {
	case learn == 1 && both && p.add(""):
	case learn > max(want-p.votes, others): // fewer are wanted than before
		v.proposeVoter(raftpb.ConfChangeRemoveNode, p.learners[learn-1])
	case learn > 0:
		p.promote(both && learn > 1)
	case p.votes > want:
		v.proposeVoter(raftpb.ConfChangeRemoveNode, p.surplus())
	case p.votes < want:
		p.add("")
	default:
		for _, o := range p.gone {
			if n.record.mayVote(o.Region, o.Witness) && p.add(o.Region) || p.lost(o) && p.add("") {
				return
			}
		}
		if p.balances() {
			p.add("")
		}
	}
}

// lost reports whether a daemon of any region may replace a voter: its own
// region has no votes any more, or only that of a witness whose id has ended.
func (p *placement) lost(o Voter) bool {
	return !p.node.record.mayVote(o.Region, o.Witness) || o.Witness && p.node.Dead(o.Daemon)
}

// Witnesses returns the live witnesses but this daemon.
func Witnesses(n *Node) (all []crdt.Incarnation) {
	for _, p := range n.peers {
		if p.sender.Witness {
			all = append(all, p.Address)
		}
	}
	return all
}

// onlyWitnesses returns an error if a region to add has witnesses, and no
// daemons that could hold its rights.
func (x *Rights) onlyWitnesses(c *RegionChange) error {
	if len(c.Founders) > 0 || !slices.ContainsFunc(x.node.peers, func(p *peer) bool { return p.Region == c.Name && p.sender.Witness }) {
		return nil
	}
	return fmt.Errorf("region %q has only daemons with control.voter: only, which vote and hold no rights: "+
		"start one with a state.dir and without that setting, if the region is to take calls", c.Name)
}

// placementOf collects the voters and the candidates.
func placementOf(n *Node) *placement {
	p := &placement{node: n, regions: map[string]int{}}
	open := map[string]bool{} // those of witnesses, too
	for _, g := range n.record.Regions {
		if !g.Draining {
			open[g.Name] = true
		}
	}
	for _, o := range n.record.Voters {
		if o.Learner {
			p.learners = append(p.learners, o)
			continue
		}
		p.votes++
		p.regions[o.Region]++
		if p.away(o) || !n.record.mayVote(o.Region, o.Witness) {
			p.gone = append(p.gone, o)
		}
		if !p.lost(o) {
			open[o.Region] = true
		}
	}
	for _, o := range n.peers {
		live := isLive(n, o)
		follows := o.version.Recovery == n.record.Version.Recovery && n.record.mayVote(o.Region, o.sender.Witness) && n.record.VoterOf(o.sender.ID) == nil
		failed, known := n.raft.failed[o.sender.ID]
		if live && follows && o.sender.Durable && !o.sender.Leaving && !(known && n.at-failed < failedFor*n.cfg.ReplaceAfter) {
			p.durable = append(p.durable, o)
			open[o.Region] = true
		}
	}
	p.open = len(open)
	slices.SortFunc(p.durable, func(a, b *peer) int { return a.sender.ID.Compare(b.sender.ID) })
	return p
}

// patience is how long a daemon without a message still counts as live among a
// number of peers. At rest a neighbor sends two messages in that time.
func (c *Config) patience(peers int) time.Duration {
	return min(c.Compare*time.Duration(8+4*peers), c.longestPatience())
}

// longestPatience is that among any number of peers.
func (c *Config) longestPatience() time.Duration { return max(c.ReplaceAfter, 12*c.Compare) }

// isLive reports whether a message of a peer came a short time ago; false for
// no peer.
func isLive(n *Node, p *peer) bool {
	return p != nil && p.heardAt >= 0 && n.at-p.heardAt < n.cfg.patience(len(n.peers))
}

// away reports whether the daemon of a voter is away for too long, leaves, has
// given its id up, or is of a former generation of its region.
func (p *placement) away(o Voter) bool {
	n := p.node
	if o.Former || n.Dead(o.Daemon) { // at once
		return true
	}
	if o.Daemon == n.self.id() {
		return n.leaving
	}
	d := n.byID(o.Daemon)
	if d != nil && n.at-d.heardAt < n.cfg.ReplaceAfter {
		delete(n.missing, o.Raft)
		return d.sender.Leaving
	}
	since, known := n.missing[o.Raft]
	if !known {
		n.missing[o.Raft] = n.at
	}
	return known && n.at-since >= n.cfg.ReplaceAfter
}

// handsOver reports whether a daemon that leaves may still lose its vote to
// another one: it votes, and a durable daemon could take its place, or does so.
func handsOver(n *Node) bool {
	if !n.leaving || n.record == nil || n.leader() == (ID{}) {
		return false
	}
	is := n.record.VoterOf(n.self.id())
	if is == nil || is.Learner {
		return false
	}
	here, votes := n.record.mayVote(is.Region, is.Witness), n.record.Voting()
	return votes > fewVoters && votes%2 == 0 || // the surplus goes next
		slices.ContainsFunc(n.peers, func(p *peer) bool {
			live := isLive(n, p)
			o := n.record.VoterOf(p.sender.ID)
			fits := o == nil && n.record.mayVote(p.Region, p.sender.Witness) && (p.Region == is.Region || !here)
			return live && p.sender.Durable && !p.sender.Leaving && (fits || o != nil && o.Learner)
		})
}

// failedFor is how long a daemon that did not become a voter gets no other
// attempt, in times of Config.ReplaceAfter.
const failedFor = 8

// promote lets a learner vote that is up to date for some time; with all set,
// once all learners are. It removes one that does not get there.
func (p *placement) promote(all bool) {
	n, v := p.node, p.node.raft
	var ready []Voter
	for _, o := range p.learners {
		began, known := v.began[o.Raft]
		if !known {
			began = n.at
			v.began[o.Raft] = began
		}
		since, current := v.learned[o.Raft]
		switch {
		case p.away(o), !current && n.at-began >= n.cfg.ReplaceAfter+n.cfg.Stable:
			v.failed[o.Daemon] = n.at
			v.proposeVoter(raftpb.ConfChangeRemoveNode, o)
			return
		case !v.current(o):
			delete(v.learned, o.Raft)
		case !current:
			v.learned[o.Raft] = n.at
		case n.at-since >= p.stable():
			ready = append(ready, o)
		}
	}
	if len(ready) > 0 && (!all || len(ready) == len(p.learners)) {
		ready[0].Learner = false
		v.proposeVoter(raftpb.ConfChangeAddNode, ready[0])
	}
}

// handOverFaster is how much sooner a learner votes that takes the vote of a
// daemon that leaves.
const handOverFaster = 10

// expedites reports whether a voter leaves: its daemon waits for another voter.
func (p *placement) expedites() bool {
	return slices.ContainsFunc(p.gone, func(o Voter) bool {
		d := p.node.byID(o.Daemon)
		return o.Daemon == p.node.self.id() || d != nil && d.sender.Leaving
	})
}

// stable returns how long a learner must be up to date before it votes.
func (p *placement) stable() time.Duration {
	if p.expedites() {
		return p.node.cfg.Stable / handOverFaster
	}
	return p.node.cfg.Stable
}

// current reports whether a learner is live and has nearly all entries.
func (v *raftNode) current(o Voter) bool {
	d := v.node.byID(o.Daemon)
	at, ok := v.raw.Status().Progress[uint64(o.Raft)]
	return ok && d != nil && v.node.at-d.heardAt < v.node.cfg.election() && at.Match+1 >= v.applied
}

// want returns how many voters there should be: an odd number of those that are
// there or can be added, and no more than now for want of daemons.
func (p *placement) want() int {
	can := maps.Clone(p.regions)
	for _, o := range p.gone {
		can[o.Region]--
	}
	for _, o := range p.durable {
		can[o.Region]++
	}
	for _, o := range p.learners {
		can[o.Region]++
	}
	for _, votes := range []int{manyVoters, fewVoters} {
		sum, regions := 0, 0
		for _, daemons := range can {
			if daemons <= 0 {
				continue
			}
			regions++
			if p.open >= manyRegions { // none gets a majority
				daemons = min(daemons, votes/2)
			}
			sum += daemons
		}
		if sum >= votes && (votes == fewVoters || regions >= manyRegions) {
			return votes
		}
	}
	// Uneven is better than one voter.
	sum := 0
	for _, daemons := range can {
		sum += max(daemons, 0)
	}
	if sum >= fewVoters {
		return fewVoters
	}
	return min(p.votes, fewVoters)
}

// balances reports whether a vote of a region with a majority could go to a
// daemon of a region that has two fewer: otherwise votes would go to and fro.
func (p *placement) balances() bool {
	if p.votes < fewVoters || !p.crowded("", 0) {
		return false
	}
	most := 0
	for _, votes := range p.regions {
		most = max(most, votes)
	}
	return slices.ContainsFunc(p.durable, func(o *peer) bool { return p.regions[o.Region]+1 < most }) ||
		slices.ContainsFunc(p.learners, func(o Voter) bool { return p.regions[o.Region]+1 < most })
}

// surplus returns the voter to remove: one that is away, or else one of the
// region with the most voters. Where there are three regions, no region gets a
// majority, if that can be.
func (p *placement) surplus() Voter {
	n := p.node
	order := slices.Clone(p.gone)
	for _, o := range n.record.Voters {
		if o.Daemon != n.self.id() && !slices.Contains(p.gone, o) {
			order = append(order, o)
		}
	}
	slices.SortStableFunc(order[len(p.gone):], func(a, b Voter) int { return cmp.Compare(p.regions[b.Region], p.regions[a.Region]) })
	for _, o := range order {
		if slices.Contains(p.gone, o) || !p.crowded(o.Region, -1) {
			return o
		}
	}
	return order[0]
}

// crowded reports whether any region has a majority of the votes, where there
// are three regions, after one has some votes more.
func (p *placement) crowded(region string, more int) bool {
	if p.open < manyRegions {
		return false
	}
	for name, votes := range p.regions {
		if name == region {
			votes += more
		}
		if 2*votes > p.votes+more {
			return true
		}
	}
	return false
}

// add makes a daemon a learner, one of a region, or of any where the region is
// empty. It returns false if there is none.
func (p *placement) add(region string) bool {
	votes, regions := p.votes+len(p.learners), maps.Clone(p.regions)
	for _, o := range p.learners {
		regions[o.Region]++
	}
	fits := slices.DeleteFunc(slices.Clone(p.durable), func(o *peer) bool {
		decides := p.open >= manyRegions && 2*(regions[o.Region]+1) > votes+1
		return region != "" && o.Region != region || region == "" && votes+1 >= fewVoters && decides
	})
	if len(fits) == 0 {
		return false
	}
	o := slices.MinFunc(fits, func(a, b *peer) int {
		return cmp.Or(cmp.Compare(regions[a.Region], regions[b.Region]), a.sender.ID.Compare(b.sender.ID))
	})
	p.node.raft.proposeVoter(raftpb.ConfChangeAddLearnerNode, Voter{Raft: p.node.number(), Daemon: o.sender.ID, Region: o.Region, Learner: true, Witness: o.sender.Witness})
	return true
}
