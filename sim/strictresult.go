package sim

import (
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// StrictResult is what became of keys that are counted at owners.
type StrictResult struct {
	// Decisions counts the descriptors that owners decide, and Local those that
	// were decided at once: by the owner itself, or by rights it had given
	// before.
	Decisions  uint64  `json:"decisions"`
	Local      uint64  `json:"local"`
	LocalRatio float64 `json:"local_ratio"`
	// Failed were decided by on_failure, Floored of them by a floor.
	Failed uint64 `json:"failed"`
	// Of the calls that waited: how long.
	Waited    uint64  `json:"waited"`
	WaitP50Ms float64 `json:"wait_p50_ms"`
	WaitP99Ms float64 `json:"wait_p99_ms"`
	WaitMaxMs float64 `json:"wait_max_ms"`
	// Messages counts those between daemons, PerDecision is that for a
	// decision.
	Messages    uint64  `json:"messages"`
	PerDecision float64 `json:"messages_per_decision"`
	Requests    uint64  `json:"requests"`
	Grants      uint64  `json:"grants"`
	Accepts     uint64  `json:"accepts"`
	Accepted    uint64  `json:"accepted"`
	// RequestsPerSecond is the most that one daemon got in a second.
	RequestsPerSecond uint64 `json:"requests_per_second"`
	// Syncs counts those of journals, Takeovers the owners that learned that
	// another one had prevailed, and Layouts the layouts after the first.
	Syncs     uint64 `json:"syncs"`
	Takeovers uint64 `json:"takeovers"`
	Layouts   uint64 `json:"layouts"`
	// UnderRatio is the share of the hits that could have been admitted by
	// fixed windows and were not.
	UnderRatio float64 `json:"under_ratio"`
}

// strictTally counts for a StrictResult.
type strictTally struct {
	out     StrictResult
	waits   histogram
	longest time.Duration
	second  time.Duration // that counted is of
	counted map[int]uint64
}

// sent counts a message between daemons.
func (t *strictTally) sent(now time.Duration, to int, m *sticky.Message) {
	t.out.Messages++
	t.out.Requests += uint64(len(m.Requests))
	t.out.Grants += uint64(len(m.Grants))
	t.out.Accepts += uint64(len(m.Accepts))
	t.out.Accepted += uint64(len(m.Accepted))
	if second := now.Truncate(time.Second); t.counted == nil || second != t.second {
		t.second, t.counted = second, make(map[int]uint64)
	}
	t.counted[to] += uint64(len(m.Requests))
	t.out.RequestsPerSecond = max(t.out.RequestsPerSecond, t.counted[to])
}

// decided counts the descriptors of a call that owners decide.
func (t *strictTally) decided(now time.Duration, a *pendingCall) {
	for i := range a.call.Statuses {
		st := &a.call.Statuses[i]
		if st.Limit == nil || !st.Limit.Homed() || st.Rule == nil || st.Rule.Limit != st.Limit {
			continue
		}
		t.out.Decisions++
		if unreached(st.Degraded) {
			t.out.Failed++
		} else if a.Ticket() == 0 {
			t.out.Local++
		}
	}
	if a.Ticket() != 0 {
		wait := now - a.since
		t.out.Waited++
		t.waits.add(wait)
		t.longest = max(t.longest, wait)
	}
}

// strictResult sums up what became of keys with owners, nil where there are
// none.
func (w *World) strictResult() *StrictResult {
	if !w.owners {
		return nil
	}
	r := w.strict.out
	sum := w.endedStrict
	for _, d := range w.daemons {
		for _, n := range d.Nodes {
			sum.Add(n.LeaseStats())
		}
		if d.acceptor != nil {
			r.Layouts = max(r.Layouts, d.acceptor.Acceptor.Routing().Number()-1)
		}
	}
	r.Takeovers = sum.Lost
	if r.Decisions > 0 {
		r.LocalRatio = float64(r.Local) / float64(r.Decisions)
		r.PerDecision = float64(r.Messages) / float64(r.Decisions)
	}
	r.WaitP50Ms, r.WaitP99Ms = millis(w.strict.waits.quantile(0.5)), millis(w.strict.waits.quantile(0.99))
	r.WaitMaxMs = millis(w.strict.longest)
	return &r
}

// HasOwners reports whether some rule of some set of the run has owners.
func (c *Config) HasOwners() bool {
	return c.Policy.HasRights() && c.anyLimit((*rules.Limit).Homed)
}

// unreached reports whether an answer was given without the owner of a key.
func unreached(d node.Degraded) bool { return d == node.OwnerUnreachable || d == node.CircuitOpen }
