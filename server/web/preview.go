package web

import (
	"net/http"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// Field is a header field of an answer.
type Field struct{ Name, Value string }

// Preview returns the status and the header fields, in their order, that
// /v1/check answers a decided call with at an instant.
func Preview(c *node.Call, s *server.Settings, now time.Time) (status int, header []Field) {
	x := &exchange{call: c, ask: ask{denyStatus: http.StatusTooManyRequests, legacy: s.LegacyHeaders}}
	v := judge(x, s, now)
	v.appendFields(&x.fields)
	start := 0
	for i, name := range x.fields.names {
		header = append(header, Field{name, string(x.fields.text[start:x.fields.ends[i]])})
		start = x.fields.ends[i]
	}
	return v.status, header
}
