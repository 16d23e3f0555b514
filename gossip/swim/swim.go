package swim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/loglimit"
)

// Stats holds counts since Start.
type Stats struct {
	// Rejoins counts the rounds that contacted seeds because they were no
	// members, RejoinFailures those without any answer.
	Rejoins, RejoinFailures uint64
	// HeldBy is the membership address of the daemon that holds this one's
	// name; "" while this one holds it. A daemon without its name is unknown to
	// the others and asks again every two seconds.
	HeldBy string
	// Refused counts the refusals of members, by reason. Repeated ones count
	// again. The caller owns the map.
	Refused map[string]uint64
}

// Swim is a running member. It is safe for concurrent use.
type Swim struct {
	cfg     Config
	log     *slog.Logger
	addr    string // bound
	list    *memberlist.Memberlist
	ring    *memberlist.Keyring // nil: plain
	roster  *roster
	refused *refusals
	logs    *logAdapter

	keysMu sync.Mutex // serializes rotations

	changedMeta chan struct{}      // the metadata of this daemon changed
	announceNow chan chan struct{} // the same; closes the received channel once it is announced
	rejoins     atomic.Uint64
	failed      atomic.Uint64
	alone       atomic.Bool      // at the last check the seeds were this daemon only
	logged      loglimit.Limiter // lines about seeds

	ctx     context.Context // ends with Leave or Close
	stop    context.CancelFunc
	running sync.WaitGroup
	ending  chan struct{} // a semaphore for Leave and Close; no mutex, as both sleep
	left    atomic.Bool
	closed  atomic.Bool
}

// Start listens and joins in the background, with the first attempt at once.
// The error names the invalid setting, or the reason why it cannot listen.
func Start(c Config) (*Swim, error) {
	s, err := prepare(c)
	if err != nil {
		if c.Transport != nil {
			err = errors.Join(err, c.Transport.Shutdown())
		}
		return nil, err
	}
	if err := s.create(); err != nil {
		return nil, err
	}
	s.running.Go(s.report)
	s.running.Go(s.announce)
	s.running.Go(s.rejoin)
	return s, nil
}

// prepare checks the settings and fills in defaults.
func prepare(c Config) (*Swim, error) {
	c.Interval = cmp.Or(c.Interval, 100*time.Millisecond)
	c.Rejoin = cmp.Or(c.Rejoin, 15*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Seeds = slices.Clone(c.Seeds)
	ring, err := newKeyring(c.Keys)
	if err = cmp.Or(c.check(), err); err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	c.Keys = nil // now in the ring

	r := &refusals{log: c.Log}
	s := &Swim{
		cfg: c, log: c.Log, ring: ring, refused: r,
		logs:        &logAdapter{log: c.Log, refused: r},
		roster:      newRoster(c.Self, len(c.Seeds) == 0, r),
		changedMeta: make(chan struct{}, 1),
		announceNow: make(chan chan struct{}),
		ending:      make(chan struct{}, 1),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Members returns the live members, this daemon included, sorted by ID. The
// caller owns the list.
func (s *Swim) Members() []gossip.Member { return s.roster.members() }

// SetReady sets whether this daemon accepts its share of work. The others learn
// it within some rounds of gossip.
func (s *Swim) SetReady(ready bool) {
	if s.roster.setReady(ready) {
		notify(s.changedMeta)
	}
}

// SetKeys replaces the keys: the first encrypts, all decrypt. To rotate without
// losing a member, give all daemons the new key as the second, then as the
// first, then alone. On an error nothing has changed.
func (s *Swim) SetKeys(keys [][]byte) error {
	if s.ring == nil {
		return errors.New("swim: started without keys; encryption begins at a start, in all daemons")
	}
	s.keysMu.Lock()
	defer s.keysMu.Unlock()
	if err := replaceKeys(s.ring, keys); err != nil {
		return fmt.Errorf("swim: %w", err)
	}
	return nil
}

// Joined reports whether the list is meaningful: this daemon holds its name and
// has seen others, or there are no others, because there are no seeds or they
// are this daemon.
func (s *Swim) Joined() bool {
	if s.left.Load() || s.closed.Load() || !s.roster.standing().held {
		return false
	}
	return len(s.cfg.Seeds) == 0 || s.alone.Load() || s.roster.others() > 0
}

// Addr returns the listening address of the membership, host:port.
func (s *Swim) Addr() string { return s.addr }

// Stats returns the counts.
func (s *Swim) Stats() Stats {
	return Stats{
		Rejoins:        s.rejoins.Load(),
		RejoinFailures: s.failed.Load(),
		HeldBy:         s.roster.standing().holder,
		Refused:        s.refused.snapshot(),
	}
}

// Leave announces the departure and waits until it was forwarded, at most for
// the timeout. It continues to answer until Close, so that the others do not
// miss it. On an error the others may not have received it, and then detect the
// departure by themselves.
func (s *Swim) Leave(timeout time.Duration) error {
	s.ending <- struct{}{}
	defer func() { <-s.ending }()
	if s.closed.Load() {
		return errClosed
	}
	if s.left.Swap(true) {
		return nil
	}
	s.stop()
	if err := s.list.Leave(max(timeout, time.Millisecond)); err != nil {
		return fmt.Errorf("swim: leave: %w", err)
	}
	return nil
}

// Close ends the membership without an announcement: the others detect it
// within five seconds. Packets and streams end at once. When it returns the
// goroutines have ended, which takes a quarter of a second where there were
// others, and a second where a probe of one was not answered. It waits for a
// running Leave.
func (s *Swim) Close() error {
	s.ending <- struct{}{}
	defer func() { <-s.ending }()
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.logs.closed.Store(true)
	others := s.roster.others()
	err := s.list.Shutdown()
	wait := s.roster.probes.pending(time.Now(), others)
	s.running.Wait()
	time.Sleep(wait)
	if err != nil {
		return fmt.Errorf("swim: close: %w", err)
	}
	return nil
}
