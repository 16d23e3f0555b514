package link

import (
	"net"
	"sync"
	"time"
)

// How long the sender of rubbish is kept out: doubled each time, and forgotten
// when it has behaved for a while.
const (
	minPenalty    = time.Second
	maxPenalty    = time.Minute
	penaltyMemory = 5 * time.Minute
	maxPenalties  = 1_024
)

// penalties remembers who sent rubbish: the machine it came from together with
// the address, and with the incarnation, that the sender named. So a peer
// cannot have another one kept out that lives elsewhere.
type penalties struct {
	mu sync.Mutex
	of map[string]penalty
}

type penalty struct {
	wait  time.Duration
	until time.Time
}

// penaltyKeys returns under what a peer is remembered.
func penaltyKeys(remote string, h Hello) [2]string {
	host := hostOf(remote)
	return [2]string{host + " " + h.Member.Addr, host + " " + h.Member.ID.String()}
}

// hostOf returns remote without its port, which is another for each connection.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// add keeps a peer out from now on, and returns for how long.
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

// left returns how long a peer still has to wait.
func (p *penalties) left(keys [2]string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left time.Duration
	for _, k := range keys {
		left = max(left, p.of[k].until.Sub(now))
	}
	return left
}

// makeRoomLocked forgets what is over, or else the one that is over first.
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
