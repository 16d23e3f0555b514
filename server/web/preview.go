package web

import (
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// Preview returns the status and the header fields, in their order, that
// /v1/check answers a decided call with at an instant.
func Preview(c *node.Call, s *server.Settings, now time.Time) (status int, header []Field) {
	v := judge(newExchange(c, s), s, now)
	return v.status, v.fields(nil)
}

// Flat returns the status and the body that /api/v1/rate_limit answers a
// decided call with at an instant.
func Flat(c *node.Call, s *server.Settings, now time.Time) (status int, body []byte) {
	v := judge(newExchange(c, s), s, now)
	return v.status, encode(v.body(rateLimitForm))
}
