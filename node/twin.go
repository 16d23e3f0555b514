package node

import (
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// A cluster replaces its secret, which hashes keys, in three steps: all daemons
// hash with the former secret, then with both, then with the next one. With
// both, each hit counts under both keys, and must fit both. So the former keys
// have all hits as long as one daemon uses them alone, and the next ones have
// all hits that still count before one daemon uses these alone, if all daemons
// hash with both for the history of the limit: see HashesUntil.

// NextSecret hashes the keys of the next secret.
type NextSecret struct {
	Hasher rules.Hasher
	// Resets are MatcherOptions.Resets, with the keys of this secret that count
	// in place of those that were reset.
	Resets map[crdt.Key]KeyReset
}

// nextKey returns the key of descriptor i, which has a limit, under the next
// secret.
func (f *Matcher) nextKey(c *Call, i int) (k crdt.Key) {
	st, d := &c.Statuses[i], &c.Descriptors[i]
	k, c.key = f.opt.Next.Hasher.Key(c.key[:0], c.Domain, d.Entries, patterns(st, d), st.Limit.Grid())
	return k
}

// NextKey returns the key of descriptor i of a resolved call under the next
// secret, false without one or without a limit.
func (f *Matcher) NextKey(c *Call, i int) (crdt.Key, bool) {
	if f.opt.Next == nil || c.Statuses[i].Limit == nil {
		return 0, false
	}
	return f.nextKey(c, i), true
}

// addTwins appends, to the hits of a resolved call, a hit on the key of the
// next secret for each that has a limit, with a status of its own. Join removes
// them.
func (f *Matcher) addTwins(c *Call) {
	n := len(c.Descriptors)
	c.Statuses, c.hits = slices.Grow(c.Statuses, n), slices.Grow(c.hits, n)
	for i := range n {
		st, h := &c.Statuses[i], c.hits[i]
		if h.Limit == nil {
			continue
		}
		h.Twin, h.Key = true, f.nextKey(c, i)
		_, reset := f.opt.Next.Resets[h.Key]
		c.resets = c.resets || reset
		c.Statuses = append(c.Statuses, Status{Rule: st.Rule, Limit: st.Limit, Blocked: st.Blocked})
		c.hits = append(c.hits, h)
		c.twins = append(c.twins, int32(i))
	}
}

// link has a hit that does not fit one of its keys fit neither of them.
func (c *Call) link() {
	for t, i := range c.twins {
		st, twin := &c.Statuses[i], &c.Statuses[len(c.Descriptors)+t]
		if st.Over != twin.Over {
			st.Over, twin.Over = true, true
		}
		if st.Over { // twins are in no statistics
			st.Gate |= twin.Gate
		}
		if st.Degraded == NotDegraded {
			st.Degraded = twin.Degraded
		}
	}
}

// Origin returns the descriptor of hit i of a resolved call.
func (c *Call) Origin(i int) *rules.Descriptor {
	if n := len(c.Descriptors); i >= n {
		i = int(c.twins[i-n])
	}
	return &c.Descriptors[i]
}

// Join merges the statuses of a decided call whose hits count under two keys:
// each descriptor has the tighter one. It does nothing to other calls.
func (c *Call) Join() {
	if len(c.twins) > 0 {
		c.join()
	}
}

func (c *Call) join() {
	n := len(c.Descriptors)
	for t, i := range c.twins {
		st, twin := &c.Statuses[i], &c.Statuses[n+t]
		tighter := *st
		if twin.Remaining < st.Remaining || twin.Remaining == st.Remaining && twin.Retry > st.Retry {
			tighter = *twin
		}
		tighter.Gate, tighter.Degraded, tighter.Sampled = st.Gate, st.Degraded, st.Sampled
		tighter.Retry, tighter.Delay, tighter.Reset = max(st.Retry, twin.Retry), max(st.Delay, twin.Delay), max(st.Reset, twin.Reset)
		*st = tighter
	}
	c.Statuses, c.hits, c.twins = c.Statuses[:n], c.hits[:n], c.twins[:0]
}

// HashesUntil returns the time, in Unix milliseconds, until which the hits of a
// limit must count under the keys of two secrets, if all daemons count them so
// from a time on. Later hits of windows that have begun since are complete
// under both.
func HashesUntil(l *rules.Limit, from int64) int64 {
	f := quota.Of(l)
	end := rules.CeilWindow(from+1, max(l.Window(), 1))
	if !f.Resets() || l.CarryDebt {
		end += max(l.Window(), f.RefillTime())
	}
	return end
}
