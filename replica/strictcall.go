package replica

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

// noOwner is node.Hit.Failed when no owner is left to ask.
const noOwner = 2

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

// unreached reports whether the status of a strict key was decided without its
// owner, or will be.
func unreached(st *node.Status) bool {
	return st.Degraded == node.OwnerUnreachable || st.Degraded == node.CircuitOpen || st.Degraded == node.KeysFull
}
