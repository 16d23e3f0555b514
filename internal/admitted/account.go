// Package admitted accounts for the hits that a cluster admits against its
// limits. It counts the answers that clients receive and reads no counter of a
// daemon, so an audit of it detects daemons that count wrongly.
package admitted

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// Account is the admitted hits by rule, key and window. The zero value is an
// empty account that keeps all windows. It is not safe for concurrent use.
type Account struct {
	// Keep is the number of windows of a key that the account keeps, the latest
	// ones; 0 keeps all. Set it before the first Add.
	Keep   int
	counts map[Window]*Count
}

// Count is the admitted hits of one window of one key.
type Count struct {
	Window
	// Limit is the greatest limit in force in the window: a daemon may have
	// admitted by any of them. The owner of the account raises it.
	Limit int
	// Total is the number of hits of all daemons.
	Total int
	hits  map[Hit]int
}

// Hit is one admitted hit: the daemon counted it between the two times. A
// window stores equal hits once, with their number. So an account without
// times needs as much memory as it has windows and daemons, whatever the load;
// with times, at most one entry for each admitted hit.
type Hit struct {
	By             Daemon
	Sent, Answered time.Time
}

// Daemon is one run of a daemon. In a pattern, fields that are zero match all.
type Daemon struct {
	Region, Name string
	Run          int // 1 for the first process of that name, 2 for the next
}

// Matches reports whether the pattern covers d.
func (d Daemon) Matches(pattern Daemon) bool {
	return (pattern.Region == "" || pattern.Region == d.Region) &&
		(pattern.Name == "" || pattern.Name == d.Name) &&
		(pattern.Run == 0 || pattern.Run == d.Run)
}

// Add enters a hit into its window, with the limit for a window that is new to
// the account. It returns the count of the window, or nil if the window is
// older than all that the account keeps of the key. The account owns the count.
func (a *Account) Add(w Window, limit int, h Hit) *Count {
	c := a.counts[w]
	if c == nil {
		if !a.makeRoom(w) {
			return nil
		}
		if a.counts == nil {
			a.counts = make(map[Window]*Count)
		}
		c = &Count{Window: w, Limit: limit, hits: make(map[Hit]int)}
		a.counts[w] = c
	}
	c.Total++
	c.hits[h]++
	return c
}

// makeRoom drops the oldest window of the key if there is no room for another
// one. It returns false, and drops nothing, if w is older.
func (a *Account) makeRoom(w Window) bool {
	if a.Keep == 0 {
		return true
	}
	oldest, kept := w, 0
	for other := range a.counts {
		if other.Rule == w.Rule && other.Key == w.Key {
			kept++
			if other.Start.Before(oldest.Start) {
				oldest = other
			}
		}
	}
	if kept < a.Keep {
		return true
	}
	delete(a.counts, oldest)
	return oldest != w
}

// Counts returns the counts that the account keeps, by rule, key and start.
func (a *Account) Counts() []*Count {
	return slices.SortedFunc(maps.Values(a.counts), func(x, y *Count) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Key, y.Key), x.Start.Compare(y.Start))
	})
}

// Hits iterates over the hits of the daemons that match the pattern, each with
// its number, in no order.
func (c *Count) Hits(by Daemon) iter.Seq2[Hit, int] {
	return func(yield func(Hit, int) bool) {
		for h, n := range c.hits {
			if h.By.Matches(by) && !yield(h, n) {
				return
			}
		}
	}
}

// Admitted returns the number of hits of the daemons that match the pattern.
func (c *Count) Admitted(by Daemon) int {
	sum := 0
	for _, n := range c.Hits(by) {
		sum += n
	}
	return sum
}

// Overage returns the hits beyond the limit as a share of the limit, or 0.
func (c *Count) Overage() float64 {
	if c.Total <= c.Limit || c.Limit == 0 {
		return 0
	}
	return float64(c.Total-c.Limit) / float64(c.Limit)
}
