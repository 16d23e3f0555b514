package daemon

import (
	"context"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

// maxRounds bounds how often a call asks: its home, that of the floor that its
// region falls back to, and either again when a label ended meanwhile.
const maxRounds = 8

// noOwner is node.Hit.Failed when no home is left to ask.
const noOwner = 2

// visit is what a descriptor waits for.
type visit struct {
	owner   crdt.Incarnation // 0: nothing
	reserve bool             // it is that of the region's floor
	done    bool             // what became of it was told to the home's breaker
}

// parley is a call that asks homes.
type parley struct {
	*strict
	*trial
	place *parked
	// until is when those that are asked now have had their time, from when it is
	// that they are asked; both monotonic.
	from, until time.Duration
	rounds      int
}

// wait decides a call that has to ask homes. See server.Engine.
func (s *strict) wait(ctx context.Context, t trial) error {
	begin := s.engine.Now().Mono
	p := parley{strict: s, trial: &t, place: s.lot.park(len(t.hits))}
	if p.place == nil {
		s.giveUp(s.engine.Now(), &t)
		return nil
	}
	defer s.lot.leave(p.place)
	for i := range t.hits {
		t.hits[i].Ticket = p.place.ticket
	}
	decided := false
	defer func() {
		if !decided { // also for a panic: what was sought must be given up
			p.abandon()
		}
	}()
	for late := false; !p.round(late); {
		var err error
		if late, err = p.sleep(ctx); err != nil {
			return err
		}
	}
	decided = true
	s.waited(s.engine.Now().Mono - begin)
	return nil
}

// giveUp decides a call that asks nobody.
func (s *strict) giveUp(at node.Instant, t *trial) {
	var d duties
	s.giveUpLocked(at, t, &d)
	s.engine.perform(&d)
}

func (s *strict) giveUpLocked(at node.Instant, t *trial, d *duties) {
	e := s.engine
	e.lock(t.touched)
	defer e.unlock(t.touched)
	e.probe(at, t)
	if t.waits() {
		for i := range t.hits {
			t.hits[i].Failed = noOwner
		}
		e.probe(at, t)
	}
	e.charge(at, t, d)
}

// round tries to decide the call, and asks when it cannot. late says that those
// who were asked have had their time.
func (p *parley) round(late bool) bool {
	at := p.engine.Now()
	var d duties
	decided := p.roundLocked(at, late, &d)
	p.engine.perform(&d)
	if decided && p.engine.sampled != nil {
		p.engine.noteSampled(p.trial)
	}
	return decided
}

func (p *parley) roundLocked(at node.Instant, late bool, d *duties) (decided bool) {
	e := p.engine
	e.lock(p.touched)
	defer e.unlock(p.touched)
	e.probe(at, p.trial)
	if p.rounds > 0 {
		p.account(at, late)
		if late && p.failAll() {
			e.probe(at, p.trial)
		}
	}
	for p.waits() && !p.admitted() {
		e.probe(at, p.trial)
	}
	if p.waits() {
		p.rounds++
		p.seek(at, d)
		return false
	}
	e.charge(at, p.trial, d)
	p.forget(at, d)
	return true
}

// failAll notes that none of those who were asked has answered. It reports
// whether there was one.
func (p *parley) failAll() bool {
	failed := false
	for i := range p.call.Statuses {
		if p.call.Statuses[i].Wait {
			p.fail(i)
			failed = true
		}
	}
	return failed
}

// fail notes that a descriptor has one home less, and that whoever is asked next
// has a time of its own.
func (p *parley) fail(i int) {
	if p.hits[i].Failed++; unreached(&p.call.Statuses[i]) {
		p.hits[i].Failed = noOwner
	}
	p.until = 0
}

// admitted reports whether the homes that are to be asked may be. The hits of one
// that may not have one home less then.
func (p *parley) admitted() bool {
	all := true
	for i := range p.call.Statuses {
		switch st := &p.call.Statuses[i]; {
		case !st.Wait:
		case p.rounds >= maxRounds:
			p.hits[i].Failed, all = noOwner, false
		case !p.visits(st.Owner):
			if _, open := p.Reach(st.Owner); !open {
				p.fail(i)
				all = false
			}
		}
	}
	return all
}

// visits reports whether a descriptor waits for a home already.
func (p *parley) visits(owner crdt.Incarnation) bool {
	for _, v := range p.place.owners {
		if v.owner == owner && !v.done {
			return true
		}
	}
	return false
}

// visit tells the breakers of the homes that were asked, once a call. A call that
// was asked beside the one that tries whether a home answers again tells nothing.
func (p *parley) visit(at node.Instant) {
	for i := range p.call.Statuses {
		st, v := &p.call.Statuses[i], &p.place.owners[i]
		if !st.Wait || v.owner == st.Owner && !v.done {
			continue
		}
		told := !p.visits(st.Owner) && !p.claim(st.Owner, at.Mono)
		*v = visit{owner: st.Owner, reserve: unreached(st), done: told}
	}
}

// account tells the breakers what became of those who were asked.
func (p *parley) account(at node.Instant, late bool) {
	for i := range p.place.owners {
		v := &p.place.owners[i]
		if v.owner == 0 || v.done {
			continue
		}
		st := &p.call.Statuses[i]
		if st.Wait && st.Owner == v.owner && !late {
			continue // it is asked once more
		}
		failed := st.Wait || st.Gate == node.FailureGate || !v.reserve && unreached(st)
		p.settle(at, v.owner, !failed)
	}
}

// unreached reports whether a status was decided, or is to be, without the home
// of its key.
func unreached(st *node.Status) bool {
	return st.Degraded == node.OwnerUnreachable || st.Degraded == node.CircuitOpen
}

// settle tells a home's breaker once what became of a call's visit.
func (p *parley) settle(at node.Instant, owner crdt.Incarnation, ok bool) {
	for i := range p.place.owners {
		if v := &p.place.owners[i]; v.owner == owner {
			v.done = true
		}
	}
	p.strict.done(owner, at.Mono, ok)
}

// seek asks. The shards stay locked, so that no answer comes before it is waited
// for.
func (p *parley) seek(at node.Instant, d *duties) {
	within, shards := time.Duration(0), uint64(0)
	for i := range p.call.Statuses {
		if st := &p.call.Statuses[i]; st.Wait {
			within = max(within, st.Within)
			shards |= 1 << node.ShardOf(p.hits[i].Key, len(p.engine.shards))
		}
	}
	if p.until == 0 {
		p.from, p.until = at.Mono, at.Mono+within
	}
	p.lot.expect(p.place, shards)
	each(shards, func(i int) {
		n := p.engine.shards[i].node
		n.RequestLease(at, p.hits, p.call.Statuses, p.place.ticket)
		d.collect(at, p.strict, i, n)
	})
	p.visit(at)
}

// sleep waits for the answers. late says that the time for them is over.
func (p *parley) sleep(ctx context.Context) (late bool, err error) {
	p.lot.sleep(p.place, time.Now().Add(p.until-p.engine.Now().Mono))
	select {
	case <-p.place.woken:
		return p.lot.wakes(p.place), nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// abandon ends a call that is not decided, as its caller is gone. A home that has had a good part of
// its time has failed: callers that are never as patient as this daemon must not
// keep it from finding out.
func (p *parley) abandon() {
	at := p.engine.Now()
	failed := at.Mono-p.from >= (p.until-p.from)/3
	for i := range p.place.owners {
		switch v := &p.place.owners[i]; {
		case v.owner == 0 || v.done:
		case failed:
			p.settle(at, v.owner, false)
		}
	}
	var d duties
	p.forgetAlone(at, &d)
	p.engine.perform(&d)
}

func (p *parley) forgetAlone(at node.Instant, d *duties) {
	p.engine.lock(p.touched)
	defer p.engine.unlock(p.touched)
	p.forget(at, d)
}

// forget gives up what was set aside for the call and not charged.
func (p *parley) forget(at node.Instant, d *duties) {
	each(p.touched, func(i int) {
		n := p.engine.shards[i].node
		n.CancelLease(at, p.hits, p.place.ticket)
		d.collect(at, p.strict, i, n)
	})
}
