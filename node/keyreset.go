package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/rules"
)

// KeyReset makes another key count in place of one that an operator reset. The
// counts, rights and leases of the former key stay as they are: what daemons
// that do not know of the reset still admit counts there, and the other key
// begins with a limit of its own.
type KeyReset struct {
	// To is the key that counts. It differs between the resets of a key.
	To crdt.Key
	// From is the time of the reset, in Unix milliseconds.
	From int64
}

// end returns the time, in Unix milliseconds, from which the former key counts
// again, as its hits from before the reset count no longer: the next start of a
// window, and one window or the refill of a bucket later where these look back.
func (r *KeyReset) end(l *rules.Limit) int64 {
	return HashesUntil(l, r.From)
}

// HasResets reports whether a resolved call has a key that was reset. The
// driver then calls ResetKeys before it uses the hits.
func (c *Call) HasResets() bool { return c.resets }

// ResetKeys replaces the keys of a resolved call that were reset, at the time
// that windows are cut from, in Unix milliseconds.
func (f *Matcher) ResetKeys(c *Call, now int64) {
	for i := range c.hits {
		h := &c.hits[i]
		if h.Limit == nil {
			continue
		}
		resets := f.opt.Resets
		if h.Twin {
			resets = f.opt.Next.Resets
		}
		if r, ok := resets[h.Key]; ok && now < r.end(h.Limit) {
			h.Key, c.Statuses[i].ResetAt = r.To, r.From
		}
	}
}

// Original returns the key that an operator reset, for the key that counts in
// its place, and any other key as it is.
func (f *Matcher) Original(k crdt.Key) crdt.Key {
	if o, ok := f.originals[k]; ok {
		return o
	}
	return k
}
