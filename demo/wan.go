package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// Link is how two regions are joined, the same in both directions.
type Link struct {
	// Delay is the time that bytes take one way, Jitter the most that is
	// added to it at random.
	Delay, Jitter time.Duration
	// Loss is the share of chunks that are sent again, 0 to 1: such a chunk and
	// all later ones arrive one retransmission later.
	Loss float64
}

// The times of a cut.
const (
	// dialLimit is how long a dial waits for an answer that does not come.
	dialLimit = 3 * time.Second
	// holdLimit is how long a connection waits before it is given up.
	holdLimit = 15 * time.Second
	// holdGrace is for how long a connection may be held and still go on, as
	// one does that has not backed off far.
	holdGrace = time.Second
	// retransmit is the cost of a loss beside a round trip.
	retransmit = 200 * time.Millisecond
)

// WAN is a network between regions of one process. Connections between two
// regions are delayed and can be cut; within a region they are those of the
// machine. It is safe for concurrent use.
type WAN struct {
	ctx  context.Context // of all lines and dials; Close ends it
	end  context.CancelFunc
	wait sync.WaitGroup // for the goroutines of lines

	mu    sync.Mutex
	rng   *rand.Rand
	names []string            // as given
	ports map[string]string   // the region of each listener, by its address
	paths map[[2]string]*path // by the two names in ascending order
}

// path is what two regions have between them. Its fields are guarded by
// WAN.mu.
type path struct {
	link Link
	cut  bool
	// turned is closed, and made anew, whenever cut changes.
	turned chan struct{}
}

// NewWAN returns a network of regions. It calls link once for each pair to join
// them. Jitter and loss are drawn from seed.
func NewWAN(regions []string, link func(a, b string) Link, seed uint64) *WAN {
	w := &WAN{
		rng:   rand.New(rand.NewPCG(seed, streamWAN)),
		names: slices.Clone(regions),
		ports: make(map[string]string),
		paths: make(map[[2]string]*path),
	}
	w.ctx, w.end = context.WithCancel(context.Background())
	for i, a := range regions {
		for _, b := range regions[i+1:] {
			w.paths[between(a, b)] = &path{link: link(a, b), turned: make(chan struct{})}
		}
	}
	return w
}

func between(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// Listen listens on a TCP address of the machine for a region. Dials to that
// address from another region get that region's delay. The address belongs to
// the region for good, so that a restarted daemon can listen again.
func (w *WAN) Listen(region, addr string) (net.Listener, error) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.ports[lis.Addr().String()] = region
	w.mu.Unlock()
	return lis, nil
}

// ErrCut is wrapped by the errors of dials and connections that a cut ended.
var ErrCut = errors.New("the regions are partitioned from each other")

// Dial connects a region to an address. To another region it takes a round
// trip more than the machine does; while the two are partitioned it waits a
// while and fails.
func (w *WAN) Dial(ctx context.Context, region, addr string) (net.Conn, error) {
	w.mu.Lock()
	p := w.paths[between(region, w.ports[addr])]
	trip := time.Duration(0)
	if p != nil {
		trip = w.delayLocked(p) + w.delayLocked(p)
	}
	w.mu.Unlock()
	var d net.Dialer
	if p == nil {
		return d.DialContext(ctx, "tcp", addr)
	}
	if err := w.reach(ctx, p, addr, trip); err != nil {
		return nil, err
	}
	far, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return w.join(p, far)
}

// reach waits for the round trip that a handshake takes, or until it is clear
// that nobody answers.
func (w *WAN) reach(ctx context.Context, p *path, addr string, trip time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.ctx, func() { cancel(net.ErrClosed) })()
	if !pause(ctx, trip) {
		return context.Cause(ctx)
	}
	if err := w.awaitHeal(ctx, p, dialLimit); err != nil {
		return fmt.Errorf("dial %s: %w", addr, err)
	}
	return nil
}

// awaitHeal returns once a path is not cut. After limit it returns an error
// that wraps ErrCut, and at the end of ctx its cause.
func (w *WAN) awaitHeal(ctx context.Context, p *path, limit time.Duration) error {
	given := time.NewTimer(limit)
	defer given.Stop()
	for {
		w.mu.Lock()
		cut, turned := p.cut, p.turned
		w.mu.Unlock()
		if !cut {
			return nil
		}
		select {
		case <-turned:
		case <-given.C:
			return fmt.Errorf("no answer within %s: %w", limit, ErrCut)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// delay draws how long a chunk takes one way.
func (w *WAN) delay(p *path) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.delayLocked(p)
	if p.link.Loss > 0 && w.rng.Float64() < p.link.Loss {
		d += retransmit + 2*p.link.Delay
	}
	return d
}

func (w *WAN) delayLocked(p *path) time.Duration {
	d := p.link.Delay
	if p.link.Jitter > 0 {
		d += time.Duration(w.rng.Int64N(int64(p.link.Jitter) + 1))
	}
	return d
}

// SetDelay changes the delay between two regions for later writes. It returns
// false for regions that are not joined.
func (w *WAN) SetDelay(a, b string, d time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.paths[between(a, b)]
	if p == nil {
		return false
	}
	p.link.Delay, p.link.Jitter = d, d/jitterShare
	return true
}

// Delay returns how far two regions are apart, one way, 0 for a region and
// itself.
func (w *WAN) Delay(a, b string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.paths[between(a, b)]; p != nil {
		return p.link.Delay
	}
	return 0
}

// Cut separates two regions in both directions: data in transit and later
// writes are held, and dials fail. It reports whether they were joined before.
func (w *WAN) Cut(a, b string) bool { return w.turn(a, b, true) }

// Heal ends all cuts and returns how many there were. Connections that were
// held for more than a moment are broken: they would have been given up, or
// would come back too slowly.
func (w *WAN) Heal() int {
	n := 0
	for i, a := range w.names {
		for _, b := range w.names[i+1:] {
			if w.turn(a, b, false) {
				n++
			}
		}
	}
	return n
}

func (w *WAN) turn(a, b string, cut bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.paths[between(a, b)]
	if p == nil || p.cut == cut {
		return false
	}
	p.cut = cut
	close(p.turned)
	p.turned = make(chan struct{})
	return true
}

// Parts returns the sets of regions that reach each other, directly or through
// others: one set without a partition.
func (w *WAN) Parts() [][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	part := make(map[string]int)
	var out [][]string
	for _, first := range w.names {
		if _, ok := part[first]; ok {
			continue
		}
		n := len(out)
		members := []string{first}
		part[first] = n
		for i := 0; i < len(members); i++ {
			for _, b := range w.names {
				p := w.paths[between(members[i], b)]
				if _, ok := part[b]; !ok && p != nil && !p.cut {
					part[b], members = n, append(members, b)
				}
			}
		}
		out = append(out, members)
	}
	return out
}

// Cuts returns the pairs of partitioned regions, in the order of the regions.
func (w *WAN) Cuts() [][2]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := [][2]string{}
	for i, a := range w.names {
		for _, b := range w.names[i+1:] {
			if w.paths[between(a, b)].cut {
				out = append(out, [2]string{a, b})
			}
		}
	}
	return out
}

// Close breaks every connection between regions and ends the dials under way.
// All goroutines are gone when it returns.
func (w *WAN) Close() {
	w.mu.Lock() // No line begins after it.
	w.end()
	w.mu.Unlock()
	w.wait.Wait()
}
