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
	firstRetry   = time.Second            // while there is nobody else; doubles up to Config.Rejoin
	refusedRetry = 2 * time.Second        // while another holds the name
	patience     = 500 * time.Millisecond // with slower seeds, once one has said who holds the name
	sayWait      = time.Millisecond       // memberlist sends what it was told by itself
	sayTries     = 100                    // contradictions are rare
)

// errAsking keeps lists apart while a daemon does not hold its name.
var errAsking = errors.New("asking who holds the name")

// rejoin asks the seeds again and again until Leave or Close.
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

// jitter spreads d over 80 to 120 %, so that daemons that started together do
// not ask together.
func jitter(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5+1)
}

// round asks the seeds that are no members, if there are any. Without the name
// it first asks for that.
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
	if s.quiet.allow("failed", 10*time.Minute) {
		s.log.Info("no seed of the region answered", "error", err)
	}
}

// claim takes the name of this daemon unless one of the seeds knows of another
// that holds it. Where no seed answers nobody can, and the name is taken.
func (s *Swim) claim(addrs []string) (answered int, err error) {
	s.roster.ask()
	s.say() // that it only asks
	answered, err = s.ask(addrs, patience)
	if s.ctx.Err() != nil {
		return answered, err
	}
	if !s.roster.take() {
		c := s.roster.standing()
		s.roster.taken(s.cfg.Self.Name, c.holder, s.roster.ownAddress())
		return answered, err
	}
	s.say()
	return answered, err
}

// ask exchanges lists with all addrs, some at a time, and returns how many
// answered and why the others did not. With patience it does not wait longer
// than that for the rest once one has answered.
func (s *Swim) ask(addrs []string, patience time.Duration) (answered int, err error) {
	results := make(chan error, len(addrs))
	for _, part := range split(addrs, askedAtOnce) {
		s.running.Go(func() {
			for _, addr := range part {
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

// split deals addrs into at most n parts.
func split(addrs []string, n int) [][]string {
	parts := make([][]string, min(n, len(addrs)))
	for i, a := range addrs {
		parts[i%len(parts)] = append(parts[i%len(parts)], a)
	}
	return parts
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

// say has others told what is new of this daemon, and returns when those who
// ask it hear it.
func (s *Swim) say() {
	done := make(chan struct{})
	select {
	case s.sayNow <- done:
		<-done
	case <-s.ctx.Done():
	}
}

// again is after how long what is new of this daemon is said once more. Where
// several words are under way, memberlist's queue may drop one before anybody
// was told: two of one length can end up under one number. Lists are exchanged
// only each Config.Rejoin.
var again = [...]time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second}

// announce hands memberlist what is new of this daemon: one at a time, or an
// older word could come after a newer one.
func (s *Swim) announce() {
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for left := again[:0]; ; {
		var done chan struct{}
		select {
		case <-s.ctx.Done():
			return
		case <-s.said:
			left = again[:]
		case done = <-s.sayNow:
			left = again[:]
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

// update has memberlist tell what is true of this daemon now. A contradiction
// that it makes at the same moment may carry the older word and win: then the
// newer one is said again.
func (s *Swim) update() {
	for range sayTries {
		// The error would be that nobody was told yet.
		if _ = s.list.UpdateNode(sayWait); s.roster.isTold() || s.ctx.Err() != nil {
			return
		}
	}
}

// tell calls Changed, and logs who has come and gone.
func (s *Swim) tell() {
	last := s.roster.members()
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
			s.log.Info("member joined", "name", m.Name, "addr", m.Addr, "slot", m.ID, "build", m.Build)
		case was.ID != m.ID:
			s.log.Info("member restarted", "name", m.Name, "addr", m.Addr, "slot", m.ID, "build", m.Build)
		}
	}
	for _, m := range before {
		if _, gone := old[m.Name]; gone {
			s.log.Info("member gone", "name", m.Name, "addr", m.Addr, "slot", m.ID)
		}
	}
}
