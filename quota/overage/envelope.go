package overage

import "math"

// An envelope divides its interval into envelopeSteps slots.
const (
	envelopeSteps = 16
	maxEnvelopeMs = 86_400_000
	maxSlot       = 1 << 50 // hits: a sum of all slots stays far from overflow
)

// Envelope measures the most arrivals in any interval of one length, as they
// stream in: the arrival envelope of a region. Its memory is constant. The
// result is never too low. For smooth traffic it is a sixteenth too high, since
// time is cut into sixteenths of the interval, and an interval touches up to
// seventeen of them. It is not safe for concurrent use.
type Envelope struct {
	slotMs  int64
	slots   [ringSlots]uint64 // by slot number, modulo ringSlots
	slot    int64             // number of the newest
	started bool
	recent  uint64 // sum of the newest envelopeSteps+1 slots
	prior   uint64 // sum of all before these
	peak    uint64
	surges  float64 // sum over the arrivals of the surge after each
	arrived float64
}

// The ring holds a slot, the interval before it and the one after it.
const ringSlots = 2*envelopeSteps + 1

// Peaks are the arrivals in the intervals of one window.
type Peaks struct {
	Max uint64 // in the busiest interval
	// Surge is the number of arrivals in the interval after an arrival beyond
	// those in the interval before it, on average over the arrivals and rounded
	// up. A requester that asks for as much as the last interval brought, and
	// is served an interval later, lacks this much.
	Surge uint64
}

// NewEnvelope returns an envelope for intervals of 1 ms to one day.
func NewEnvelope(lengthMs int64) *Envelope {
	return &Envelope{slotMs: (lengthMs + envelopeSteps - 1) / envelopeSteps}
}

// Add counts n arrivals at a time in milliseconds. A time before the latest one
// counts as the latest, so arrivals are never lost.
func (e *Envelope) Add(atMs int64, n uint64) {
	e.advance(atMs)
	at := e.ago(0)
	n = min(n, maxSlot-*at)
	*at += n
	e.recent += n
	e.peak = max(e.peak, e.recent)
}

// Recent returns an upper bound of the arrivals in the interval that ends now.
func (e *Envelope) Recent(atMs int64) uint64 {
	e.advance(atMs)
	return e.recent
}

// Roll returns the peaks since the last Roll and starts a new window. An
// interval never reaches across its start, since the counts of two windows are
// not added.
func (e *Envelope) Roll(atMs int64) Peaks {
	e.advance(atMs)
	p := Peaks{Max: e.peak}
	next := Envelope{slotMs: e.slotMs, slot: e.slot, started: e.started}
	for range ringSlots { // The surges of the last interval: nothing comes after it.
		e.push()
	}
	if e.arrived > 0 {
		p.Surge = uint64(math.Ceil(e.surges / e.arrived))
	}
	*e = next
	return p
}

// advance moves to the slot of a time and empties the slots in between. It
// costs at most one round of the ring.
func (e *Envelope) advance(atMs int64) {
	to := atMs / e.slotMs
	if atMs%e.slotMs < 0 {
		to-- // Rounds down before the epoch too.
	}
	if !e.started {
		e.slot, e.started = to, true
		return
	}
	for e.slot < to && e.recent+e.prior > 0 {
		e.push()
	}
	e.slot = max(e.slot, to) // Silent: every slot holds zero.
}

// push ends the newest slot and begins the next one. The slot one interval ago
// then has both its intervals complete, so the surge after its arrivals is
// known.
func (e *Envelope) push() {
	middle := *e.ago(envelopeSteps)
	if after := e.recent - middle; after > e.prior {
		e.surges += float64(middle) * float64(after-e.prior)
	}
	e.arrived += float64(middle)
	oldest := e.ago(ringSlots - 1)
	e.recent -= middle
	e.prior += middle - *oldest
	*oldest = 0 // It becomes the newest.
	e.slot++
}

// ago returns the slot that began a number of slots before the newest.
func (e *Envelope) ago(slots int64) *uint64 {
	i := (e.slot%ringSlots - slots + ringSlots) % ringSlots
	if i < 0 {
		i += ringSlots
	}
	return &e.slots[i]
}
