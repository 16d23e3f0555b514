// Package loglimit limits repeated log lines.
package loglimit

import (
	"sync"
	"time"
)

// maxKeys bounds the keys that a Limiter remembers.
const maxKeys = 1_024

// Limiter allows one log line for each key, such as a peer and a reason, in a
// given time. With too many keys it suppresses lines with new ones, so that a
// peer with invented names cannot flood the log. The zero value is ready for
// use. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// Due reports whether the line with this key is due at now. If so, the next
// one is due after each.
func (l *Limiter) Due(key string, now time.Time, each time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until[key]) {
		return false
	}
	if len(l.until) >= maxKeys {
		for k, until := range l.until {
			if !now.Before(until) {
				delete(l.until, k)
			}
		}
		if len(l.until) >= maxKeys {
			return false
		}
	}
	if l.until == nil {
		l.until = make(map[string]time.Time)
	}
	l.until[key] = now.Add(each)
	return true
}
