package node

import (
	"math"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/quota/transfer"
	"github.com/georld/rld/rules"
)

// keys holds the counters of one shard: an entry per live key, and overflow
// counters for the keys beyond the limit.
type keys struct {
	live     keytable.Table // bounded by shares
	overflow keytable.Table // one entry per rule and grid
	filter   keytable.Filter
	sides    sideTable
	shares   keytable.Shares // counts the entries of live, by their Rule
	promised int             // new keys that the latest Probe found room for
	hand     int32           // next entry of live to sweep
	// No entry of live expires before soonest (Unix milliseconds), and none of
	// those that the present pass has checked or that came since before later.
	soonest, later int64

	shard, shards int
	accounts      bool       // the node has rights
	former        *former    // the use of rights by former runs, nil for none
	zero          quota.Cell // of keys without hits; never written
}

// settle lets the tables of keys grow. Pointers to entries of before are not
// good any more.
func (s *keys) settle() {
	s.later = min(s.later, s.live.Settle())
	s.overflow.Settle()
}

// owns reports whether a key belongs to the shard.
func (s *keys) owns(k crdt.Key) bool { return ShardOf(k, s.shards) == s.shard }

// Cell returns the cell and log to decide a hit by. Those of a key without hits
// are empty and must not be written.
func (s *keys) cell(at ref) (*quota.Cell, *quota.Log) {
	if at.entry == nil {
		return &s.zero, nil
	}
	return &at.entry.Cell, s.sides.log(at.entry.Extra)
}

// logOf returns the log of an entry, which is made if the fold needs one.
func (s *keys) logOf(e *keytable.Entry, f quota.Fold) *quota.Log {
	if f.Stamped() {
		return &s.sides.of(e).log
	}
	return s.sides.log(e.Extra)
}

// roomFor reports whether one more key of a rule, by its index, may be tracked,
// after expired keys have been dropped.
func (s *keys) roomFor(rule int32, now int64) bool {
	return s.shares.Fits(rule, s.promised) || s.sweep(now, sweepOnInsert) > 0 && s.shares.Fits(rule, s.promised)
}

// insert adds an entry of live, without a rule, for a key that has none.
func (s *keys) insert(k crdt.Key) *keytable.Entry {
	s.shares.Add(-1)
	return s.live.Insert(k)
}

// assign sets the rule of an entry of live.
func (s *keys) assign(e *keytable.Entry, rule int32) {
	if e.Rule != rule {
		s.shares.Move(e.Rule, rule)
		e.Rule = rule
	}
}

// recount counts the entries of live for other rules.
func (s *keys) recount(set *rules.Set) {
	s.shares.SetRules(set.Rules(), func(r *rules.Rule) bool { return r.Limit != nil && !r.Limit.Unlimited })
	for e := range s.live.All {
		s.shares.Add(e.Rule)
	}
}

// touch prepares an entry for a decision: it is not swept for a new key of the
// same call, and a bucket moves to the rate of its limit. touch reports whether
// the entry holds counts of other keys.
func (s *keys) touch(e *keytable.Entry, h *Hit, now int64) bool {
	if e.Expires() <= now {
		e.Restart(now + 1)
	}
	if f := quota.Of(h.Limit); f.Drains() && f.Adopt(&e.Cell, now) {
		e.KeepUntil(f.Expires(&e.Cell))
	}
	return e.Inherited()
}

// locateNew returns the start of a new key with room: no hits, or a copy of
// its rule's overflow counter if that may hold hits of the key. The copy is an
// upper bound, so no hit is forgotten.
func (s *keys) locateNew(h *Hit, i int, now int64) ref {
	if s.overflow.Len() > 0 && s.filter.Has(h.Key) {
		if e := s.overflow.Find(overflowKey(h)); e != nil && e.Expires() > now {
			s.touch(e, h, now)
			return ref{heir, int32(i), e}
		}
	}
	return ref{where: nowhere, first: int32(i)}
}

// locateOverflow returns the overflow counter of hit i.
func (s *keys) locateOverflow(h []Hit, out []Status, i int, now int64) ref {
	k := overflowKey(&h[i])
	if e := s.overflow.Find(k); e != nil {
		s.touch(e, &h[i], now)
		return ref{where: inOverflow, entry: e}
	}
	for j := range h[:i] {
		missing := h[j].Limit != nil && s.owns(h[j].Key) && out[j].probed.ref.where == unborn
		if missing && overflowKey(&h[j]) == k {
			return out[j].probed.ref
		}
	}
	return ref{where: unborn, first: int32(i)}
}

// make returns the entry of a hit and adds it if there is none. mono is the
// monotonic time in milliseconds. A call may have a new key twice, so make
// looks it up again.
func (s *keys) make(h *Hit, at ref, mono int64) ref {
	switch at.where {
	case nowhere, heir:
		e := s.live.Find(h.Key)
		if e == nil {
			e = s.insert(h.Key)
			if at.where == heir {
				s.inherit(e, at.entry, mono)
			}
		}
		return ref{where: inLive, entry: e}
	case unborn:
		k := overflowKey(h)
		e := s.overflow.Find(k)
		if e == nil {
			e = s.overflow.Insert(k)
			if s.accounts && quota.Of(h.Limit).Drains() {
				s.sides.of(e).account = &account{grid: h.Limit.Grid()}
			}
		}
		return ref{where: inOverflow, entry: e}
	}
	return at
}

// inherit makes a new entry start as a copy of an overflow counter.
func (s *keys) inherit(e, from *keytable.Entry, mono int64) {
	e.Cell = from.Cell
	e.KeepUntil(from.Expires())
	e.Inherit()
	if from.Extra >= 0 {
		to := s.sides.of(e)
		to.log.CopyFrom(s.sides.log(from.Extra))
		if a := s.sides.account(from.Extra); a != nil {
			to.account = &account{Account: a.Account, grid: a.grid, transfers: transfer.New(mono, 0, 0, 0)}
		}
	}
}

// sweepOnInsert is the number of entries that are checked for an expired one
// when a new key finds the node full.
const sweepOnInsert = 64

// maxDrops bounds the entries that one sweep drops, and so the time for which
// the driver's lock is held: each drop costs a few cache misses.
const maxDrops = 512

// keep postpones the expiry of an entry, which may be new.
func (s *keys) keep(e *keytable.Entry, until int64) {
	e.KeepUntil(until)
	s.soonest, s.later = min(s.soonest, e.Expires()), min(s.later, e.Expires())
}

// sweep checks up to budget entries from where the last sweep ended, drops the
// expired ones and returns their number. It checks none where none can have
// expired.
func (s *keys) sweep(now int64, budget int32) int {
	dropped := 0
	for range min(budget, s.live.Used()) {
		if s.hand >= s.live.Used() {
			s.hand, s.soonest, s.later = 0, s.later, math.MaxInt64
		}
		if now < s.soonest || dropped == maxDrops {
			break
		}
		if rule := s.live.At(s.hand).Rule; s.expire(&s.live, s.hand, now) {
			s.shares.Remove(rule)
			dropped++
		} else if e := s.live.At(s.hand); e.Rule != keytable.Free {
			s.later = min(s.later, e.Expires())
		}
		s.hand++
	}
	return dropped
}

// sweepOverflow drops all expired overflow counters.
func (s *keys) sweepOverflow(now int64) {
	for i := range s.overflow.Used() {
		s.expire(&s.overflow, i, now)
	}
	if s.overflow.Len() == 0 {
		s.filter.Clear()
	}
}

// expire drops an entry if it has expired.
func (s *keys) expire(from *keytable.Table, i int32, now int64) bool {
	e := from.At(i)
	if e.Rule == keytable.Free || e.Expires() > now {
		return false
	}
	s.sides.put(e.Extra)
	from.Remove(i)
	return true
}
