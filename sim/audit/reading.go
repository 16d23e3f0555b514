package audit

import "time"

// reading is the greatest physical reading that a process may have, from all
// values of its wall clock that it can have read: the wall clock, or the line
// on which the reading waits after a step back. It is kept as leads over the
// monotonic clock, in ns.
type reading struct {
	at    int64  // the latest monotonic time
	lead  int64  // then
	most  int64  // ever
	spans []span // ascending
}

// span is the greatest lead from a monotonic time on, up to the next span.
type span struct{ from, lead int64 }

// Readings within spanWidth share a span. At most maxSpans are kept: for a
// message that was under way for longer the greatest lead ever counts.
const (
	spanWidth = int64(time.Millisecond)
	maxSpans  = 256
)

// note adds a value of the wall clock, as its lead over the monotonic clock.
// The line loses one part in slew of the time that passed.
func (r *reading) note(mono time.Duration, lead, slew int64) {
	n := len(r.spans)
	if n > 0 && lead == r.lead && int64(mono) >= r.at { // mostly: the line is below it
		r.at = int64(mono)
		return
	}
	if n > 0 {
		lead = max(lead, r.lead-(int64(mono)-r.at)/slew)
		if s := &r.spans[n-1]; s.lead-lead < spanWidth && lead-s.lead < spanWidth {
			s.lead = max(s.lead, lead)
		} else {
			r.spans = append(r.spans, span{int64(mono), lead})
		}
	} else {
		r.most, r.spans = lead, append(r.spans, span{int64(mono), lead})
	}
	if len(r.spans) > maxSpans {
		r.spans = r.spans[:copy(r.spans, r.spans[maxSpans/2:])]
	}
	r.at, r.lead, r.most = int64(mono), lead, max(r.most, lead)
}

// leadAt returns the greatest lead that the process may have had at a
// monotonic time.
func (r *reading) leadAt(mono time.Duration) int64 {
	next := r.lead
	for i := len(r.spans) - 1; i >= 0; i-- {
		s := &r.spans[i]
		if s.from <= int64(mono) {
			return max(s.lead, next) // the clock may have been read in between
		}
		next = s.lead
	}
	return r.most
}
