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
	// retryAfter is set on a refusal: whole seconds, at least 1.
	retryAfter uint64
	// delay is how long to hold a passed call back.
	delay time.Duration
	// degraded is the first reason why the answer is less than exact.
	degraded node.Degraded
}

func judge(x *exchange, s *server.Settings, now time.Time) verdict {
	c := x.call
	v := verdict{x: x, settings: s, now: now, status: http.StatusOK, binding: -1}
	v.allowed = c.Decision.Allowed || s.Shadow
	for i := range c.Statuses {
		st := &c.Statuses[i]
		if v.degraded == node.NotDegraded {
			v.degraded = st.Degraded
		}
		if v.allowed {
			v.delay = max(v.delay, st.Delay)
		}
		if st.Limit != nil && (v.binding < 0 || tighter(st, &c.Statuses[v.binding])) {
			v.binding = i
		}
	}
	if !c.Decision.Allowed && c.Decision.Refused >= 0 && c.Decision.Refused < len(c.Statuses) {
		v.binding = c.Decision.Refused
	}
	if !v.allowed {
		v.status = x.denyStatus
		if v.closed = failedClosed(c.Statuses); v.closed {
			v.status = http.StatusServiceUnavailable
		}
		if i := never(c.Statuses); i >= 0 {
			v.binding, v.never = i, true
		}
		v.retryAfter = max(1, server.Seconds(retry(c.Statuses)))
	}
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

// never returns the index of the first status that keeps a refused call from
// ever passing, -1 when there is none: a limit that never holds its hits, or
// a quota, where no other quota ever has room.
func never(statuses []node.Status) int {
	hard, quota, quotas := -1, -1, false // quotas: one has room, now or later
	for i := range statuses {
		s := &statuses[i]
		switch {
		case s.Limit == nil || s.Limit.Shadow:
		case !s.Over || !s.Never:
			quotas = quotas || s.Limit.Quota
		case s.Limit.Quota:
			if quota < 0 {
				quota = i
			}
		case hard < 0:
			hard = i
		}
	}
	if hard >= 0 || quotas {
		return hard
	}
	return quota
}

// wait is how long to wait for a limit that refuses. For hits that never fit
// it is until the whole limit is available, where fewer of them fit at last.
func wait(s *node.Status) time.Duration {
	if s.Never {
		return s.Reset
	}
	return s.Retry
}

// retry is the time after which a refused call would pass if nothing else
// came: every limit that refuses must have room for it, but of the quotas,
// which refuse only together, one is enough. Quotas that never have room for
// it count only where none does.
func retry(statuses []node.Status) time.Duration {
	var hard time.Duration
	var quota *node.Status // the first with room again, of those with none
	left := false          // one has room
	for i := range statuses {
		s := &statuses[i]
		switch {
		case s.Limit == nil || s.Limit.Shadow:
		case !s.Limit.Quota:
			if s.Over {
				hard = max(hard, wait(s))
			}
		case !s.Over:
			left = true
		case quota == nil || sooner(s, quota):
			quota = s
		}
	}
	if quota != nil && !left {
		return max(hard, wait(quota))
	}
	return hard
}

// sooner reports whether a has room before b, of limits with none.
func sooner(a, b *node.Status) bool {
	if a.Never != b.Never {
		return b.Never
	}
	return wait(a) < wait(b)
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
