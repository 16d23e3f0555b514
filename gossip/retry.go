package gossip

import "time"

// retries are the cells that peers refused and that are sent again.
type retries struct {
	list  []retry
	known map[CellID]struct{} // those of list
}

// retry is one cell to send again at a time.
type retry struct {
	id CellID
	at time.Duration
}

// A refused cell is sent again after retryAfter. At most maxRetries are
// remembered; more are sent again without delay.
const (
	retryAfter = time.Second
	maxRetries = 4_096
)

// add remembers a refused cell. It returns known if it was remembered already:
// a refusal is listed in each message until that is echoed. It returns full
// without room.
func (r *retries) add(now time.Duration, id CellID) (known, full bool) {
	if _, known := r.known[id]; known {
		return true, false
	}
	if len(r.list) >= maxRetries {
		return false, true
	}
	if r.known == nil {
		r.known = map[CellID]struct{}{}
	}
	r.known[id] = struct{}{}
	r.list = append(r.list, retry{id, now + retryAfter})
	return false, false
}

// due calls resend for the cells that are due, and forgets them.
func (r *retries) due(now time.Duration, resend func(CellID)) {
	n := 0
	for n < len(r.list) && r.list[n].at <= now {
		delete(r.known, r.list[n].id)
		resend(r.list[n].id)
		n++
	}
	r.list = append(r.list[:0], r.list[n:]...)
}
