package server

import (
	"time"

	"github.com/georld/rld/node"
)

// Worst returns the first reason why the answer to a call is degraded, and how
// long to hold the call back if it is admitted.
func Worst(statuses []node.Status) (degraded node.Degraded, delay time.Duration) {
	for i := range statuses {
		if degraded == node.NotDegraded {
			degraded = statuses[i].Degraded
		}
		delay = max(delay, statuses[i].Delay)
	}
	return degraded, delay
}

// Never returns the index of the first status that keeps a refused call from
// ever passing, -1 when there is none: a limit that never holds its hits, or
// a quota, where no other quota ever has room. A quota in shadow mode has room.
func Never(statuses []node.Status) int {
	hard, quota, quotas := -1, -1, false // quotas: one has room, now or later
	for i := range statuses {
		s := &statuses[i]
		switch {
		case s.Limit == nil:
		case !s.Refuses() || !s.Never:
			quotas = quotas || s.Limit.Quota
		case s.Limit.Quota:
			if quota < 0 {
				quota = i
			}
		case hard < 0:
			hard = i
		}
	}
	if hard >= 0 || quotas {
		return hard
	}
	return quota
}

// wait is how long to wait for a limit that refuses. For hits that never fit
// it is until the whole limit is available, where fewer of them fit at last.
func wait(s *node.Status) time.Duration {
	if s.Never {
		return s.Reset
	}
	return s.Retry
}

// Retry is the time after which a refused call would pass if nothing else
// came: every limit that refuses must have room for it, but of the quotas,
// which refuse only together, one is enough. Quotas that never have room for
// it count only where none does.
func Retry(statuses []node.Status) time.Duration {
	var hard time.Duration
	var quota *node.Status // the first with room again, of those with none
	left := false          // one has room
	for i := range statuses {
		s := &statuses[i]
		switch {
		case s.Limit == nil:
		case !s.Limit.Quota:
			if s.Refuses() {
				hard = max(hard, wait(s))
			}
		case !s.Refuses():
			left = true
		case quota == nil || sooner(s, quota):
			quota = s
		}
	}
	if quota != nil && !left {
		return max(hard, wait(quota))
	}
	return hard
}

// sooner reports whether a has room before b, of limits with none.
func sooner(a, b *node.Status) bool {
	if a.Never != b.Never {
		return b.Never
	}
	return wait(a) < wait(b)
}
