package daemon

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxParked bounds the calls that wait for homes at one time. What comes beyond
// that is decided as if homes did not answer.
const maxParked = 1 << 16

// lot is where calls wait for homes: each under its ticket, until all shards that
// it sought rights at have answered. It is safe for concurrent use, and asked for
// under the locks of shards.
type lot struct {
	mu     sync.Mutex
	at     map[uint64]*parked // by ticket
	ticket uint64             // the last one
	free   []*parked
	// watched says that watch will run.
	watched bool

	full atomic.Uint64 // calls that found no place
}

// parked is a call that waits. But for shards, which the lot's lock guards, it
// belongs to the goroutine of the call.
type parked struct {
	ticket uint64
	shards uint64        // that have not answered, as a bit set
	woken  chan struct{} // holds a token when shards became empty, or late is set
	until  time.Time     // when it is late; zero: it does not sleep
	late   bool
	owners []visit // a descriptor each
}

// maxFree bounds the places that are kept for later calls.
const maxFree = 1_024

func newLot() *lot { return &lot{at: map[uint64]*parked{}} }

// park returns a place for a call of n descriptors, nil when the lot is full.
func (l *lot) park(n int) *parked {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.at) >= maxParked {
		l.full.Add(1)
		return nil
	}
	var p *parked
	if last := len(l.free) - 1; last >= 0 {
		p, l.free = l.free[last], l.free[:last]
	} else {
		p = &parked{woken: make(chan struct{}, 1)}
	}
	l.ticket++
	p.ticket = l.ticket
	if cap(p.owners) < n {
		p.owners = make([]visit, n)
	}
	p.owners = p.owners[:n]
	clear(p.owners)
	l.at[p.ticket] = p
	return p
}

// leave gives a place up.
func (l *lot) leave(p *parked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, p.ticket)
	p.shards, p.until, p.late = 0, time.Time{}, false
	select {
	case <-p.woken:
	default:
	}
	if len(l.free) < maxFree {
		l.free = append(l.free, p)
	}
}

// expect says which shards a call waits for from now on.
func (l *lot) expect(p *parked, shards uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.shards = shards
	select {
	case <-p.woken: // of the time before
	default:
	}
}

// answered says that a ticket need not wait for a shard any longer.
func (l *lot) answered(ticket uint64, shard int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.at[ticket]
	if p == nil || p.shards == 0 {
		return
	}
	if p.shards &^= 1 << shard; p.shards == 0 {
		select {
		case p.woken <- struct{}{}:
		default:
		}
	}
}

// lateEvery is how exactly a call knows that its time is up.
const lateEvery = 5 * time.Millisecond

// sleep says until when a call waits. It has no timer of its own: to set one costs more
// than all else about a call that is answered in time. So it is told up to lateEvery, but
// no more than a quarter of its time, before that is up, rather than after.
func (l *lot) sleep(p *parked, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.until, p.late = until.Add(-min(lateEvery, time.Until(until)/4)), false
	if !l.watched {
		l.watched = true
		time.AfterFunc(lateEvery, l.watch)
	}
}

// wakes reports whether a call woke since its time is up.
func (l *lot) wakes(p *parked) (late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.until = time.Time{}
	return p.late
}

// watch wakes the calls whose time is up, as long as any waits.
func (l *lot) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	waits := false
	for _, p := range l.at {
		switch {
		case p.until.IsZero():
		case now.Before(p.until):
			waits = true
		default:
			p.until, p.late = time.Time{}, true
			select {
			case p.woken <- struct{}{}:
			default:
			}
		}
	}
	if l.watched = waits; waits {
		time.AfterFunc(max(lateEvery, time.Duration(len(l.at))*time.Microsecond), l.watch)
	}
}

// size is how many calls wait.
func (l *lot) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}
