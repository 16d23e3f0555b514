package lease

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// Config is how a table leases rights.
type Config struct {
	// Headroom is the most hits that an owner's watermark is ahead of its
	// consumption, or a twentieth of the limit where that is more and as many
	// hits come in 50 ms.
	Headroom uint64
	// Prefetch is the most rights that a lessee keeps of a rarely requested
	// key, 0 for none.
	Prefetch uint64
	// MaxQueued bounds the requests that wait for the watermark of one key at
	// its owner, default 1,024.
	MaxQueued int
}

// Owners maps keys to owners. A table calls it while its caller holds the lock
// of a shard, so it must not wait for one.
type Owners interface {
	// Routing returns the owners and strict voters now, nil if unknown.
	Routing() *route.Routing
	// Reach returns how long to wait for an answer of a daemon, and whether its
	// circuit breaker lets calls pass.
	Reach(owner crdt.Incarnation) (wait time.Duration, open bool)
}

// Allotments returns the rights of the daemon's region, for limits whose rights
// stay in each region.
type Allotments interface {
	// Version changes whenever a result of RegionAllotment may have.
	Version() uint64
	// RegionAllotment returns the region's part of a rule's total in a window,
	// and the reason for it.
	RegionAllotment(rule, total uint64, window, carry int64) (uint64, epoch.Reason)
}

// Env is the part of a daemon that a table depends on. Functions are called
// under the caller's lock and must not call back.
type Env struct {
	Self   crdt.Incarnation
	Region string
	// MaxKeys bounds the entries. KeyReserve is the part of it that is reserved
	// for rules with few of them: see keytable.Shares.
	MaxKeys    int
	KeyReserve rules.PPM
	// Shard is the shard of the table, of Shards: tables of one daemon number
	// their proposers differently. 0 and 0 for a single one.
	Shard, Shards int
	// MaxOffset is how far the clocks of two daemons may be apart, in
	// milliseconds.
	MaxOffset int64
	Owners    Owners
	// Allotments is nil if no rights stay in regions.
	Allotments Allotments
	// Live reports whether a daemon is a live peer.
	Live func(crdt.Incarnation) bool
	// Holds reports whether a key belongs to this table's shard.
	Holds func(crdt.Key) bool
}

// Now is one reading of the clocks: a monotonic one, and that of windows in
// Unix milliseconds.
type Now struct {
	Mono   time.Duration
	Millis int64
}

// Table is one shard's part in strict keys: the leases of keys that other
// daemons own, and the grants and watermarks of keys that this daemon owns. It
// is not safe for concurrent use.
type Table struct {
	cfg    Config
	env    Env
	at     Now // of the call under way
	set    *rules.Set
	limits []ruleLimits // by rule

	entries   map[entryID]*entry // at most env.MaxKeys
	proposing map[uint64]*entry  // those owned here, by the term of their proposer
	all       []*entry
	shares    keytable.Shares // counts the entries, by their share
	hand      int             // next of all to sweep
	active    []*entry        // those that Tick visits

	out       []sticky.Message
	answered  []uint64 // tickets
	requestID uint64   // of the latest request
	terms     uint64   // proposers so far
	stats     Stats
}

// New returns an empty table with rules in force.
func New(cfg Config, env Env, set *rules.Set) *Table {
	t := &Table{
		cfg: cfg, env: env,
		entries: map[entryID]*entry{}, proposing: map[uint64]*entry{},
		shares: keytable.NewShares(env.MaxKeys, env.KeyReserve),
	}
	t.SetRules(set)
	return t
}

// SetRules puts rules in force. Entries of a rule that is gone or counts on
// another grid stay until they can no longer matter.
func (t *Table) SetRules(set *rules.Set) {
	t.set, t.limits = set, nil
	t.shares.SetRules(set.Rules(), func(r *rules.Rule) bool { return r.Limit != nil && r.Limit.Homed() })
	for _, e := range t.all {
		e.share = -1
		if r := t.ruleOf(e); r != nil {
			e.share = int32(r.Index)
		}
		t.shares.Add(e.share)
	}
}

// entryID names an entry. After a reload a key may belong to another rule, and
// to the former one again after one more.
type entryID struct {
	key       crdt.Key
	rule      uint64 // shared name
	perRegion bool   // each region has an owner of its own
}

// idOf returns the name of the entry that a key has under a rule.
func idOf(key crdt.Key, r *rules.Rule, reserve bool) entryID {
	return entryID{key, r.Shared(), !reserve && r.Limit.HomeInRegion()}
}

// entryKey returns the key of a key's entry, or of its regional reserve.
func entryKey(k crdt.Key, reserve bool) crdt.Key {
	if reserve {
		k ^= 0x666c6f6f72 << crdt.ShardBits // the shard stays
	}
	return k
}

// entry is the state of one key under one rule, or of the key's regional
// reserve.
type entry struct {
	id      entryID
	rule    rules.ID
	share   int32 // the index of the rule in Table.set, -1 for none
	reserve bool
	active  bool   // in Table.active
	owner   *owner // nil unless this daemon has been the owner
	lease   lease
	// waiters are the pending calls, in the order in which they came. A call
	// stays until its hits are charged and it is canceled.
	waiters []waiter
}

// regional reports whether the owner of an entry is in the daemon's own region.
func (e *entry) regional() bool { return e.reserve || e.id.perRegion }

// sweepOnInsert is how many entries a full table visits to make room for one.
const sweepOnInsert = 64

// find returns the entry of a key, nil if there is none.
func (t *Table) find(key crdt.Key, r *rules.Rule, reserve bool) *entry {
	return t.entries[idOf(entryKey(key, reserve), r, reserve)]
}

// open returns the entry of an entry's key and makes it if there is none. It
// returns nil if the rule has no room.
func (t *Table) open(key crdt.Key, r *rules.Rule, reserve bool) *entry {
	id := idOf(key, r, reserve)
	if e := t.entries[id]; e != nil {
		return e
	}
	if !hasRoom(t, r) {
		return nil
	}
	e := &entry{id: id, rule: r.ID, share: shareOf(t, r), reserve: reserve}
	t.shares.Add(e.share)
	t.entries[id] = e
	t.all = append(t.all, e)
	return e
}

// hasRoom reports whether a rule has room for one more entry, after some that
// can no longer matter have been forgotten.
func hasRoom(t *Table, r *rules.Rule) bool {
	share := shareOf(t, r)
	return t.shares.Fits(share, 0) || t.sweep(sweepOnInsert) > 0 && t.shares.Fits(share, 0)
}

// shareOf returns the index of a rule in force, -1 for another one: a call that
// was matched just before a reload has a rule of the previous set.
func shareOf(t *Table, r *rules.Rule) int32 {
	if is := t.set.Find(r.ID); is != nil {
		return int32(is.Index)
	}
	return -1
}

// ruleOf returns the rule of an entry, nil if it is not in force any more.
func (t *Table) ruleOf(e *entry) *rules.Rule {
	if r := t.set.Find(e.rule); r != nil && r.Limit != nil && idOf(e.id.key, r, e.reserve) == e.id {
		return r
	}
	return nil
}

// activate makes Tick visit an entry.
func (t *Table) activate(e *entry) {
	if !e.active {
		e.active = true
		t.active = append(t.active, e)
	}
}

// ownerOf returns the owner of an entry's key under a limit. The routing is nil
// if unknown.
func (t *Table) ownerOf(key crdt.Key, rule rules.ID, regional bool, l *rules.Limit) (route.Owner, *route.Routing) {
	v := t.env.Owners.Routing()
	if v == nil {
		return route.Owner{}, nil
	}
	return v.Owner(key, uint64(rule), regional, leasedSince(l, t.at.Millis)), v
}
