package link

import (
	"net"
	"sync"
	"time"
)

// The penalty for a protocol error: it doubles each time, and is forgotten
// after a while without one.
const (
	minPenalty    = time.Second
	maxPenalty    = time.Minute
	penaltyMemory = 5 * time.Minute
	maxPenalties  = 1_024
)

// penalties holds the peers with a penalty: by remote host together with the
// address, and by remote host together with the incarnation, that the peer
// announced. So a peer cannot exclude a peer on another host.
type penalties struct {
	mu sync.Mutex
	of map[string]penalty
}

type penalty struct {
	wait  time.Duration
	until time.Time
}

// penaltyKeys returns the keys of a peer in penalties.
func penaltyKeys(remote string, h Hello) [2]string {
	host := hostOf(remote)
	return [2]string{host + " " + h.Member.Addr, host + " " + h.Member.ID.String()}
}

// hostOf returns remote without its port, which differs for each connection.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// add starts the next penalty of a peer and returns its length.
func (p *penalties) add(keys [2]string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := minPenalty
	for _, k := range keys {
		if old, ok := p.of[k]; ok && now.Before(old.until.Add(penaltyMemory)) {
			wait = max(wait, min(maxPenalty, 2*old.wait))
		}
	}
	if p.of == nil {
		p.of = make(map[string]penalty)
	}
	for _, k := range keys {
		p.makeRoomLocked(now)
		p.of[k] = penalty{wait: wait, until: now.Add(wait)}
	}
	return wait
}

// remaining returns the rest of a peer's penalty, 0 for none.
func (p *penalties) remaining(keys [2]string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left time.Duration
	for _, k := range keys {
		left = max(left, p.of[k].until.Sub(now))
	}
	return left
}

// makeRoomLocked removes forgotten penalties, or else the one that ends first.
func (p *penalties) makeRoomLocked(now time.Time) {
	if len(p.of) < maxPenalties {
		return
	}
	first := ""
	for k, v := range p.of {
		if now.After(v.until.Add(penaltyMemory)) {
			delete(p.of, k)
		} else if first == "" || v.until.Before(p.of[first].until) {
			first = k
		}
	}
	if len(p.of) >= maxPenalties {
		delete(p.of, first)
	}
}
