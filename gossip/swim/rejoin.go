package swim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/gossip"
)

const (
	firstRetry    = time.Second            // without other members; doubles up to Config.Rejoin
	refusedRetry  = 2 * time.Second        // while another holds the name
	patience      = 500 * time.Millisecond // for slower seeds, once one has named the holder
	updateTimeout = time.Millisecond       // memberlist sends updates by itself
	updateTries   = 100                    // contradictions are rare
)

// errAsking keeps the lists separate while a daemon does not hold its name.
var errAsking = errors.New("asking who holds the name")

// rejoin contacts the seeds periodically until Leave or Close.
func (s *Swim) rejoin() {
	retry := firstRetry
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-timer.C:
		}
		s.round()
		wait := s.cfg.Rejoin
		switch {
		case !s.roster.standing().held:
			wait = min(wait, refusedRetry)
		case s.Joined():
			retry = firstRetry
		default:
			wait = min(wait, retry)
			retry = min(2*retry, s.cfg.Rejoin)
		}
		timer.Reset(jitter(wait))
	}
}

// jitter varies d between 80 and 120 %, so that daemons that started together
// do not act together.
func jitter(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5+1)
}

// round contacts the seeds that are no members, if there are any. Without its
// name the daemon first claims it.
func (s *Swim) round() {
	seeds := resolveSeeds(s.ctx, s.cfg.Seeds, s.mine)
	s.alone.Store(seeds.alone())
	err := seeds.err
	answered, asked := 0, false
	if !s.roster.standing().held {
		first := seeds.missing(nil)
		asked = len(first) > 0
		var failed error
		answered, failed = s.claim(first)
		err = errors.Join(err, failed)
	}
	if s.roster.standing().held {
		if missing := seeds.missing(s.roster.addresses()); len(missing) > 0 {
			asked = true
			var failed error
			answered, failed = s.ask(missing, 0)
			err = errors.Join(seeds.err, failed)
		}
	}
	if s.ctx.Err() != nil || (!asked && seeds.err == nil) {
		return
	}
	s.rejoins.Add(1)
	if answered > 0 {
		return
	}
	s.failed.Add(1)
	if s.logged.Due("failed", time.Now(), 10*time.Minute) {
		s.log.Info("no seed of the region answered", "error", err)
	}
}

// claim gives this daemon its name unless a seed knows of another holder. If no
// seed answers, the daemon gets its name.
func (s *Swim) claim(addrs []string) (answered int, err error) {
	s.roster.ask()
	s.announceAndWait() // announce that it only asks
	answered, err = s.ask(addrs, patience)
	if s.ctx.Err() != nil {
		return answered, err
	}
	if !s.roster.take() {
		c := s.roster.standing()
		s.roster.taken(s.cfg.Self.Name, c.holder, s.roster.ownAddress())
		return answered, err
	}
	s.announceAndWait()
	return answered, err
}

// ask exchanges lists with all addrs, some at a time, and returns the number of
// answers and the errors of the others. With patience it waits no longer than
// that for the rest once one has answered.
func (s *Swim) ask(addrs []string, patience time.Duration) (answered int, err error) {
	results, next := make(chan error, len(addrs)), make(chan string, len(addrs))
	for _, addr := range addrs {
		next <- addr
	}
	close(next)
	for range min(askedAtOnce, len(addrs)) {
		s.running.Go(func() {
			for addr := range next {
				results <- s.askOne(addr)
			}
		})
	}
	var enough <-chan time.Time
	var errs []error
	for range addrs {
		select {
		case e := <-results:
			if e != nil {
				errs = append(errs, e)
				continue
			}
			answered++
			if patience > 0 && enough == nil {
				enough = time.After(patience)
			}
		case <-enough:
			return answered, errors.Join(errs...)
		case <-s.ctx.Done():
			return answered, s.ctx.Err()
		}
	}
	return answered, errors.Join(errs...)
}

// askOne exchanges lists with one address.
func (s *Swim) askOne(addr string) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	_, err := s.list.Join([]string{addr})
	switch {
	case err == nil || strings.Contains(err.Error(), errAsking.Error()):
		return nil
	case isWrongKey(err):
		s.refused.add(wrongKey, addr, "seed", addr, "would be right", "the key that the seed encrypts with")
	}
	return fmt.Errorf("seed at %s: %w", addr, err)
}

// announceAndWait announces the current metadata of this daemon, and returns
// when exchanges of lists include it.
func (s *Swim) announceAndWait() {
	done := make(chan struct{})
	select {
	case s.announceNow <- done:
		<-done
	case <-s.ctx.Done():
	}
}

// announceAgain holds the times after which new metadata is announced again.
// With several updates in flight, memberlist's queue may drop one before it was
// sent: two of equal length can get one number. Lists are exchanged only each
// Config.Rejoin.
var announceAgain = [...]time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second}

// announce passes new metadata to memberlist, one at a time, so that an older
// one cannot follow a newer one.
func (s *Swim) announce() {
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for left := announceAgain[:0]; ; {
		var done chan struct{}
		select {
		case <-s.ctx.Done():
			return
		case <-s.changedMeta:
			left = announceAgain[:]
		case done = <-s.announceNow:
			left = announceAgain[:]
		case <-timer.C:
		}
		s.update()
		if done != nil {
			close(done)
		}
		if len(left) > 0 {
			timer.Reset(left[0])
			left = left[1:]
		}
	}
}

// update makes memberlist announce the current metadata. A contradiction that
// memberlist sends at the same moment may carry older metadata and win: then
// update announces again.
func (s *Swim) update() {
	for range updateTries {
		// The error would be that no member was reached yet.
		if _ = s.list.UpdateNode(updateTimeout); s.roster.isAnnounced() || s.ctx.Err() != nil {
			return
		}
	}
}

// report calls Changed, and logs members that joined and left.
func (s *Swim) report() {
	last := []gossip.Member{s.cfg.Self} // the first round may be over: the roster may have more by now
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.roster.changed:
		}
		if s.ctx.Err() != nil {
			return
		}
		now := s.roster.members()
		if slices.Equal(last, now) {
			continue
		}
		s.logChange(last, now)
		last = now
		if s.cfg.Changed != nil {
			s.cfg.Changed(slices.Clone(now))
		}
	}
}

func (s *Swim) logChange(before, after []gossip.Member) {
	old := map[string]gossip.Member{}
	for _, m := range before {
		old[m.Name] = m
	}
	for _, m := range after {
		was, ok := old[m.Name]
		delete(old, m.Name)
		switch {
		case !ok:
			s.log.Info("member joined", "name", m.Name, "addr", m.Addr, "incarnation", m.ID, "build", m.Build)
		case was.ID != m.ID:
			s.log.Info("member restarted", "name", m.Name, "addr", m.Addr, "incarnation", m.ID, "build", m.Build)
		}
	}
	for _, m := range before {
		if _, gone := old[m.Name]; gone {
			s.log.Info("member gone", "name", m.Name, "addr", m.Addr, "incarnation", m.ID)
		}
	}
}
