package web

import (
	"net/http"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// exchange is one request and its answer. It is owned by one goroutine.
type exchange struct {
	call *node.Call
	id   uint64 // of the question, echoed

	// params are the reserved parameters of the query, which also state how the
	// caller wants to be answered.
	params
}

// newExchange returns an exchange that decides a call, with the answer that
// the settings have unless the caller asks for another one.
func newExchange(call *node.Call, s *server.Settings) *exchange {
	return &exchange{
		call: call,
		params: params{
			denyStatus: http.StatusTooManyRequests, failureStatus: http.StatusServiceUnavailable,
			legacy: s.LegacyHeaders, hits: 1,
		},
	}
}

// addDescriptor adds a descriptor to the call.
func (x *exchange) addDescriptor(entries []rules.Entry, hits uint64, o rules.Override) {
	x.call.Descriptors = append(x.call.Descriptors, rules.Descriptor{Entries: entries, Hits: hits, Override: o})
}
