package daemon

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/daemon/hugepage"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
)

// EngineConfig is the configuration of an Engine.
type EngineConfig struct {
	// Node is the configuration of every shard. NewEngine sets Shard, Shards
	// and MaxKeys.
	Node node.Config
	// Shards is the number of shards, a power of two up to node.MaxShards; 0
	// chooses it by MaxKeys.
	Shards int
	// MaxKeys bounds the live keys of all shards together. It is split evenly:
	// a full shard uses overflow counters even if others have room.
	MaxKeys int
	// Secrets are the keys of the hash of descriptors: one, or the current and
	// the next one. Nil is one of zeros.
	Secrets [][rules.SecretBytes]byte
	// Seed is the seed of the random numbers of all shards, which they share.
	Seed [2]uint64
	// Wall reads the wall clock. Nil uses the clock of the system.
	Wall func() time.Time

	// strict is Node.Owners, nil for none.
	strict *strict
}

// Engine is a Node split by key over shards, each with a mutex. It is safe for
// concurrent use. A decision waits for nothing but the locks of its shards, and
// for the owners of strict keys. Shards are locked in ascending order, so two
// calls cannot block each other. They stay locked from the last probe to the
// last charge, so a call with several descriptors is atomic. None is locked
// while a call waits for an owner.
type Engine struct {
	front   atomic.Pointer[node.Matcher]
	secrets atomic.Pointer[[]rules.Hasher] // of which SetRules uses the first
	shards  []*shard
	start   time.Time
	wall    func() time.Time
	reload  sync.Mutex // one SetRules or Tallies at a time; taken before shards

	expedited atomic.Uint64 // shards whose messages are expedited, as a bit set
	news      chan struct{} // holds a token when expedited became more than 0
	// interval is the longest sleep of a shard with peers: decisions do not
	// wake it, and their counts are sent within this time. It is 0 for none.
	interval time.Duration

	unknownDomain atomic.Uint64
	unmatched     atomic.Uint64

	strict *strict // nil where no owner is asked
	// sampled gets decided calls with a descriptor in the sample that nodes
	// keep of the keys with most hits. It must not wait. It may be nil.
	sampled func(c *node.Call, hits []node.Hit)
}

// shard is padded to two cache lines, so that the lock of one does not slow
// down its neighbor's.
type shard struct {
	mu   sync.Mutex
	node *node.Node
	_    [112]byte
}

// keysPerShard is the least bound on the keys of a shard: with a lower one an
// uneven split would fill one shard long before the others.
const keysPerShard = 4_096

// shards returns the number of shards.
func (c *EngineConfig) shards() int {
	if c.Shards != 0 {
		return c.Shards
	}
	return 1 << min(6, max(0, bits.Len(uint(max(1, c.MaxKeys)/keysPerShard))-1))
}

// NewEngine returns an engine without rules: it admits every call, of an
// unknown domain.
func NewEngine(c EngineConfig) (*Engine, error) {
	count := c.shards()
	if count < 1 {
		return nil, fmt.Errorf("%d shards, want a power of two from 1 to %d, or 0", count, node.MaxShards)
	}
	e := &Engine{start: time.Now(), wall: c.Wall, news: make(chan struct{}, 1)}
	if c.Node.Region != "" {
		e.interval = c.Node.Gossip.WithDefaults().Interval
	}
	c.Node.Chunks = new(hugepage.Chunks).Take
	for i := range count {
		nc := c.Node
		nc.Shard, nc.Shards = i, count
		// The remainder goes to the first shards, so that the sum is exact.
		nc.MaxKeys = (c.MaxKeys + count - 1 - i) / count
		n, err := node.New(nc, rand.New(rand.NewPCG(c.Seed[0], c.Seed[1])))
		if err != nil {
			return nil, fmt.Errorf("shard %d: %w", i, err)
		}
		e.shards = append(e.shards, &shard{node: n})
	}
	empty, err := rules.NewSet(nil)
	if err != nil {
		return nil, fmt.Errorf("empty rules: %w", err)
	}
	e.hashBy(c.Secrets)
	e.front.Store(node.NewMatcher(empty, e.hashers()[0], node.MatcherOptions{}))
	if c.strict != nil {
		e.strict = c.strict
		c.strict.serve(e)
	}
	return e, nil
}

// SetRules puts a set of rules in force for later calls. Counters stay. Other
// options for the set in force take no time.
func (e *Engine) SetRules(set *rules.Set, o node.MatcherOptions) {
	e.reload.Lock()
	defer e.reload.Unlock()
	others := set != e.Rules()
	e.front.Store(node.NewMatcher(set, e.hashers()[0], o))
	if !others {
		return
	}
	e.visit(func(_ int, n *node.Node) { n.SetRules(e.Now(), set) })
}

// hashBy makes the next SetRules hash keys by other secrets.
func (e *Engine) hashBy(all [][rules.SecretBytes]byte) {
	out := make([]rules.Hasher, max(1, len(all)))
	for i, secret := range all {
		out[i] = rules.NewHasher(secret)
	}
	e.secrets.Store(&out)
}

// hashers returns those of keys, at least one. They must not be modified.
func (e *Engine) hashers() []rules.Hasher { return *e.secrets.Load() }

// Rules returns the set in force.
func (e *Engine) Rules() *rules.Set { return e.front.Load().Rules() }

// Now reads both clocks.
func (e *Engine) Now() node.Instant {
	t := time.Now()
	at := node.Instant{Mono: t.Sub(e.start), Wall: t.UnixNano()}
	if e.wall != nil {
		at.Wall = e.wall().UnixNano()
	}
	return at
}

// Check decides a call now. See server.Engine.
func (e *Engine) Check(ctx context.Context, c *node.Call) error {
	var t attempt
	err := e.open(c, &t)
	if err == nil && !e.try(e.Now(), &t) {
		err = e.strict.wait(ctx, t)
	}
	c.Join()
	return err
}

// TryCheck is Check for a call that waits for no owner. It returns false, and
// has charged nothing, for a call that must wait.
func (e *Engine) TryCheck(c *node.Call) (decided bool, err error) {
	var t attempt
	if err = e.open(c, &t); err != nil || e.try(e.Now(), &t) {
		c.Join()
		return true, err
	}
	return false, nil
}

// CheckAt is Check at an instant of the caller. It never waits: a call that
// would have to ask an owner is decided as if the owner did not answer.
func (e *Engine) CheckAt(at node.Instant, c *node.Call) error {
	var t attempt
	err := e.open(c, &t)
	if err == nil && !e.try(at, &t) {
		e.strict.giveUp(at, &t)
	}
	c.Join()
	return err
}

// attempt is one call under way, whose rules are found.
type attempt struct {
	front *node.Matcher
	call  *node.Call
	hits  []node.Hit
	// touched are the shards of the call, as a bit set.
	touched uint64
	// waiter is the call's place among those that wait for leases, nil for a
	// call that has not waited.
	waiter *waiter
}

// open finds the rules of a call.
func (e *Engine) open(c *node.Call, t *attempt) error {
	t.front, t.call = e.front.Load(), c
	if err := e.resolve(t.front, c); err != nil {
		return err
	}
	t.hits = c.Hits()
	t.touched = e.touched(c, t.front, t.hits)
	return nil
}

// resolve finds the rules and the keys of a call.
func (e *Engine) resolve(f *node.Matcher, c *node.Call) error {
	if err := f.Resolve(c); err != nil {
		return err
	}
	if c.HasResets() {
		f.ResetKeys(c, e.Millis(e.Now()))
	}
	return nil
}

// try decides a call, unless it must wait for leases. Then it returns false and
// has charged nothing. It requests the leases of a call that has a waiter.
func (e *Engine) try(at node.Instant, t *attempt) (decided bool) {
	var after afterUnlock
	e.lock(t.touched)
	// Deferred, so that a panic, which an edge turns into an error, leaves no
	// shard locked.
	defer e.finish(t.touched, &after)
	if t.waiter == nil && t.touched != 0 {
		n := e.shards[bits.TrailingZeros64(t.touched)].node
		if node.Admit(n, at, t.call) {
			if n.Expedited() {
				after.expedite = t.touched
			}
			return true
		}
	}
	for {
		for m := t.touched; m != 0; m &= m - 1 {
			e.shards[bits.TrailingZeros64(m)].node.Probe(at, t.hits, t.call.Statuses)
		}
		t.front.Decide(t.call)
		do := replica.Charge
		switch {
		case t.waiter != nil:
			do = e.strict.next(at, t, &after)
		case e.strict != nil && replica.Waits(t.call):
			return false
		}
		switch do {
		case replica.Charge:
			e.charge(at, t, &after)
			return true
		case replica.Request:
			return false
		}
	}
}

// charge charges a call that was probed at the same instant at its shards,
// which are locked.
func (e *Engine) charge(at node.Instant, t *attempt, after *afterUnlock) {
	for m := t.touched; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		n := e.shards[i].node
		n.Charge(at, t.hits, t.call.Statuses)
		if len(t.call.Receipts) > 0 {
			n.Receipts(at, t.hits, t.call.Statuses, t.call.Receipts)
		}
		if t.waiter != nil {
			t.waiter.cancel(at, n, t.hits)
		}
		if n.Expedited() {
			after.expedite |= m & -m
		}
		if e.strict != nil {
			after.collect(at, e.strict, i, n)
		}
	}
	if e.sampled != nil {
		after.call, after.hits = t.call, t.hits
	}
}

// noteSampled reports a decided call to sampled, if it is in the sample.
func (e *Engine) noteSampled(c *node.Call, hits []node.Hit) {
	for i := range c.Statuses {
		if c.Statuses[i].Sampled {
			e.sampled(c, hits)
			return
		}
	}
}

// afterUnlock is the work of a call for the time after its shards are unlocked.
type afterUnlock struct {
	expedite uint64 // shards whose messages are expedited
	messages []sticky.Message
	// call is the decided one and hits its hits, for noteSampled. Nil for none.
	call *node.Call
	hits []node.Hit
}

// collect adds the messages of a shard, which is locked, and wakes the calls
// for which it had the last answer.
func (a *afterUnlock) collect(at node.Instant, s *strict, shard int, n *node.Node) {
	if !n.HasLeaseReady() {
		return
	}
	ready := n.LeaseReady(at)
	if len(ready.Answered) > 0 {
		s.With(func(p *replica.Process) {
			for _, ticket := range ready.Answered {
				if c := p.Waiters.Answered(ticket, shard); c != nil {
					wake(c)
				}
			}
		})
	}
	if len(ready.Messages) > 0 {
		a.messages = append(a.messages, ready.Messages...)
	}
}

// perform does the work. No shard may be locked.
func (e *Engine) perform(a *afterUnlock) {
	if a.expedite != 0 {
		e.expedite(a.expedite)
	}
	if len(a.messages) > 0 {
		replica.Route(a.messages, e.strict)
	}
	if a.call != nil {
		e.noteSampled(a.call, a.hits)
	}
}

// touched returns the shards of a call as a bit set, and counts its unmatched
// descriptors.
func (e *Engine) touched(c *node.Call, f *node.Matcher, hits []node.Hit) uint64 {
	var set, unmatched uint64
	for i := range hits {
		switch {
		case hits[i].Limit != nil:
			set |= 1 << node.ShardOf(hits[i].Key, len(e.shards))
		case c.Statuses[i].Rule == nil:
			unmatched++
		}
	}
	if unmatched > 0 {
		e.countUnmatched(c, f, unmatched)
	}
	return set
}

func (e *Engine) countUnmatched(c *node.Call, f *node.Matcher, n uint64) {
	if f.Rules().Domain(c.Domain) == nil {
		e.unknownDomain.Add(n)
	} else {
		e.unmatched.Add(n)
	}
}

func (e *Engine) lock(set uint64) {
	for ; set != 0; set &= set - 1 {
		if s := e.shards[bits.TrailingZeros64(set)]; !s.mu.TryLock() {
			s.lock()
		}
	}
}

// lockTries is about how often TryLock fails while another decision holds a
// shard.
const lockTries = 200

// lock locks the shard. The lock is held for less time than a Mutex spins
// before it looks again, so lock polls before it waits in Mutex.
func (s *shard) lock() {
	for range lockTries {
		if s.mu.TryLock() {
			return
		}
	}
	s.mu.Lock()
}

func (e *Engine) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		e.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// finish unlocks the shards of a call and does the work that is left.
func (e *Engine) finish(set uint64, after *afterUnlock) {
	e.unlock(set)
	if after.expedite != 0 || len(after.messages) > 0 || after.call != nil {
		e.perform(after)
	}
}

// visit calls do with each shard in turn while the shard is locked.
func (e *Engine) visit(do func(i int, n *node.Node)) {
	for i := range e.shards {
		e.in(i, func(n *node.Node) { do(i, n) })
	}
}

// in calls do with one shard while the shard is locked.
func (e *Engine) in(shard int, do func(*node.Node)) {
	s := e.shards[shard]
	s.lock()
	defer s.mu.Unlock()
	do(s.node)
}

// Stats returns the sum over the shards, with the largest clock offset.
func (e *Engine) Stats() node.Stats {
	var sum node.Stats
	e.visit(func(_ int, n *node.Node) { sum.Add(n.Stats()) })
	return sum
}

// StrictStats returns the sum over the shards.
func (e *Engine) StrictStats() lease.Stats {
	var sum lease.Stats
	e.visit(func(_ int, n *node.Node) { sum.Add(n.LeaseStats()) })
	return sum
}

// Unmatched returns the number of descriptors without a rule, in domains with
// rules and in domains without any.
func (e *Engine) Unmatched() (known, unknown uint64) {
	return e.unmatched.Load(), e.unknownDomain.Load()
}

// Offered returns the hits that calls asked of each rule with rights so far, by
// the shared name of the rule.
func (e *Engine) Offered() map[uint64]uint64 {
	e.reload.Lock()
	defer e.reload.Unlock()
	sums := map[uint64]uint64{}
	e.visit(func(_ int, n *node.Node) {
		n.Offered(func(rule, hits uint64) { sums[rule] += hits })
	})
	return sums
}

// Time returns the hybrid logical clock.
func (e *Engine) Time(at node.Instant) (now hlc.Timestamp) {
	e.in(0, func(n *node.Node) { now = n.Time(at) })
	return now
}

// Millis returns the time that windows are cut from, in Unix milliseconds.
func (e *Engine) Millis(at node.Instant) (now int64) {
	e.in(0, func(n *node.Node) { now = n.Millis(at) })
	return now
}

// Tallies calls yield for each rule in force, and once with empty names for
// overrides on descriptors without a rule. It waits for a running reload, so
// that no count falls.
func (e *Engine) Tallies(yield func(domain, rule string, t quota.Tally)) {
	e.reload.Lock()
	defer e.reload.Unlock()
	all := e.Rules().Rules()
	sums := make([]quota.Tally, len(all)+1) // the last one for descriptors without a rule
	e.visit(func(_ int, n *node.Node) {
		n.Tallies(func(r *rules.Rule, t quota.Tally) {
			at := len(all)
			if r != nil {
				at = r.Index
			}
			sums[at] = sums[at].Plus(t)
		})
	})
	for i, r := range all {
		yield(r.Domain, r.Path, sums[i])
	}
	yield("", "", sums[len(all)])
}
