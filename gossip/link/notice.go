package link

import (
	"sync"
	"time"
)

// The time between two log lines with the same key.
const (
	noticeEach = time.Minute
	noticeRare = time.Hour // for conditions that may be intended
	maxNotices = 1_024
)

// notices limits the log to one line for each key, such as a peer and a reason,
// in a given time. With too many keys it suppresses new ones.
type notices struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// due reports whether the line with this key is due.
func (n *notices) due(key string, now time.Time, each time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Before(n.until[key]) {
		return false
	}
	if n.until == nil {
		n.until = make(map[string]time.Time)
	}
	if len(n.until) >= maxNotices {
		for k, until := range n.until {
			if !now.Before(until) {
				delete(n.until, k)
			}
		}
		if len(n.until) >= maxNotices {
			return false
		}
	}
	n.until[key] = now.Add(each)
	return true
}
