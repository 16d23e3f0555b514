package telemetry

import (
	"time"

	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/lease"
)

// StrictStats is a snapshot of strict keys. Counts are totals since the process
// started. The scrape only reads it and does not keep it.
type StrictStats struct {
	// Node is the sum over the shards.
	Node lease.Stats
	// Pending is the number of calls that wait for owners. Unqueued counts the
	// calls that did not wait, because too many did.
	Pending  int
	Unqueued uint64
	// Frames counts the frames handed to streams, DroppedItems the items that
	// no stream accepted.
	Frames, DroppedItems uint64

	// Layout is the number of the layout in force. Voter reports that the
	// daemon is a voter in it, Voting that it votes. Keys is the number of keys
	// that its acceptor stores.
	Layout        uint64
	Voter, Voting bool
	Keys          int
	// Replies counts the replies of the acceptor to accept requests:
	// "accepted", or the reason for the refusal.
	Replies map[string]uint64
	// Journal is the journal of the acceptor.
	Journal Journal

	// Breakers are the circuit breakers to owners. Transitions counts their
	// changes by the state entered.
	Breakers    []Breaker
	Transitions map[string]uint64
}

// Journal is the state of a journal.
type Journal struct {
	Bytes int64
	// Writes counts writes, each of some Entries and with one flush. Failures
	// counts those that failed, Rewrites the rewrites of the whole file.
	Writes, Entries, Failures, Rewrites uint64
	// Writing is the time spent in writes.
	Writing time.Duration
}

// Breaker is the circuit breaker to an owner: 0 closed, 1 half open, 2 open.
type Breaker struct {
	Region, Owner string
	State         int
}

// maxBreakers bounds the owners with series.
const maxBreakers = 512

func newStrictCollector(read func() StrictStats) *collector {
	return newCollector(strictFamilies, func(w *writer) {
		s := read()
		n := &s.Node
		put(w, "strict_decisions_total", n.Local, "local")
		put(w, "strict_decisions_total", n.Waited, "waited")
		put(w, "strict_lease_requests_total", n.Requests)
		for why := sticky.NotOwner; why <= sticky.MaxReason; why++ {
			put(w, "strict_refusals_total", n.Refused[why], why.String())
		}
		put(w, "strict_grants_total", n.Grants, "granted")
		put(w, "strict_grants_total", n.Denials, "denied")
		put(w, "strict_rights_hits_total", n.Granted, "granted")
		put(w, "strict_rights_hits_total", n.Returned, "returned")
		put(w, "strict_denials_cached_total", n.Cached)
		put(w, "strict_replays_total", n.Replayed)
		put(w, "strict_rejected_items_total", n.Rejected)
		put(w, "strict_watermark_accepts_total", n.Accepts, "sent")
		put(w, "strict_watermark_accepts_total", n.Accepted, "accepted")
		put(w, "strict_ballots_lost_total", n.Lost)
		put(w, "strict_keys", n.Entries, "shards")
		put(w, "strict_keys", s.Keys, "acceptor")

		put(w, "strict_pending_calls", s.Pending)
		put(w, "strict_unqueued_calls_total", s.Unqueued)
		put(w, "strict_frames_total", s.Frames)
		put(w, "strict_dropped_items_total", s.DroppedItems)
		w.reasons("strict_watermark_replies_total", s.Replies)
		put(w, "strict_layout", s.Layout)
		switch {
		case s.Voter && s.Voting:
			put(w, "strict_voting", 1)
		case s.Voter:
			put(w, "strict_voting", 0)
		}

		j := &s.Journal
		put(w, "strict_journal_bytes", j.Bytes)
		put(w, "strict_journal_writes_total", j.Writes)
		put(w, "strict_journal_entries_total", j.Entries)
		w.float("strict_journal_write_seconds_total", j.Writing.Seconds())
		put(w, "strict_journal_failures_total", j.Failures)
		put(w, "strict_journal_rewrites_total", j.Rewrites)
		writeBreakers(w, s.Breakers)
		w.reasons("circuit_breaker_transitions_total", s.Transitions)
	})
}

// writeBreakers writes the worst state of the incarnations of each owner.
func writeBreakers(w *writer, all []Breaker) {
	type owner struct{ region, name string }
	worst := map[owner]int{}
	for _, b := range all {
		o := owner{labelText(b.Region), labelText(b.Owner)}
		if _, ok := worst[o]; !ok && len(worst) >= maxBreakers {
			o = owner{otherLabel, otherLabel}
		}
		worst[o] = max(worst[o], b.State)
	}
	for o, state := range worst {
		put(w, "circuit_breaker_state", state, o.region, o.name)
	}
}
