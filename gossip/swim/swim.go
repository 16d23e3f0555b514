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
)

// Stats counts since Start.
type Stats struct {
	// Members is the length of the list, this daemon included.
	Members int
	// Rejoins counts the rounds in which seeds were asked because they were
	// no members; RejoinFailures those in which none of them answered.
	Rejoins, RejoinFailures uint64
	// HeldBy is the membership address of the daemon that holds this one's
	// name; "" while this one holds it. Nobody knows of a daemon without a
	// name, and it asks again every two seconds.
	HeldBy string
	// Refused is what was kept out.
	Refused Refusals
}

// Swim is a running member. Its methods may be called by any goroutine.
type Swim struct {
	cfg     Config
	log     *slog.Logger
	addr    string // bound
	list    *memberlist.Memberlist
	ring    *memberlist.Keyring // nil: plain
	roster  *roster
	refused *refusals
	journal *journal

	keysMu sync.Mutex // one rotation at a time

	said    chan struct{}      // something new is to be said of this daemon
	sayNow  chan chan struct{} // the same; closes what it gets when it is said
	rejoins atomic.Uint64
	failed  atomic.Uint64
	alone   atomic.Bool // at the last look the seeds were this daemon only
	quiet   limiter     // of the log lines about seeds

	ctx     context.Context // ends with Leave or Close
	stop    context.CancelFunc
	running sync.WaitGroup
	ending  chan struct{} // holds the right to leave or close; no mutex, as both sleep
	left    atomic.Bool
	closed  atomic.Bool
}

// Start listens and joins in the background, the first try at once. An error
// names the setting that is at fault, or why it could not listen.
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
	s.running.Go(s.tell)
	s.running.Go(s.announce)
	s.running.Go(s.rejoin)
	return s, nil
}

// prepare checks the settings and fills in those that were left out.
func prepare(c Config) (*Swim, error) {
	c.Interval = cmp.Or(c.Interval, 100*time.Millisecond)
	c.Rejoin = cmp.Or(c.Rejoin, 15*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Seeds = slices.Clone(c.Seeds)
	if err := c.check(); err != nil {
		return nil, err
	}
	ring, err := newKeyring(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	c.Keys = nil // the ring has them

	r := &refusals{log: c.Log}
	s := &Swim{
		cfg: c, log: c.Log, ring: ring, refused: r,
		journal: &journal{log: c.Log, refused: r},
		roster:  newRoster(c.Self, len(c.Seeds) == 0, r),
		said:    make(chan struct{}, 1),
		sayNow:  make(chan chan struct{}),
		ending:  make(chan struct{}, 1),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Members returns the living, this daemon included, sorted by ID. The list is
// the caller's.
func (s *Swim) Members() []gossip.Member { return s.roster.members() }

// SetReady says whether this daemon takes its share of work. Others learn it
// within some rounds of gossip.
func (s *Swim) SetReady(ready bool) {
	if !s.roster.setReady(ready) {
		return
	}
	select {
	case s.said <- struct{}{}:
	default:
	}
}

// SetKeys replaces the keys: the first encrypts, all decrypt, those not listed
// are gone. To rotate without losing a member, give all daemons the new key as
// the second, then as the first, then alone. On an error nothing has changed.
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

// Joined reports whether the list means something: this daemon holds its name
// and has seen others, or there are no others to be seen, because there are no
// seeds or they are this daemon.
func (s *Swim) Joined() bool {
	if s.left.Load() || s.closed.Load() || !s.roster.standing().held {
		return false
	}
	return len(s.cfg.Seeds) == 0 || s.alone.Load() || s.roster.others() > 0
}

// Addr is where the membership listens, host:port.
func (s *Swim) Addr() string { return s.addr }

// Stats returns the counts.
func (s *Swim) Stats() Stats {
	return Stats{
		Members:        1 + s.roster.others(),
		Rejoins:        s.rejoins.Load(),
		RejoinFailures: s.failed.Load(),
		HeldBy:         s.roster.standing().holder,
		Refused:        s.refused.snapshot(),
	}
}

// Leave says goodbye and waits until that was sent on, for at most timeout. It
// goes on answering others until Close, so that they do not miss it. An error
// says that the goodbye may not have been heard: the others then find out by
// themselves.
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

// Close ends the membership without a goodbye: the others find it dead within
// five seconds. Packets and streams end at once. Goroutines are gone when it
// returns, a quarter of a second later where there were others, and a second
// later where a probe of one was not answered. It waits for a Leave that is
// under way.
func (s *Swim) Close() error {
	s.ending <- struct{}{}
	defer func() { <-s.ending }()
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.journal.closed.Store(true)
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
