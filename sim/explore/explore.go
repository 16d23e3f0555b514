package explore

import (
	"fmt"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// The bounds of a scope. Beyond them an exploration takes too long.
const (
	maxScopeDaemons  = 4
	maxScopeRestarts = 3
	maxScopeDepth    = 24
	maxScopeStates   = 5_000_000
)

// Scope is a cluster small enough to try everything that can happen to it
// within a number of steps. The daemons decide calls for one key. A step is a
// call at a daemon, a frame that arrives, a restart of a daemon, which loses
// its memory and gets a new incarnation, a daemon that learns of a restart, or
// a tick: time passes and every daemon sends the messages that are due.
//
// The network keeps every frame and may deliver each of them twice, in any
// order. So a lost frame is one that is not delivered, a late frame is
// delivered later, and a duplicate is delivered again. None of them needs a
// step of its own.
type Scope struct {
	Name string
	// Regions holds the number of daemons of each region.
	Regions   []int
	Algorithm rules.Algorithm
	// Limit is how many requests pass in Seconds.
	Limit, Seconds uint32
	// Rights gives the daemons equal shares of rights, which sum to the limit
	// and Budget percent more. A restarted daemon holds none of the window that
	// the process before it may have used. Of windows only.
	Rights bool
	Budget uint32
	// Depth is how many steps are tried. Heal is up to which depth the cluster
	// is healed after each step, to see it agree.
	Depth, Heal int
	// Restarts bounds the restarts of a run.
	Restarts int
	// Tick is the time between two ticks, 0 for the interval of gossip.
	Tick time.Duration
	// Roll is in how many ticks after the start the window ends, 0 for not at
	// all.
	Roll int

	mutation mutation
}

// mutation is bugs that tests put in, to see them found.
type mutation struct {
	reuseIncarnation bool                    // a restarted daemon counts under the incarnation it had
	noFence          bool                    // a restarted daemon holds its share again
	mangle           func(m *gossip.Message) // changes a message as it is sent
}

// Explored is what Explore found.
type Explored struct {
	// States are the different states that were reached, and Histories the
	// different states of one daemon, by all that happened to it.
	States, Histories uint64
	// Healed are the runs that were healed, each state twice: with all frames
	// that were on their way, and with none of them.
	Healed uint64
	// Admitted and Denied count the different decisions of one daemon.
	Admitted, Denied uint64
	// Overage is the most hits that passed beyond the limit in any state.
	Overage uint64
	// Given is the most rights that one process gave others in any state.
	Given uint64
	// Seen counts the events of the replicas by name.
	Seen map[string]uint64
	// Violation describes the first violation, "" for none. Trace lists the
	// steps that lead to it.
	Violation string
	Trace     []string
}

// Explore tries all that can happen within a scope, on the nodes and frames of
// the daemon. After each step it checks that
//
//   - no replica counts more of any incarnation than was counted there;
//   - a replica holds its own counts, and none of its counts shrinks;
//   - an admission fits the counts that the replica holds. So the world is over
//     the limit by no more than the counts that it lacks (Theorem 1), and by no
//     more than the limit for each further process. A denial does not fit;
//   - the admitted hits fit the rights of the world, and the hits and transfers
//     of a process its allotment and the transfers that it received. No process
//     receives more than its donor was charged;
//   - a replica holds all that a peer had counted by the age its link states.
//
// A healed cluster must agree on all that was counted, but for counts that only
// a process held which lost its memory.
//
// Two states are one if each daemon went through the same events in the same
// order. The error is a scope that cannot be explored.
func Explore(s Scope) (*Explored, error) {
	e, err := newExplorer(s)
	if err != nil {
		return nil, err
	}
	start, err := e.warmUp()
	if err == nil {
		err = e.visit(start, 0)
	}
	if err != nil && err != errViolated {
		return nil, err
	}
	e.out.Histories = uint64(len(e.histories))
	return &e.out, nil
}

func (s *Scope) validate() error {
	n := 0
	for _, d := range s.Regions {
		if d < 1 {
			return fmt.Errorf("sim: scope %s: a region of %d daemons, want at least one", s.Name, d)
		}
		n += d
	}
	switch {
	case n < 1 || n > maxScopeDaemons:
		return fmt.Errorf("sim: scope %s: %d daemons, want 1 to %d", s.Name, n, maxScopeDaemons)
	case s.Limit < 1 || s.Limit >= 1000 || s.Seconds < 1 || s.Seconds > 3600:
		return fmt.Errorf("sim: scope %s: limit of %d in %d seconds, want 1 to 999 in 1 to 3600", s.Name, s.Limit, s.Seconds)
	case s.Depth < 1 || s.Depth > maxScopeDepth || s.Heal > s.Depth:
		return fmt.Errorf("sim: scope %s: depth %d, healed to %d: want 1 to %d, and no more", s.Name, s.Depth, s.Heal, maxScopeDepth)
	case s.Tick != 0 && s.Tick < 10*time.Millisecond || s.Tick > time.Second:
		return fmt.Errorf("sim: scope %s: ticks of %v, want 10ms to 1s", s.Name, s.Tick)
	case s.Roll < 0 || s.Roll > maxScopeDepth:
		return fmt.Errorf("sim: scope %s: a window that ends in %d ticks, want 0 to %d", s.Name, s.Roll, maxScopeDepth)
	case s.Restarts < 0 || s.Restarts > maxScopeRestarts:
		return fmt.Errorf("sim: scope %s: %d restarts, want 0 to %d", s.Name, s.Restarts, maxScopeRestarts)
	case s.Rights && s.fold().Drains() || s.Budget > 1000 || s.Budget > 0 && !s.Rights:
		return fmt.Errorf("sim: scope %s: rights of %v with a budget of %d %%, want those of windows, and 0 to 1000",
			s.Name, s.Algorithm, s.Budget)
	case s.fold().Stamped() || s.fold().Delays():
		return fmt.Errorf("sim: scope %s: %v, want fixed_window, sliding_window or token_bucket", s.Name, s.Algorithm)
	}
	return nil
}

// fold returns the fold of the scope's limit.
func (s *Scope) fold() quota.Fold { return quota.Of(&rules.Limit{Algorithm: s.Algorithm}) }

// Scopes returns those that are explored by default. deeper adds as many steps
// to each.
func Scopes(deeper int) []Scope {
	fixed, sliding, bucket := rules.FixedWindow, rules.SlidingWindow, rules.TokenBucket
	all := []Scope{
		{Name: "pair", Regions: []int{2}, Algorithm: fixed, Limit: 2, Seconds: 60, Depth: 8, Heal: 5, Restarts: 1},
		{Name: "pair-roll", Regions: []int{2}, Algorithm: fixed, Limit: 1, Seconds: 10, Depth: 8, Heal: 5, Roll: 2},
		{Name: "pair-urgent", Regions: []int{2}, Algorithm: fixed, Limit: 4, Seconds: 60, Depth: 8, Heal: 5, Tick: 50 * time.Millisecond},
		{Name: "pair-sliding", Regions: []int{2}, Algorithm: sliding, Limit: 3, Seconds: 10, Depth: 8, Heal: 5, Roll: 3},
		{Name: "pair-bucket", Regions: []int{2}, Algorithm: bucket, Limit: 2, Seconds: 1, Depth: 8, Heal: 5},
		{Name: "three", Regions: []int{3}, Algorithm: fixed, Limit: 2, Seconds: 60, Depth: 6, Heal: 4, Restarts: 1},
		{Name: "three-hops", Regions: []int{3}, Algorithm: fixed, Limit: 2, Seconds: 60, Depth: 6, Heal: 4, Restarts: 1},
		{Name: "three-sliding", Regions: []int{3}, Algorithm: sliding, Limit: 1, Seconds: 10, Depth: 6, Heal: 4, Roll: 2},
		{Name: "regions", Regions: []int{1, 1}, Algorithm: fixed, Limit: 3, Seconds: 60, Depth: 7, Heal: 5, Restarts: 1},
		{Name: "regions-bucket", Regions: []int{1, 1}, Algorithm: bucket, Limit: 4, Seconds: 1, Depth: 7, Heal: 5},
		{Name: "two-and-one", Regions: []int{2, 1}, Algorithm: fixed, Limit: 2, Seconds: 60, Depth: 6, Heal: 4, Restarts: 1},
		{Name: "two-and-one-roll", Regions: []int{2, 1}, Algorithm: sliding, Limit: 4, Seconds: 10, Depth: 6, Heal: 4, Roll: 2},
		{Name: "pair-rights", Regions: []int{2}, Algorithm: fixed, Limit: 4, Seconds: 60, Rights: true, Budget: 50, Depth: 7, Heal: 4, Restarts: 1},
		{Name: "pair-rights-roll", Regions: []int{2}, Algorithm: sliding, Limit: 4, Seconds: 10, Rights: true, Depth: 7, Heal: 4, Roll: 3},
		{Name: "three-rights", Regions: []int{3}, Algorithm: fixed, Limit: 4, Seconds: 60, Rights: true, Depth: 6, Heal: 3},
		{Name: "regions-rights", Regions: []int{1, 1}, Algorithm: fixed, Limit: 4, Seconds: 60, Rights: true, Budget: 50, Depth: 7, Heal: 4, Restarts: 1},
	}
	for i := range all {
		all[i].Depth += deeper
		all[i].Heal += deeper
	}
	return all
}
