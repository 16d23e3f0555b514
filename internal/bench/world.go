package main

import (
	"fmt"
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/dchest/siphash"

	"github.com/georld/rld/daemon"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// The one rule of a world: a fixed window for each user that never refuses.
const (
	worldDomain = "bench"
	worldKey    = "user"
)

// worldStart is a minute into an hour: no run gets to the end of the window.
const worldStart = 1_000_000*3_600*int64(time.Second) + int64(time.Minute)

// worldStep is the time between two decisions of an asker.
const worldStep = 100 * time.Nanosecond

// world is an engine in process with a number of live keys.
type world struct {
	engine *daemon.Engine
	keys   int
	clock  time.Duration // since worldStart; askers start here
}

// newWorld returns a world whose users 0 to keys-1 have been charged once.
// Keys are bounded well above that: shards fill unevenly, and none may be
// full.
func newWorld(keys int) *world {
	return buildWorld(keys, 1, node.Default(), rules.Limit{})
}

// worldLimit is hits an hour.
const worldLimit = 4_000_000_000

// buildWorld returns a world of nodes with the given configuration. Each user
// has been charged `first` hits. limit holds the fields of the rule other than
// its amount and unit.
func buildWorld(keys int, first uint64, cfg node.Config, limit rules.Limit) *world {
	w := emptyWorld(keys, cfg, limit)
	a := w.asker(0)
	a.call.Descriptors[0].Hits = first
	for i := range keys {
		a.ask(i)
	}
	w.leave(a)
	if live := w.engine.Stats().LiveKeys; live != keys {
		check(fmt.Errorf("%d keys are live, want %d", live, keys))
	}
	return w
}

// emptyWorld is buildWorld before any user has been charged.
func emptyWorld(keys int, cfg node.Config, limit rules.Limit) *world {
	limit.Unit, limit.Multiplier, limit.Requests = rules.Hour, 1, worldLimit
	set := must(rules.NewSet([]rules.DomainNode{{Name: worldDomain, Children: []rules.Node{{
		Key: worldKey, Limit: &limit,
	}}}}))
	cfg.KeyReserve = 50 * rules.Percent // as the setting
	e := must(daemon.NewEngine(daemon.EngineConfig{Node: cfg, MaxKeys: max(1_000_000, 2*keys)}))
	e.SetRules(set, node.MatcherOptions{})
	return &world{engine: e, keys: keys}
}

// asker asks a world for one user at a time, from memory of its own and at
// instants of its own. It is not safe for concurrent use.
type asker struct {
	engine *daemon.Engine
	call   node.Call
	name   name
	at     node.Instant
	rng    *rand.Rand
}

func (w *world) asker(seed uint64) *asker {
	a := &asker{
		engine: w.engine, rng: rand.New(rand.NewPCG(seed, 1)),
		at: node.Instant{Mono: w.clock, Wall: worldStart + int64(w.clock)},
	}
	a.call.Domain = worldDomain
	a.call.Descriptors = []rules.Descriptor{{Hits: 1, Entries: make([]rules.Entry, 1)}}
	return a
}

// leave lets the next asker start where a is, so that time never goes back.
func (w *world) leave(a *asker) { w.clock = max(w.clock, a.at.Mono) }

// ask takes one hit of user i. It fails when the engine does, and when the hit
// is denied.
func (a *asker) ask(i int) {
	a.call.Descriptors[0].Entries[0] = rules.Entry{Key: worldKey, Value: a.name.user(i)}
	a.at.Mono += worldStep
	a.at.Wall += int64(worldStep)
	check(a.engine.CheckAt(a.at, &a.call))
	if !a.call.Decision.Allowed {
		check(fmt.Errorf("user %d was denied under a limit that nobody reaches", i))
	}
}

// name is the memory of a user's name. Names that lie ready in memory would
// add cache misses that a request, which was just read, does not have; and
// writing one must cost next to nothing beside a decision.
type name [11]byte

// user returns the name of user i, below 1<<24, which is good until the next.
func (n *name) user(i int) string {
	const hex = "0123456789abcdef"
	copy(n[:5], "user-")
	n[5], n[6], n[7] = hex[i>>20&15], hex[i>>16&15], hex[i>>12&15]
	n[8], n[9], n[10] = hex[i>>8&15], hex[i>>4&15], hex[i&15]
	return unsafe.String(&n[0], len(n))
}

// bare is the least that any limiter with that many keys does: hash a key and
// read a map.
type bare struct {
	counts map[[2]uint64]int32
	text   []byte
	name   name
	rng    *rand.Rand
	sum    int32 // keeps the reads from being optimized away
}

func newBare(keys int) *bare {
	b := &bare{counts: make(map[[2]uint64]int32, keys), rng: rand.New(rand.NewPCG(2, 1))}
	for i := range keys {
		b.counts[b.key(i)] = 1
	}
	return b
}

// keyOverhead is the size of a key beside domain, key and value, in bytes: its
// grid, the number of entries and the length of each text.
const keyOverhead = 8 + 1 + 3

// key hashes as many bytes as the engine does for user i.
func (b *bare) key(i int) [2]uint64 {
	var overhead [keyOverhead]byte
	b.text = append(b.text[:0], overhead[:]...)
	b.text = append(b.text, worldDomain+worldKey...)
	b.text = append(b.text, b.name.user(i)...)
	hi, lo := siphash.Hash128(1, 2, b.text)
	return [2]uint64{hi, lo}
}

// read reads the count of user i.
func (b *bare) read(i int) { b.sum += b.counts[b.key(i)] }
