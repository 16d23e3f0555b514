package rls

import (
	"strconv"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/message"
)

// Names of the headers that the reference does not have. They are sent whatever
// the settings: an answer must hide none of them.
const (
	headerRetry    = "retry-after"
	headerDegraded = "x-rld-degraded"
	headerDelay    = "x-rld-delay-ms"
)

const (
	headerKey   = 1<<3 | message.Len
	headerValue = 2<<3 | message.Len
)

// appendHeaders appends response_headers_to_add. denied is the outcome that the
// caller receives, so it is false under the global shadow mode.
func (s *Service) appendHeaders(b []byte, c *node.Call, denied bool) []byte {
	if s.settings.Headers {
		if st := reported(c); st != nil {
			hits, _ := server.Quota(st.Limit)
			b = appendNumber(b, s.settings.LimitHeader, hits)
			b = appendNumber(b, s.settings.RemainingHeader, uint64(remaining(st)))
			b = appendNumber(b, s.settings.ResetHeader, server.Seconds(st.Reset))
		}
	}
	if denied && server.Never(c.Statuses) < 0 {
		b = appendNumber(b, headerRetry, max(server.Seconds(server.Retry(c.Statuses)), 1))
	}
	degraded, delay := server.Worst(c.Statuses)
	if degraded != node.NotDegraded {
		b = appendHeader(b, headerDegraded, degraded.String())
	}
	if delay > 0 && c.Decision.Allowed {
		b = appendNumber(b, headerDelay, server.Millis(delay))
	}
	return b
}

// reported returns the status for the rate limit headers: the last one over a
// limit that is no quota, else the one with the least remaining, the first on a
// tie; nil when no status has a limit. As upstream has it, a limit in shadow
// mode is one of them.
func reported(c *node.Call) *node.Status {
	var least *node.Status
	over := false
	for i := range c.Statuses {
		st := &c.Statuses[i]
		switch {
		case st.Limit == nil:
		case st.Refuses() && !st.Limit.Quota:
			least, over = st, true
		case over:
		case least == nil || remaining(st) < remaining(least):
			least = st
		}
	}
	return least
}

func appendNumber(b []byte, name string, v uint64) []byte {
	return appendHeader(b, name, strconv.FormatUint(v, 10))
}

func appendHeader(b []byte, name, value string) []byte {
	b, at := message.Open(b, responseHeaders)
	b = message.AppendText(b, headerKey, name)
	b = message.AppendText(b, headerValue, value)
	return message.Close(b, at)
}
