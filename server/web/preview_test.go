package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
)

// TestPreview compares the preview of an answer with the answer.
func TestPreview(t *testing.T) {
	now := func() time.Time { return time.Unix(1_767_225_600, 0) }
	for _, st := range []node.Status{
		{Limit: perHour(5), Remaining: 2, Reset: time.Minute, Degraded: node.KeysFull},
		{Limit: perHour(5), Over: true, Retry: time.Minute, Reset: time.Hour},
		{Limit: perHour(5), Over: true, Retry: time.Second, Gate: node.FailureGate, Degraded: node.OwnerUnreachable},
	} {
		e := &fixed{status: st}
		w := httptest.NewRecorder()
		New(Options{Engine: e, Now: now}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/check?domain=d&k=v", nil))
		c := server.NewCall()
		c.Statuses = append(c.Statuses, st)
		c.Decision = node.Decision{Allowed: !st.Over, Refused: -1}
		if st.Over {
			c.Decision.Refused = 0
		}
		status, header := Preview(c, &server.Settings{}, now())
		if status != w.Code || len(header) != len(w.Header())-1 { // Content-Length is the body's
			t.Errorf("%d and %v, want %d and %v", status, header, w.Code, w.Header())
		}
		for _, f := range header {
			if got := w.Header().Get(f.Name); got != f.Value {
				t.Errorf("%s: %q, want %q", f.Name, f.Value, got)
			}
		}
	}
}

func perHour(n uint32) *rules.Limit {
	return &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: n}
}
