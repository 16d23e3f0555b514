package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
)

// Strict tells how a daemon serves strict keys. It is asked once a scrape.
// Implementations are safe for concurrent use and do not wait for peers.
type Strict interface {
	StrictStats() StrictStats
}

// StrictStats is a snapshot. Counts are totals since the process began and never
// go down. It is only read, never kept beyond the scrape.
type StrictStats struct {
	// Node is what the shards did, Rejected what they refused of others.
	Node node.StrictStats
	// Parked is how many calls wait for homes; NoPlace how many were decided
	// without them, as too many waited.
	Parked  int
	NoPlace uint64
	// Frames is how many were handed to streams; DroppedItems what they had no
	// room for.
	Frames, DroppedItems uint64

	// Layout is the number of the one that the daemon goes by. Replica says that
	// it is a replica there, Voting that it votes, and Ledgers is how many it holds.
	Layout          uint64
	Replica, Voting bool
	Ledgers         int
	// Accepts counts those that other homes and the own one sent to the replica, by
	// what it said: "held", or why not.
	Accepts map[string]uint64
	// Journal is what the replica stores.
	Journal Journal

	// Circuits are the breakers of the homes, Transitions how often one went to a
	// state.
	Circuits    []Circuit
	Transitions map[string]uint64
}

// Journal is a file and what was done to it.
type Journal struct {
	Bytes int64
	// Writes are those that were waited for, each of some Entries; Failures are
	// those that went wrong, and Rewrites how often all was written anew.
	Writes, Entries, Failures, Rewrites uint64
	Writing                             time.Duration
}

// Circuit is a home and its breaker: 0 closed, 1 half open, 2 open.
type Circuit struct {
	Region, Owner string
	State         int
}

// maxCircuits bounds the homes that have series.
const maxCircuits = 512

// strictCollector reads a Strict at each scrape.
type strictCollector struct {
	strict Strict

	decisions, asks, refused, grants, rights, cached, replayed, rejected *prometheus.Desc
	parked, noPlace, frames, dropped                                     *prometheus.Desc
	accepts, lost, votes                                                 *prometheus.Desc
	layout, voting, ledgers                                              *prometheus.Desc
	bytes, writes, entries, writing, failures, rewrites                  *prometheus.Desc
	circuit, transitions                                                 *prometheus.Desc
}

func newStrictCollector(s Strict) *strictCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("rld_"+name, help, labels, nil)
	}
	return &strictCollector{
		strict: s,
		decisions: desc("strict_decisions_total",
			"Descriptors of strict keys: decided at once (local), or after a home was asked (waited).", "how"),
		asks:    desc("strict_lease_requests_total", "Asks that were sent to homes."),
		refused: desc("strict_refusals_total", "Asks that this home could not answer, by reason.", "reason"),
		grants:  desc("strict_grants_total", "Asks that this home answered: granted, or denied.", "answer"),
		rights: desc("strict_rights_hits_total",
			"Rights that this home granted to others, and that this daemon returned to homes.", "what"),
		cached:   desc("strict_denials_cached_total", "Descriptors refused by what a home had denied a moment before."),
		replayed: desc("strict_replays_total", "Asks that had been answered already, and counted once."),
		rejected: desc("strict_rejected_items_total", "Items of other daemons that were refused: of other keys, labels or senders."),
		parked:   desc("strict_pending_calls", "Calls that wait for homes."),
		noPlace:  desc("strict_unqueued_calls_total", "Calls that were decided by on_failure as too many waited."),
		frames:   desc("strict_frames_total", "Frames about strict keys that were handed to streams."),
		dropped:  desc("strict_dropped_items_total", "Items about strict keys that no stream took; told again."),
		accepts:  desc("strict_watermark_accepts_total", "Raises: sent to replicas, and held by a majority.", "what"),
		lost:     desc("strict_ballots_lost_total", "Ballots of this home that another one outvoted, or that it took over from."),
		votes: desc("strict_watermark_replies_total",
			"Raises that the replica of this daemon was asked for: held, or why it is not.", "answer"),
		layout:      desc("strict_layout", "Number of the layout in force."),
		voting:      desc("strict_voting", "1 while this daemon, which is a replica, votes, else 0."),
		ledgers:     desc("strict_keys", "Ledgers: known to the shards, and held by the replica.", "of"),
		bytes:       desc("strict_journal_bytes", "Size of the journal."),
		writes:      desc("strict_journal_writes_total", "Writes of the journal, each with one flush of the disk."),
		entries:     desc("strict_journal_entries_total", "Entries that were written."),
		writing:     desc("strict_journal_write_seconds_total", "Time that writes took, with their flushes."),
		failures:    desc("strict_journal_failures_total", "Writes that failed."),
		rewrites:    desc("strict_journal_rewrites_total", "How often the journal was written anew, without what is over."),
		circuit:     desc("circuit_breaker_state", "Breaker of a home: 0 closed, 1 half open, 2 open.", "region", "owner"),
		transitions: desc("circuit_breaker_transitions_total", "How often breakers of homes went to a state.", "state"),
	}
}

// Describe implements prometheus.Collector.
func (c *strictCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.decisions, c.asks, c.refused, c.grants, c.rights, c.cached, c.replayed, c.rejected, c.parked, c.noPlace,
		c.frames, c.dropped, c.accepts, c.lost, c.votes, c.layout, c.voting, c.ledgers, c.bytes, c.writes, c.entries,
		c.writing, c.failures, c.rewrites, c.circuit, c.transitions,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *strictCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.strict.StrictStats()
	w := metricWriter(ch)
	n := &s.Node
	w.count(c.decisions, n.Local, "local")
	w.count(c.decisions, n.Sought, "waited")
	w.count(c.asks, n.Requests)
	for why := sticky.NotOwner; why <= sticky.MaxReason; why++ {
		w.count(c.refused, n.Refused[why], why.String())
	}
	w.count(c.grants, n.Grants, "granted")
	w.count(c.grants, n.Denials, "denied")
	w.count(c.rights, n.Granted, "granted")
	w.count(c.rights, n.Returned, "returned")
	w.count(c.cached, n.Cached)
	w.count(c.replayed, n.Replayed)
	w.count(c.rejected, n.Rejected)
	w.count(c.accepts, n.Accepts, "sent")
	w.count(c.accepts, n.Accepted, "held")
	w.count(c.lost, n.Lost)
	w.gauge(c.ledgers, float64(n.Ledgers), "shards")

	w.gauge(c.parked, float64(s.Parked))
	w.count(c.noPlace, s.NoPlace)
	w.count(c.frames, s.Frames)
	w.count(c.dropped, s.DroppedItems)
	w.reasons(c.votes, s.Accepts)
	w.gauge(c.layout, float64(s.Layout))
	switch {
	case s.Replica && s.Voting:
		w.gauge(c.voting, 1)
	case s.Replica:
		w.gauge(c.voting, 0)
	}
	w.gauge(c.ledgers, float64(s.Ledgers), "replica")

	w.gauge(c.bytes, float64(s.Journal.Bytes))
	w.count(c.writes, s.Journal.Writes)
	w.count(c.entries, s.Journal.Entries)
	w <- prometheus.MustNewConstMetric(c.writing, prometheus.CounterValue, s.Journal.Writing.Seconds())
	w.count(c.failures, s.Journal.Failures)
	w.count(c.rewrites, s.Journal.Rewrites)
	c.circuits(w, &s)
}

// circuits exports the breakers: of two incarnations of a home the worse one.
func (c *strictCollector) circuits(w metricWriter, s *StrictStats) {
	type owner struct{ region, name string }
	worst := map[owner]int{}
	for _, x := range s.Circuits {
		h := owner{labelText(x.Region), labelText(x.Owner)}
		if _, ok := worst[h]; !ok && len(worst) >= maxCircuits {
			h = owner{otherLabel, otherLabel}
		}
		worst[h] = max(worst[h], x.State)
	}
	for h, state := range worst {
		w.gauge(c.circuit, float64(state), h.region, h.name)
	}
	w.reasons(c.transitions, s.Transitions)
}
