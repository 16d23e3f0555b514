package web

import (
	"net/http"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// Largest memory an exchange keeps for its next use.
const (
	keepEntries = 1_024
	keepBytes   = 64 << 10
)

// exchange is the memory of one request and its answer. It is owned by one
// goroutine between exchange and release.
type exchange struct {
	call *node.Call
	ask  ask
	id   uint64 // of the question, echoed

	// entries is where the entries of all descriptors lie. When it grows the
	// earlier descriptors keep the older array.
	entries []rules.Entry
	fields  fields
	body    []byte
}

// ask is how the caller wants to be answered.
type ask struct {
	denyStatus int
	legacy     bool // X-RateLimit-*
}

func (h *handler) exchange() *exchange {
	x := h.exchanges.Get().(*exchange)
	x.call = server.NewCall()
	x.ask = ask{denyStatus: http.StatusTooManyRequests, legacy: h.opts.Settings.LegacyHeaders}
	return x
}

// release returns an exchange to the pool without the request's data.
func (h *handler) release(x *exchange) {
	server.FreeCall(x.call)
	x.call, x.id = nil, 0
	if cap(x.entries) > keepEntries || cap(x.body) > keepBytes || cap(x.fields.text) > keepBytes {
		return
	}
	clear(x.entries)
	x.entries = x.entries[:0]
	x.body = x.body[:0]
	x.fields.reset()
	h.exchanges.Put(x)
}

// addDescriptor adds the entries from start on as one descriptor.
func (x *exchange) addDescriptor(start int, hits uint64, o rules.Override) {
	x.call.Descriptors = append(x.call.Descriptors, rules.Descriptor{
		Entries:  x.entries[start:len(x.entries):len(x.entries)],
		Hits:     hits,
		Override: o,
	})
}
