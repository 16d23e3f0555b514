package replica

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

const (
	// maxRounds bounds how often a call requests leases: from the owner, from
	// the owner of the regional reserve, and from each again when a window
	// ended meanwhile.
	maxRounds = 8
	// noOwner is node.Hit.Failed when no owner is left to ask.
	noOwner = 2
)

// Action is the next step of a driver with a call that it has probed.
type Action uint8

// The actions.
const (
	// Charge: the call is decided. The driver charges it, cancels its ticket at
	// the nodes and calls Waiters.End.
	Charge Action = iota
	// Probe: the driver probes the call again, at the same instant, and calls
	// Waiters.Next.
	Probe
	// Request: the driver requests leases at the shards that Next returned,
	// then calls Waiters.Requested. The call waits until Answered returns it or
	// Ready.Late contains it; then the driver probes it and calls Next.
	Request
)

// StrictCall is the retry loop of one call: over the owner of each key, then
// the regional reserve, until the call is decided. The driver may keep one and
// use it again after Waiters.End.
type StrictCall struct {
	// Tag is the driver's. The machine keeps it.
	Tag any
	// NoWait decides the call at once, as if no owner answered.
	NoWait bool

	call     *node.Call
	ticket   uint64    // 0: not in the table
	attempts []attempt // one a descriptor
	awaited  uint64    // shards that have not answered, as a bit set
	rounds   int
	// from is when the owners were asked, until when their time is up. 0 starts
	// a new time with the next request.
	from, until time.Duration
	due         time.Duration // when the call is woken as late, 0: it is awake
	asked, late bool          // it comes back from a wait; because its time is up
}

// attempt is the request to one owner that a descriptor waits for.
type attempt struct {
	owner   crdt.Incarnation // 0: none
	reserve bool             // for the regional reserve
	settled bool             // the owner's breaker knows the outcome
}

// Start prepares an empty StrictCall for a call.
func (c *StrictCall) Start(call *node.Call) { c.call = call }

// Ticket returns the number of the call in requests, 0 before its first one.
func (c *StrictCall) Ticket() uint64 { return c.ticket }

// Next decides how a call goes on that was just probed at the nodes of all its
// shards, and returns the shards of a Request as a bit set. The caller holds
// the locks of the shards until it has done what Next returned.
func (w *Waiters) Next(at time.Duration, c *StrictCall) (Action, uint64) {
	if c.asked {
		c.asked = false
		w.settle(at, c)
		if c.late && c.failAll() {
			return Probe, 0
		}
	}
	switch {
	case !Waits(c.call):
		return Charge, 0
	case c.NoWait || c.ticket == 0 && !w.add(c) || c.rounds >= maxRounds:
		c.giveUp()
		return Probe, 0
	}
	c.rounds++
	return Request, w.expect(at, c)
}

// Requested notes that the leases are requested which Next wanted. The breakers
// learn of it only now: a request must find the path that its call was let
// through on.
func (w *Waiters) Requested(at time.Duration, c *StrictCall) {
	c.asked = true
	for i := range c.call.Statuses {
		st, a := &c.call.Statuses[i], &c.attempts[i]
		if !st.Wait || a.owner == st.Owner && !a.settled {
			continue
		}
		beside := !c.waitsFor(st.Owner) && !w.reach.claim(at, st.Owner)
		*a = attempt{owner: st.Owner, reserve: unreached(st), settled: beside}
	}
}

// Abandon notes that the caller of a call is gone before it was decided. An
// owner that had a good part of its time has failed: callers that are less
// patient than this process must not keep it from finding out. The driver
// cancels the ticket at the nodes and calls End.
func (w *Waiters) Abandon(at time.Duration, c *StrictCall) {
	if at-c.from < (c.until-c.from)/3 {
		return
	}
	for i := range c.attempts {
		if a := &c.attempts[i]; a.owner != 0 && !a.settled {
			w.done(at, c, a.owner, false)
		}
	}
}

// Waits reports whether a call was probed that is allowed only if owners grant
// leases.
func Waits(call *node.Call) bool {
	if !call.Decision.Allowed {
		return false
	}
	for i := range call.Statuses {
		if call.Statuses[i].Wait {
			return true
		}
	}
	return false
}

// settle reports the outcome of the attempts of a call to the breakers.
func (w *Waiters) settle(at time.Duration, c *StrictCall) {
	for i := range c.attempts {
		a, st := &c.attempts[i], &c.call.Statuses[i]
		if a.owner == 0 || a.settled || st.Wait && st.Owner == a.owner && !c.late {
			continue // nothing to report, or the owner is asked once more
		}
		failed := st.Wait || st.Gate == node.FailureGate || !a.reserve && unreached(st)
		w.done(at, c, a.owner, !failed)
	}
}

// done settles all attempts of a call at one owner.
func (w *Waiters) done(at time.Duration, c *StrictCall, owner crdt.Incarnation, ok bool) {
	for i := range c.attempts {
		if a := &c.attempts[i]; a.owner == owner {
			a.settled = true
		}
	}
	w.reach.done(at, owner, ok)
}

// failAll leaves the descriptors that wait one owner less. The next one has a
// time of its own. It reports whether a descriptor waits.
func (c *StrictCall) failAll() bool {
	failed, hits := false, c.call.Hits()
	for i := range c.call.Statuses {
		st := &c.call.Statuses[i]
		if !st.Wait {
			continue
		}
		if hits[i].Failed++; unreached(st) {
			hits[i].Failed = noOwner
		}
		failed, c.until = true, 0
	}
	return failed
}

// giveUp leaves the descriptors that wait no owner.
func (c *StrictCall) giveUp() {
	for i := range c.call.Statuses {
		if c.call.Statuses[i].Wait {
			c.call.Hits()[i].Failed = noOwner
		}
	}
}

// waitsFor reports whether a descriptor of a call waits for an owner already.
func (c *StrictCall) waitsFor(owner crdt.Incarnation) bool {
	return slices.ContainsFunc(c.attempts, func(a attempt) bool { return a.owner == owner && !a.settled })
}

// unreached reports whether a status was decided without the owner of its key,
// or will be.
func unreached(st *node.Status) bool {
	return st.Degraded == node.OwnerUnreachable || st.Degraded == node.CircuitOpen
}
