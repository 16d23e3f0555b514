package control

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/internal/sat"
)

// Founding is the value that the founders agree on.
type Founding struct {
	Cluster Number `json:"cluster"`
	Begun   int64  `json:"begun"` // Unix milliseconds
	// From is as in Cluster.
	From int64 `json:"from,omitempty"`
	// Regions are ordered by name. Their weights sum to Whole.
	Regions  []FirstRegion `json:"regions"`
	Founders []Founder     `json:"founders"` // ordered by name
}

// FirstRegion is a region at the founding.
type FirstRegion struct {
	Name   string `json:"name"`
	Weight uint32 `json:"weight"`
	// Founders and Horizon are as in Region. The proposer of the founding sets
	// them.
	Founders []ID  `json:"founders,omitempty"`
	Horizon  int64 `json:"horizon,omitempty"`
}

// Founder is a daemon that founds the cluster, and its first voter.
type Founder struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	Daemon ID     `json:"daemon"`
	Run    Run    `json:"run"`
	Raft   Number `json:"raft"`
	// Witness founders are of a region that the cluster does not begin with.
	Witness bool `json:"witness,omitempty"`
}

// record returns the first record of the cluster.
func (f *Founding) record() *Record {
	at := Version{Recovery: Recovery{Random: f.Cluster}, Index: 1}
	r := &Record{Format: Format, Version: at, First: 1, Changes: 1, Cluster: Cluster{ID: f.Cluster, Begun: f.Begun, From: f.From}}
	for _, g := range f.Regions {
		r.Regions = append(r.Regions, Region{Name: g.Name, Generation: at, Weight: g.Weight, Founders: g.Founders, Horizon: g.Horizon, From: f.From})
		r.Genesis = append(r.Genesis, FirstRegion{Name: g.Name, Weight: g.Weight})
	}
	for _, o := range f.Founders {
		r.Voters = append(r.Voters, Voter{Raft: o.Raft, Daemon: o.Daemon, Region: o.Region, Witness: o.Witness})
	}
	slices.SortFunc(r.Voters, func(a, b Voter) int { return cmp.Compare(a.Raft, b.Raft) })
	r.remember(Command{Request: f.Cluster, Version: at, At: f.Begun, Author: "cluster init", Text: "the cluster began"})
	r.conclude(Outcome{Request: f.Cluster, Version: at})
	return r
}

// validate returns an error if no cluster may begin with the founding.
func (f *Founding) validate(founders []string) error {
	for _, o := range f.Founders {
		if !slices.Contains(founders, o.Name) {
			return fmt.Errorf("founding by %q: want one of %v", o.Name, founders)
		}
	}
	if f.waits() {
		return errors.New("founding without a daemon with a disk in each region")
	}
	if 2*len(f.Founders) <= len(founders) {
		return fmt.Errorf("founding by %d of %d founders: want a majority", len(f.Founders), len(founders))
	}
	if err := f.valid(); err != nil {
		return err
	}
	return f.record().validate()
}

// waits reports whether no durable daemon of a region was heard.
func (f *Founding) waits() bool {
	return slices.ContainsFunc(f.Regions, func(g FirstRegion) bool { return len(g.Founders) == 0 })
}

// Ballot numbers the attempts to found the cluster.
type Ballot struct {
	Round    uint64 `json:"round"`
	Proposer ID     `json:"proposer"`
}

// maxRound bounds the rounds of ballots, so that there is always a higher one.
const maxRound = 1 << 62

// compare orders ballots.
func (b Ballot) compare(o Ballot) int {
	return cmp.Or(cmp.Compare(b.Round, o.Round), b.Proposer.Compare(o.Proposer))
}

// FoundingMessage is a message of Paxos between founders.
type FoundingMessage struct {
	// Founders are those in the settings of the sender.
	Founders []string     `json:"founders"`
	Step     FoundingStep `json:"step"`
	Ballot   Ballot       `json:"ballot"`
	// Promised is the ballot that a rejection names. Accepted and Value are
	// what the sender of a promise has accepted, and Value what an accept asks
	// to accept.
	Promised Ballot    `json:"promised"`
	Accepted Ballot    `json:"accepted"`
	Value    *Founding `json:"value,omitempty"`
}

// FoundingStep is a step of Paxos.
type FoundingStep string

// The steps, in their order, the rejection of any, and the request to begin of
// a daemon that is no founder.
const (
	stepAsk      FoundingStep = "ask"
	stepPrepare  FoundingStep = "prepare"
	stepPromise  FoundingStep = "promise"
	stepAccept   FoundingStep = "accept"
	stepAccepted FoundingStep = "accepted"
	stepRejected FoundingStep = "rejected"
)

// promise is the durable state of a founder.
type promise struct {
	Promised Ballot    `json:"promised"`
	Accepted Ballot    `json:"accepted"`
	Value    *Founding `json:"value,omitempty"`
}

// founding is the part of a founder in the founding.
type founding struct {
	node *Node
	promise
	stored promise // on disk

	asked   *Founding // what Init asks for: its regions and time
	ballot  Ballot    // of the attempt under way, zero for none
	step    FoundingStep
	value   *Founding        // that the attempt asks to accept
	answers map[string]reply // by the name of the founder
	best    promise          // the latest accepted among the answers
	until   time.Duration    // of the attempt
	settled time.Duration    // when to go on without the founders that are missing
	again   time.Duration    // of the next attempt
	round   uint64           // the greatest seen
}

// reply is the answer of a founder to the step of an attempt.
type reply struct{ founder Founder }

// errBegun is returned by Init when the cluster has begun.
var errBegun = errors.New("the cluster has begun")

// Init asks for the founding of a cluster with regions, whose weights sum to
// Whole. It returns an error if there can be none, and nil when it is under
// way: the record then comes, at every daemon the same one however many of them
// ask. A majority of the founders must answer. A daemon that is no founder asks
// a live one, once for each call. The cluster admits nothing by rights, nor
// hits of strict keys, in windows that run when it begins: those of a former
// one may have been admitted in them. nothingRan is the statement that no
// daemon of such a cluster ran in any window that runs.
func (n *Node) Init(regions []FirstRegion, nothingRan bool) error {
	if n.record != nil {
		return fmt.Errorf("control: %w", errBegun)
	}
	f := &Founding{Begun: n.wall, Regions: slices.Clone(regions)}
	if !nothingRan {
		f.From = n.wall + 2*n.cfg.MaxOffset.Milliseconds() + 1
	}
	slices.SortFunc(f.Regions, func(a, b FirstRegion) int { return cmp.Compare(a.Name, b.Name) })
	if err := f.valid(); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	if n.cfg.Durable && n.cfg.founds(n.cfg.Name) {
		n.founding.ask(f)
		return nil
	}
	var live []*peer
	for _, p := range n.peers {
		if p.heardAt >= 0 && n.cfg.founds(p.Name) {
			live = append(live, p)
		}
	}
	if len(live) == 0 {
		return fmt.Errorf("control: %s is no founder, and none answers: want one of %v", n.cfg.Name, n.cfg.Founders)
	}
	n.send(live[n.rng.IntN(len(live))], Message{Founding: &FoundingMessage{Founders: n.cfg.Founders, Step: stepAsk, Value: f}})
	return nil
}

// valid returns an error if no cluster can begin with the regions.
func (f *Founding) valid() error {
	probe := *f
	probe.Cluster, probe.Founders = 1, []Founder{{Raft: 1}}
	if f.From != 0 && (f.From < f.Begun || f.From > sat.AddInt(f.Begun, maxAhead)) {
		return fmt.Errorf("rights from %d on of a cluster that begins at %d: want at most %d ms more", f.From, f.Begun, maxAhead)
	}
	return probe.record().validate()
}

// ask makes a founder begin an attempt.
func (f *founding) ask(value *Founding) {
	f.asked = value
	if f.again == 0 {
		f.again = max(f.node.at, 1)
	}
}

// found makes the steps of the founding that are due.
func (n *Node) found() {
	f := &n.founding
	if n.record != nil || !n.cfg.founds(n.cfg.Name) || !n.cfg.Durable {
		return
	}
	if f.ballot != (Ballot{}) && n.at >= f.until {
		f.ballot, f.again = Ballot{}, n.at+n.between(n.cfg.election(), 4*n.cfg.election())
	}
	if f.ballot == (Ballot{}) && f.asked == nil && f.Value != nil && f.again == 0 {
		// The proposer may have ended: complete what it began.
		f.again = n.at + n.between(2*n.cfg.election(), 4*n.cfg.election())
	}
	if f.ballot == (Ballot{}) && (f.asked != nil || f.Value != nil) && f.again != 0 && n.at >= f.again {
		f.round = max(f.round, f.Promised.Round) + 1
		f.ballot, f.step, f.answers = Ballot{f.round, n.self.id()}, stepPrepare, map[string]reply{}
		f.best, f.until, f.settled = promise{}, n.at+2*n.cfg.election(), n.at+n.cfg.election()/2
		f.toFounders(FoundingMessage{Step: stepPrepare, Ballot: f.ballot})
	}
	if f.ballot != (Ballot{}) && f.step == stepPrepare {
		f.propose()
	}
}

// toFounders sends a message to all founders, this one among them.
func (f *founding) toFounders(m FoundingMessage) {
	n := f.node
	m.Founders = n.cfg.Founders
	f.acceptor(nil, &m)
	for _, p := range n.peers {
		if n.cfg.founds(p.Name) {
			n.hold(p, Message{Founding: &m}) // a restart must not use the ballot again
		}
	}
}

// receiveFounding handles a message of Paxos.
func (n *Node) receiveFounding(p *peer, m *FoundingMessage) {
	if !n.cfg.founds(n.cfg.Name) || !n.cfg.Durable || n.record != nil {
		return // the record is on its way to the sender
	}
	if !slices.Equal(m.Founders, n.cfg.Founders) {
		n.events.AddOnce(FoundersDiffer, p.Name, "founders", fmt.Sprintf("%v there, %v here", m.Founders, n.cfg.Founders))
		return
	}
	f := &n.founding
	if max(m.Ballot.Round, m.Promised.Round) > maxRound {
		n.events.AddOnce(Rejected, p.Name, "founding", fmt.Sprintf("round %d: want at most %d", max(m.Ballot.Round, m.Promised.Round), uint64(maxRound)))
		return
	}
	f.round = max(f.round, m.Ballot.Round, m.Promised.Round)
	switch m.Step {
	case stepAsk:
		if m.Value == nil || m.Value.valid() != nil {
			n.events.AddOnce(Rejected, p.Name, "founding", "a request to begin with no valid regions")
			return
		}
		f.ask(&Founding{Begun: m.Value.Begun, From: m.Value.From, Regions: m.Value.Regions})
	case stepPrepare, stepAccept:
		f.acceptor(p, m)
	case stepPromise, stepAccepted:
		f.answered(p.Name, Founder{Name: p.Name, Region: p.Region, Daemon: p.sender.ID, Run: p.sender.Run, Witness: p.sender.Witness}, m)
	case stepRejected:
		if m.Ballot == f.ballot {
			f.until = n.at
		}
	}
}

// acceptor answers a step of an attempt: from is nil for this daemon. Answers
// leave when the promise is stored.
func (f *founding) acceptor(from *peer, m *FoundingMessage) {
	n := f.node
	reply := FoundingMessage{Founders: n.cfg.Founders, Ballot: m.Ballot}
	switch {
	case m.Ballot.compare(f.Promised) < 0:
		reply.Step, reply.Promised = stepRejected, f.Promised
	case m.Step == stepPrepare:
		f.Promised = m.Ballot
		if m.Ballot.Proposer != n.self.id() { // let it finish
			f.again = n.at + n.between(2*n.cfg.election(), 4*n.cfg.election())
		}
		reply.Step, reply.Accepted, reply.Value = stepPromise, f.Accepted, f.Value
	case m.Value == nil || m.Value.validate(n.cfg.Founders) != nil:
		return
	default:
		f.Promised, f.Accepted, f.Value = m.Ballot, m.Ballot, m.Value
		reply.Step = stepAccepted
	}
	if p := f.promise; p != f.stored {
		n.queue(stored{Founding: &p})
		f.stored = p
	}
	if from != nil {
		n.hold(from, Message{Founding: &reply})
		return
	}
	n.afterStore(func() {
		f.answered(n.cfg.Name, Founder{Name: n.cfg.Name, Region: n.cfg.Region, Daemon: n.self.id(), Run: n.self.Run, Witness: n.cfg.Witness}, &reply)
	})
}

// answered counts the answer of a founder to the attempt under way.
func (f *founding) answered(name string, o Founder, m *FoundingMessage) {
	n := f.node
	want := stepPromise
	if f.step == stepAccept {
		want = stepAccepted
	}
	if n.record != nil || m.Ballot != f.ballot || f.ballot == (Ballot{}) || m.Step != want {
		return
	}
	f.answers[name] = reply{o}
	if m.Value != nil && m.Accepted.compare(f.best.Accepted) > 0 {
		f.best = promise{Accepted: m.Accepted, Value: m.Value}
	}
	if f.step == stepPrepare {
		f.propose()
	} else if 2*len(f.answers) > len(n.cfg.Founders) {
		n.begin(f.value.record())
	}
}

// propose asks the founders to accept a founding: the one that a majority may
// have accepted before, or else one by the founders that promised.
func (f *founding) propose() {
	n := f.node
	all := len(f.answers) == len(n.cfg.Founders)
	if 2*len(f.answers) <= len(n.cfg.Founders) || !all && n.at < f.settled {
		return
	}
	switch {
	case f.best.Value != nil:
		f.value = f.best.Value
	case f.asked == nil:
		f.ballot, f.again = Ballot{}, 0 // what it wanted to complete is no longer needed
		return
	default:
		v := *f.asked
		v.Cluster, v.Regions = Number(n.rng.Uint64()|1), slices.Clone(v.Regions)
		for i := range v.Regions {
			g := &v.Regions[i]
			g.Founders, g.Horizon = n.rights.durable(g.Name), n.cfg.DaemonHorizon.Milliseconds()
		}
		for _, name := range n.cfg.Founders {
			r, ok := f.answers[name]
			begins := slices.ContainsFunc(v.Regions, func(g FirstRegion) bool { return g.Name == r.founder.Region })
			if ok && begins != r.founder.Witness {
				r.founder.Raft = Number(n.rng.Uint64() | 1)
				v.Founders = append(v.Founders, r.founder)
			}
		}
		if err := v.validate(n.cfg.Founders); err != nil {
			if !v.waits() && 2*len(v.Founders) > len(n.cfg.Founders) { // else others may answer later
				n.events.AddOnce(FoundersDiffer, "", "regions", err.Error())
			}
			f.ballot, f.again = Ballot{}, n.at+4*n.cfg.election()
			return
		}
		f.value = &v
	}
	f.step, f.answers, f.until = stepAccept, map[string]reply{}, n.at+2*n.cfg.election()
	f.toFounders(FoundingMessage{Step: stepAccept, Ballot: f.ballot, Value: f.value})
}

// begin adopts the first record of the cluster.
func (n *Node) begin(r *Record) {
	n.adopt(r)
	n.events.Add(Begun, "", fmt.Sprintf("cluster %v with %d regions and %d voters", r.Cluster.ID, len(r.Regions), len(r.Voters)))
}
