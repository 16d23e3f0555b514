package demo

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// The clients' bounds.
const (
	askTick    = 2 * time.Millisecond // between two reads of the schedule
	askLimit   = 2 * time.Second      // for one answer
	askQueue   = 4_096                // asks that wait for a daemon
	askWorkers = 4                    // asks under way at a daemon
)

// clients asks the daemons what Traffic draws: over gRPC, on one connection a
// daemon. An ask goes to a running daemon of its region, and once to a
// neighbor when that fails, as a load balancer has it.
type clients struct {
	cluster *cluster
	ledger  *Ledger
	rules   []Rule
	queues  []chan Ask // by place of the daemon
	stubs   []rldv1.RateLimiterClient
	conns   []*grpc.ClientConn
	routes  *rand.Rand // of run alone

	mu      sync.Mutex // guards traffic and began
	traffic *Traffic
	began   time.Time

	counts askCounts
}

// askCounts is what became of the asks.
type askCounts struct {
	asked    atomic.Uint64 // answered or failed
	failed   atomic.Uint64 // no answer, also not from a neighbor
	unserved atomic.Uint64 // no daemon ran in the region
	left     atomic.Uint64 // not asked: there was no time for it
}

func newClients(c *cluster, t *Traffic, l *Ledger, all []Rule, seed uint64) (*clients, error) {
	s := &clients{
		cluster: c, ledger: l, rules: all, traffic: t, routes: rand.New(rand.NewPCG(seed, streamRoutes)),
	}
	quick := backoff.DefaultConfig
	quick.BaseDelay, quick.MaxDelay = 50*time.Millisecond, time.Second
	for _, i := range c.all {
		conn, err := grpc.NewClient(i.opts.Config.GRPC.Addr,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: time.Second}))
		if err != nil {
			s.close()
			return nil, err
		}
		s.conns = append(s.conns, conn)
		s.stubs = append(s.stubs, rldv1.NewRateLimiterClient(conn))
		s.queues = append(s.queues, make(chan Ask, askQueue))
	}
	return s, nil
}

// run asks until ctx ends, and returns when no ask is under way.
func (s *clients) run(ctx context.Context) {
	s.mu.Lock()
	s.began = time.Now()
	s.mu.Unlock()
	var workers sync.WaitGroup
	for place := range s.queues {
		for range askWorkers {
			workers.Go(func() { s.work(ctx, place) })
		}
	}
	var asks []Ask
	every(ctx, askTick, func(time.Time) {
		s.mu.Lock()
		var left int
		asks, left = s.traffic.Due(time.Since(s.began), asks)
		s.mu.Unlock()
		s.counts.left.Add(uint64(left))
		s.route(asks)
	})
	workers.Wait()
}

// close closes the connections.
func (s *clients) close() {
	for _, c := range s.conns {
		c.Close() // nothing is under way
	}
}

// surge changes how often a rule is asked for.
func (s *clients) surge(rule int, factor float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Duration(0)
	if !s.began.IsZero() { // a script may come first
		now = time.Since(s.began)
	}
	s.traffic.Surge(now, rule, factor)
}

// route gives asks to running daemons of their regions. Asks that came at one
// instant are shuffled, so that no rule always comes first.
func (s *clients) route(asks []Ask) {
	if len(asks) == 0 {
		return
	}
	s.routes.Shuffle(len(asks), func(i, j int) { asks[i], asks[j] = asks[j], asks[i] })
	running := make([][]int, len(s.cluster.regions))
	for i := range s.cluster.live() {
		running[i.region] = append(running[i.region], i.place)
	}
	for _, a := range asks {
		up := running[a.Region]
		if len(up) == 0 {
			s.counts.unserved.Add(1)
			continue
		}
		select {
		case s.queues[up[s.routes.IntN(len(up))]] <- a:
		default:
			s.counts.left.Add(1)
		}
	}
}

// work asks one daemon.
func (s *clients) work(ctx context.Context, place int) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-s.queues[place]:
			s.counts.asked.Add(1)
			if s.ask(ctx, place, a) {
				continue
			}
			if n := s.neighbor(place); n < 0 || !s.ask(ctx, n, a) {
				if ctx.Err() == nil {
					s.counts.failed.Add(1)
				}
			}
		}
	}
}

// neighbor returns another running daemon of the same region, -1 when there is
// none.
func (s *clients) neighbor(place int) int {
	return slices.IndexFunc(s.cluster.all, func(i *instance) bool {
		return i.place != place && i.region == s.cluster.all[place].region && i.live() != nil
	})
}

// ask asks a daemon and enters the answer into the ledger. It reports whether
// there was one.
func (s *clients) ask(ctx context.Context, place int, a Ask) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	q := &rldv1.CheckRequest{Domain: Domain, Descriptors: []*rldv1.Descriptor{{}}}
	for _, e := range s.rules[a.Rule].entries(crowds[a.Rule].key(a.Key)) {
		q.Descriptors[0].Entries = append(q.Descriptors[0].Entries, &rldv1.Entry{Key: e.Key, Value: e.Value})
	}
	answer, err := s.stubs[place].Check(ctx, q)
	if err != nil || len(answer.GetStatuses()) != 1 {
		return false
	}
	switch answer.GetCode() {
	case rldv1.Code_ALLOWED:
		left := answer.GetStatuses()[0].GetResetAfter().AsDuration()
		s.ledger.Admit(a, time.Now(), left)
	case rldv1.Code_DENIED:
		s.ledger.Deny(a)
	default:
		return false
	}
	return true
}
