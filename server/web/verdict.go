package web

import (
	"net/http"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server"
)

// verdict is the HTTP form of a decided call. It is valid as long as its
// exchange.
type verdict struct {
	x        *exchange
	settings *server.Settings
	now      time.Time

	status  int  // of the answer
	allowed bool // true in shadow mode, whatever the decision

	// binding is the index of the descriptor the caller should mind most:
	// one that makes the call never pass, else the one that refused, else the
	// one with the least left; -1 when nothing limits the call.
	binding int
	// never is true when waiting does not help a denied call: its hits are more
	// than the binding limit ever holds.
	never bool
	// closed is true when a call was denied because owners of its limits did
	// not answer, and nothing else denies it: to the caller rld has failed.
	closed bool
	// retryAfter is set on a refusal that waiting helps: whole seconds, at
	// least 1.
	retryAfter uint64
	// wouldDeny is true for a passed call that shadow mode does not deny.
	wouldDeny bool
	// delay is how long to hold a passed call back.
	delay time.Duration
	// degraded is the first reason why the answer is less than exact.
	degraded node.Degraded
}

func judge(x *exchange, s *server.Settings, now time.Time) verdict {
	c := x.call
	v := verdict{x: x, settings: s, now: now, status: http.StatusOK, binding: -1}
	v.allowed = c.Decision.Allowed || s.Shadow
	v.degraded, v.delay = server.Worst(c.Statuses)
	for i := range c.Statuses {
		st := &c.Statuses[i]
		if st.Limit != nil && (v.binding < 0 || tighter(st, &c.Statuses[v.binding])) {
			v.binding = i
		}
	}
	if !c.Decision.Allowed && c.Decision.Refused >= 0 && c.Decision.Refused < len(c.Statuses) {
		v.binding = c.Decision.Refused
	}
	if !v.allowed {
		v.status, v.delay = x.denyStatus, 0
		if v.closed = failedClosed(c.Statuses); v.closed {
			v.status = x.failureStatus
		}
		if i := server.Never(c.Statuses); i >= 0 {
			v.binding, v.never = i, true
			return v
		}
		v.retryAfter = max(1, server.Seconds(server.Retry(c.Statuses)))
		return v
	}
	v.wouldDeny = server.WouldDeny(c, s.Shadow)
	return v
}

// failedClosed reports whether all that refuses a call refuses it since an
// owner could not be asked (on_failure: deny).
func failedClosed(statuses []node.Status) bool {
	closed := false
	for i := range statuses {
		s := &statuses[i]
		if !violates(s) {
			continue
		}
		if s.Gate != node.FailureGate {
			return false
		}
		closed = true
	}
	return closed
}

// tighter reports whether a binds a passed call more than b: an enforced
// limit before one in shadow mode, then the smaller remaining.
func tighter(a, b *node.Status) bool {
	if a.Limit.Shadow != b.Limit.Shadow {
		return b.Limit.Shadow
	}
	return a.Remaining < b.Remaining
}

// resetAt is the Unix time in seconds, rounded up, at which the whole limit
// is available again.
func (v *verdict) resetAt(s *node.Status) int64 {
	at := v.now.Add(s.Reset)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}

// limited returns the status of the binding descriptor, nil when there is
// none.
func (v *verdict) limited() *node.Status {
	if v.binding < 0 {
		return nil
	}
	s := &v.x.call.Statuses[v.binding]
	if s.Limit == nil {
		return nil
	}
	return s
}

// overrideName stands in for a rule where an override limits a descriptor that
// no rule matches, as in the native API.
const overrideName = "override"

// displayName is the name of a status's limit in headers.
func displayName(s *node.Status) string {
	if s.Rule == nil {
		return overrideName
	}
	return s.Rule.Display()
}

// rulePath is the path of the rule of a status.
func rulePath(s *node.Status) string {
	if s.Rule == nil {
		return overrideName
	}
	return s.Rule.Path
}
