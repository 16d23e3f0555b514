package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// Marks are how the demo measures when a count is known: one hit on a key that
// nobody else ever charges, at one daemon; a daemon knows it when it grants
// the key less than the whole limit. Nothing but decisions is looked at, so
// that all that lies between two daemons is in the measure.
const (
	// markLimit is so low that a mark uses half of it: then all daemons of a
	// region are informed, and not only the aggregator and the successor.
	markLimit  = 2
	markWindow = 10 * time.Minute
	// markEdge is how long before its window ends no mark is made: it would
	// not be seen any more.
	markEdge = 20 * time.Second
	// markEvery is the time between two marks, markLook that between two
	// looks at them: how exact the measure is.
	markEvery = 250 * time.Millisecond
	markLook  = 5 * time.Millisecond
	// markWait is how long a mark is looked for.
	markWait = 10 * time.Second
)

// marks makes marks and looks for them. It is safe for concurrent use.
type marks struct {
	cluster *cluster
	rng     *rand.Rand // of run alone
	call    node.Call  // of run alone

	mu     sync.Mutex
	made   int
	open   []*mark
	calm   time.Time // marks made before then are of times of change
	times  durations // until known
	heal   *heal
	latest time.Duration // of the last heal that came to its end, -1 before
}

// mark is one hit that is looked for.
type mark struct {
	key    string
	at     time.Time
	from   *incarnation
	owner  int
	window int64
	unseen []*instance
	heal   bool // made for a heal, not for the samples
}

// heal is a measure of how long daemons take to agree after a heal.
type heal struct {
	began  time.Time
	window int64 // of its marks, 0 before they are made
}

func newMarks(c *cluster, seed uint64) *marks {
	return &marks{cluster: c, rng: rand.New(rand.NewPCG(seed, streamMarks)), latest: -1, times: newDurations()}
}

// run measures until ctx ends.
func (m *marks) run(ctx context.Context) {
	next := time.Now()
	every(ctx, markLook, func(time.Time) {
		now := time.Now() // a tick may be late
		m.mu.Lock()
		defer m.mu.Unlock()
		m.watchHeal(now)
		if !now.Before(next) {
			next = now.Add(markEvery)
			m.makeOne(now)
		}
		m.lookLocked(now)
	})
}

// settling is for how long nothing is measured after a change.
const settling = 5 * time.Second

// disturb records a change of the network or of the daemons: for a while
// nothing but a heal is measured.
func (m *marks) disturb(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calm = now.Add(settling)
}

// cut records a partition: the heal before it is no longer measured.
func (m *marks) cut(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calm, m.heal = now.Add(never), nil
}

// healed records that all partitions have ended.
func (m *marks) healed(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calm, m.heal = now.Add(settling), &heal{began: now}
}

// convergence returns the time that the daemons took to agree after the last
// heal, -1 without a completed one, and whether one is under way.
//
// They agree when every running daemon has all counts that each of the others
// had when the partitions ended. Each daemon counts one hit right after that
// and sends its counts in the order of their last change, so a daemon with that
// hit has all counts before it.
func (m *marks) convergence() (took time.Duration, underWay bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest, m.heal != nil
}

// known returns after how long a count was known to daemons of the same region
// and of others, in times in which nothing was cut, killed or started.
func (m *marks) known() Spans {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.times.spans()
}

// watchHeal makes the marks of a heal, and makes them again when their window
// ends before they are seen.
func (m *marks) watchHeal(now time.Time) {
	if m.heal == nil {
		return
	}
	window := windowOf(now)
	m.open = slices.DeleteFunc(m.open, func(k *mark) bool { return k.heal && k.window != window })
	switch left := slices.ContainsFunc(m.open, func(k *mark) bool { return k.heal }); {
	case left:
	case m.heal.window == window:
		m.latest, m.heal = now.Sub(m.heal.began), nil
		m.calm = now.Add(settling)
	default:
		m.heal.window = window
		for _, i := range m.cluster.all {
			m.make(i, now, true)
		}
	}
}

// windowOf returns the number of the window in which a mark is made.
func windowOf(t time.Time) int64 { return t.UnixMilli() / markWindow.Milliseconds() }

// makeOne makes a mark at a daemon that runs.
func (m *marks) makeOne(now time.Time) {
	if windowOf(now) != windowOf(now.Add(markEdge)) {
		return
	}
	if i := m.cluster.all[m.rng.IntN(len(m.cluster.all))]; i.live() != nil {
		m.make(i, now, false)
	}
}

// make charges a new key at a daemon, if it runs.
func (m *marks) make(from *instance, now time.Time, heal bool) {
	r := from.live()
	if r == nil {
		return
	}
	m.made++
	k := &mark{
		key: fmt.Sprintf("%s-%d", from.name, m.made), at: now, from: r, owner: from.region,
		window: windowOf(now), heal: heal,
	}
	if m.left(r, k.key, 1) >= markLimit {
		return
	}
	for i := range m.cluster.live() {
		if i != from {
			k.unseen = append(k.unseen, i)
		}
	}
	if len(k.unseen) > 0 {
		m.open = append(m.open, k)
	}
}

// left returns how many hits a daemon still grants a key, after so many hits.
func (m *marks) left(r *incarnation, key string, hits uint64) uint64 {
	c := &m.call
	c.Reset()
	c.Domain, c.Peek = Domain, hits == 0
	c.Descriptors = append(c.Descriptors, rules.Descriptor{
		Entries: []rules.Entry{{Key: "mark", Value: key}}, Hits: hits,
	})
	if err := r.handle.Engine().Check(context.Background(), c); err != nil || len(c.Statuses) != 1 || c.Statuses[0].Limit == nil {
		return markLimit
	}
	return c.Statuses[0].Remaining
}

// lookLocked asks the daemons for their counts of the open probes. The caller
// holds the lock.
func (m *marks) lookLocked(now time.Time) {
	m.open = slices.DeleteFunc(m.open, func(k *mark) bool {
		if k.from.killed.Load() || k.from.over() || !k.heal && now.Sub(k.at) > markWait {
			return true
		}
		k.unseen = slices.DeleteFunc(k.unseen, func(i *instance) bool { return m.seen(k, i) })
		return len(k.unseen) == 0
	})
}

// seen reports whether a daemon needs no more looking at: it knows the mark,
// or has ended.
func (m *marks) seen(k *mark, i *instance) bool {
	r := i.live()
	if r == nil {
		return true
	}
	if m.left(r, k.key, 0) >= markLimit {
		return false
	}
	if !k.heal && k.at.After(m.calm) && m.heal == nil {
		m.times.add(time.Since(k.at), i.region == k.owner)
	}
	return true
}
