package api

import (
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/message"
)

// The fields of CheckRequest, Descriptor and Override.
const (
	requestID          = 1<<3 | message.Varint
	requestDomain      = 2<<3 | message.Len
	requestDescriptors = 3<<3 | message.Len
	requestHits        = 4<<3 | message.Varint
	requestPeek        = 5<<3 | message.Varint
	requestRefundable  = 6<<3 | message.Varint

	descriptorEntries = 1<<3 | message.Len
	descriptorHits    = 2<<3 | message.Varint
	descriptorLimit   = 3<<3 | message.Len

	overrideRequests = 1<<3 | message.Varint
	overrideUnit     = 2<<3 | message.Varint
)

// messageName names the message in faults.
const messageName = "CheckRequest"

// question is a CheckRequest.
type question struct {
	message.Held
	draft message.Draft
	id    uint64
	hits  uint64
}

// start makes q ready for a message.
func (q *question) start() {
	q.draft.Start()
	q.id, q.hits = 0, 0
}

// ReadMessage reads a CheckRequest. finish returns its faults.
func (q *question) ReadMessage(text string) {
	q.Keep(len(text))
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag {
		case requestID:
			q.id = s.Uint
		case requestDomain:
			q.draft.Call.Domain = s.Text
		case requestDescriptors:
			q.readDescriptor(s.Text)
		case requestHits:
			q.hits = s.Uint
		case requestPeek:
			q.draft.Call.Peek = s.Uint != 0
		case requestRefundable:
			q.draft.Call.Refundable = s.Uint != 0
		}
	}
	q.draft.Malformed(messageName, s.Err())
}

// finish returns the first fault of the question, or nil when it can be
// decided.
func (q *question) finish() error { return q.draft.Finish(max(q.hits, 1)) }

func (q *question) readDescriptor(text string) {
	d := q.draft.Open()
	if d == nil {
		return
	}
	var limit *override
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag {
		case descriptorEntries:
			q.draft.Entry(s.Text)
		case descriptorHits:
			q.draft.Hits(s.Uint)
		case descriptorLimit:
			if limit == nil {
				limit = new(override)
			}
			q.readOverride(limit, s.Text)
		}
	}
	q.draft.Malformed(messageName, s.Err())
	if limit != nil {
		var problem string
		if d.Override, problem = server.Override(limit.requests, limit.unit); problem != "" {
			q.draft.FailHere(problem)
		}
	}
	q.draft.Close()
}

// override is a limit override as sent.
type override struct {
	requests uint32
	unit     int32
}

func (q *question) readOverride(o *override, text string) {
	s := message.Scan(text)
	for s.Next() {
		switch s.Tag {
		case overrideRequests:
			o.requests = uint32(s.Uint)
		case overrideUnit:
			o.unit = int32(s.Uint)
		}
	}
	q.draft.Malformed(messageName, s.Err())
}
