package link

import (
	"net"
	"strings"
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

// A machine whose peers prove no names is excluded after machineErrors protocol
// errors, of which one is forgotten each machineForgets: more than one daemon
// with its own penalty makes, since several may share the machine.
const (
	machineErrors  = 16
	machineForgets = 20 * time.Second
)

// penalties holds the peers with a penalty, by their penaltyKeys. So a peer can
// neither escape by another claim nor exclude a peer on another host.
type penalties struct {
	mu sync.Mutex
	of map[string]penalty
}

type penalty struct {
	wait   time.Duration
	until  time.Time
	errors int // of a machine
}

// machine begins the key of all peers of a machine.
const machine = "machine "

// penaltyKeys returns the keys of a peer in penalties: the name in its
// certificate, on any machine. Without one they are its host with the address
// that the peer announced, its host with the incarnation, and its machine. The
// hello is zero before it is known.
func penaltyKeys(p *proof, remote string, h Hello) []string {
	if len(p.names) > 0 {
		return []string{"name " + p.names[0].String()}
	}
	host := hostOf(remote)
	if h.Member.ID == 0 {
		return []string{machine + host}
	}
	return []string{host + " " + h.Member.Addr, host + " " + h.Member.ID.String(), machine + host}
}

// hostOf returns remote without its port, which differs for each connection.
func hostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// add starts the next penalty of a peer and returns its length, 0 for none.
func (p *penalties) add(keys []string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[string]penalty)
	}
	var wait time.Duration
	for _, k := range keys {
		if !strings.HasPrefix(k, machine) {
			wait = max(wait, p.next(k, now))
		}
	}
	for _, k := range keys {
		next := penalty{wait: wait}
		if strings.HasPrefix(k, machine) {
			if next = p.nextOfMachine(k, now); next.wait > 0 {
				wait = max(wait, next.wait)
			}
		}
		p.makeRoomLocked(now)
		next.until = now.Add(next.wait)
		p.of[k] = next
	}
	return wait
}

// next returns the length of the next penalty of one key.
func (p *penalties) next(k string, now time.Time) time.Duration {
	if old, ok := p.of[k]; ok && old.wait > 0 && now.Before(old.until.Add(penaltyMemory)) {
		return min(maxPenalty, 2*old.wait)
	}
	return minPenalty
}

// nextOfMachine returns the next penalty of a machine, whose wait is 0 as long
// as its peers have made few protocol errors.
func (p *penalties) nextOfMachine(k string, now time.Time) penalty {
	old := p.of[k]
	forgotten := now.Sub(old.until) / machineForgets
	next := penalty{errors: max(0, old.errors-int(min(machineErrors, forgotten))) + 1}
	if next.errors > machineErrors {
		next.errors, next.wait = machineErrors, p.next(k, now)
	}
	return next
}

// remaining returns the rest of a peer's penalty, 0 for none.
func (p *penalties) remaining(keys []string, now time.Time) time.Duration {
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
