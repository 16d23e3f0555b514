package link

import (
	"sync"
	"time"
)

// How often one thing is said of one peer.
const (
	noticeEach = time.Minute
	noticeRare = time.Hour // of what may be as meant
	maxNotices = 1_024
)

// notices keeps the log short: one line for each peer and reason in a while.
// When it knows too many peers to tell them apart, it says nothing of new ones.
type notices struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// due reports whether what key stands for is to be said now.
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
