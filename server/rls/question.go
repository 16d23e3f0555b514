package rls

import (
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/message"
)

// The fields of RateLimitRequest, RateLimitDescriptor, RateLimitOverride and
// of the wrapper messages.
const (
	requestDomain      = 1<<3 | message.Len
	requestDescriptors = 2<<3 | message.Len
	requestHits        = 3<<3 | message.Varint

	descriptorEntries  = 1<<3 | message.Len
	descriptorLimit    = 2<<3 | message.Len
	descriptorHits     = 3<<3 | message.Len
	descriptorNegative = 4<<3 | message.Varint

	overrideRequests   = 1<<3 | message.Varint
	overrideUnit       = 2<<3 | message.Varint
	overrideMultiplier = 3<<3 | message.Len

	wrapperValue = 1<<3 | message.Varint
)

// messageName names the message in faults.
const messageName = "RateLimitRequest"

var errNegativeHits = errors.New("is_negative_hits is set, and the setting rls.negative_hits is not")

// question is a RateLimitRequest.
type question struct {
	message.Held
	draft message.Draft
	hits  uint32 // hits_addend as sent
	// negative are the descriptors that give hits back, by their index. It is
	// empty if there are none.
	negative []bool
}

// start makes q ready for a message.
func (q *question) start() {
	q.draft.Start()
	q.hits, q.negative = 0, q.negative[:0]
}

// ReadMessage reads a RateLimitRequest. finish returns its faults.
func (q *question) ReadMessage(text string) {
	q.Keep(len(text))
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag {
		case requestDomain:
			q.draft.Call.Domain = s.Text
		case requestDescriptors:
			q.readDescriptor(s.Text)
		case requestHits:
			q.hits = uint32(s.Uint)
		}
	}
	q.draft.Malformed(messageName, s.Err())
}

// finish returns the first fault of the question, or nil when it can be
// decided.
func (q *question) finish() error {
	return q.draft.Finish(uint64(max(q.hits, 1)))
}

func (q *question) readDescriptor(text string) {
	d := q.draft.Open()
	if d == nil {
		return
	}
	var limit override
	var hits uint64
	hasHits, hasLimit, negative := false, false, false
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag {
		case descriptorEntries:
			q.draft.Entry(s.Text)
		case descriptorLimit:
			hasLimit = true
			q.readOverride(&limit, s.Text)
		case descriptorHits:
			hasHits = true
			q.readWrapper(&hits, s.Text)
		case descriptorNegative:
			negative = s.Uint != 0
		}
	}
	q.draft.Malformed(messageName, s.Err())
	if negative {
		q.negate(q.draft.Index())
	}
	if hasHits {
		q.draft.Hits(hits)
	}
	if hasLimit {
		d.Override = q.checked(&limit)
	}
	q.draft.Close()
}

// negate marks descriptor i as one that gives hits back.
func (q *question) negate(i int) {
	for len(q.negative) <= i {
		q.negative = append(q.negative, false)
	}
	q.negative[i] = true
}

// negates reports whether descriptor i gives hits back.
func (q *question) negates(i int) bool { return i < len(q.negative) && q.negative[i] }

// refusal returns why a question with negative hits is not answered where they
// are not accepted.
func (q *question) refusal() error {
	return fmt.Errorf("descriptor %d: %w", slices.Index(q.negative, true), errNegativeHits)
}

// override is a limit override as sent.
type override struct {
	requests      uint32
	unit          int32
	multiplier    uint64
	hasMultiplier bool
}

func (q *question) readOverride(o *override, text string) {
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag {
		case overrideRequests:
			o.requests = uint32(s.Uint)
		case overrideUnit:
			o.unit = int32(s.Uint)
		case overrideMultiplier:
			o.hasMultiplier = true
			q.readWrapper(&o.multiplier, s.Text)
		}
	}
	q.draft.Malformed(messageName, s.Err())
}

// checked returns the override to hand on. One that cannot be honored as it
// was sent refuses the call: a limit is never silently another.
func (q *question) checked(o *override) rules.Override {
	unit := overrideUnitOf(o.unit)
	switch {
	case unit == rules.NoUnit:
		q.draft.FailHere(server.UnitProblem(o.unit, server.UnitsWithoutWeek))
	case o.hasMultiplier && o.multiplier != 1:
		q.draft.FailHere(fmt.Sprintf("limit override with unit_multiplier %d, only 1 is supported", o.multiplier))
	}
	return rules.Override{Requests: o.requests, Unit: unit}
}

// readWrapper reads a UInt64Value, or a UInt32Value, which looks the same.
func (q *question) readWrapper(v *uint64, text string) {
	s := message.Scan(text)
	for s.Next() {
		if s.Tag == wrapperValue {
			*v = s.Uint
		}
	}
	q.draft.Malformed(messageName, s.Err())
}
