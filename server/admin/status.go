package admin

import (
	"net/http"
	"time"
)

// StatusAnswer is the answer of /v1/status: how a daemon is, and its cluster as it
// sees it. The JSON names are stable: programs read them. What is not known is
// null, which is another thing than 0.
type StatusAnswer struct {
	// At and Alone are as in MembersAnswer; Regions, Circuits and Strict are empty
	// for a daemon alone.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`

	Daemon DaemonState `json:"daemon"`
	// Regions are all that are configured or heard of, by name. Never null.
	Regions []RegionState `json:"regions"`
	// Circuits are those that are not closed, and the closed ones that had calls of
	// late, by home. Never null.
	Circuits []Circuit `json:"circuit_breakers"`
	// Strict is null for a daemon that has no part in strict keys.
	Strict *StrictState `json:"strict"`
	// Degraded is why answers are less than exact now, by reason. Never null.
	Degraded []DegradedState `json:"degraded"`
	// Worst is the rule that used most of its bound within the last hour, and Denied
	// the one that is refused most hits now; null for none.
	Worst  *RuleUse `json:"worst_rule"`
	Denied *RuleUse `json:"most_denied_rule"`
}

// DaemonState is how the daemon that answers is.
type DaemonState struct {
	DaemonRef
	Version       string  `json:"version"`
	UptimeSeconds float64 `json:"uptime_seconds"`
	// Ready is as on /readyz, WhyNot the reason when it is not.
	Ready  bool   `json:"ready"`
	WhyNot string `json:"why_not"`
	// Shadow says that the daemon refuses nothing.
	Shadow bool `json:"shadow"`
	// LiveKeys of at most MaxKeys are tracked; OverflowKeys are counters that the
	// keys beyond share.
	LiveKeys     int `json:"live_keys"`
	MaxKeys      int `json:"max_keys"`
	OverflowKeys int `json:"overflow_keys"`
	// ClockOffsetSeconds is how far the clock that windows follow is ahead of the
	// wall clock; PeerOffsetSeconds the greatest distance to a peer's clock, in
	// either direction.
	ClockOffsetSeconds float64  `json:"clock_offset_seconds"`
	PeerOffsetSeconds  *float64 `json:"peer_offset_seconds"`
	// Rules is the hash of the rules in force, RuleCount how many there are, and
	// LimitsFault why those on disk are refused, "" when they are not.
	Rules       string `json:"rules"`
	RuleCount   int    `json:"rule_count"`
	LimitsFault string `json:"limits_fault"`
}

// RegionState is how a region is.
type RegionState struct {
	Region string `json:"region"`
	// Self marks the region of the daemon that answers.
	Self bool `json:"self"`
	// StalenessSeconds is the age of the oldest view of a daemon there, null when nothing
	// was heard of any, and where there is no other.
	StalenessSeconds *float64 `json:"staleness_seconds"`
	// Partitioned says that nothing is heard of the region, PartitionedSince since when.
	Partitioned      bool       `json:"partitioned"`
	PartitionedSince *time.Time `json:"partitioned_since"`
	// Members are its live daemons, by name and incarnation. Never null.
	Members []MemberState `json:"members"`
}

// MemberState is one live daemon.
type MemberState struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	Ready       bool   `json:"ready"`
	Self        bool   `json:"self"`
	// StalenessSeconds is the age of the view of it, null when nothing was heard, and of
	// the daemon itself.
	StalenessSeconds *float64 `json:"staleness_seconds"`
}

// DegradedState is a reason why answers are less than exact.
type DegradedState struct {
	Reason string `json:"reason"`
	// Since is when it began, Answers how many it touched since.
	Since   *time.Time `json:"since"`
	Answers uint64     `json:"answers"`
	// Text says what it means and what to do.
	Text string `json:"text"`
}

// RuleUse is how a rule does.
type RuleUse struct {
	Domain string `json:"domain"`
	// Rule is its path, Name that of its limit, "" for none.
	Rule string `json:"rule"`
	Name string `json:"name"`
	// Overage and Bound are as in RuleBudget: achieved within the last hour, and at
	// worst; null where they are not known.
	Overage *float64 `json:"overage_worst_hour_ratio"`
	Bound   *float64 `json:"overage_bound_ratio"`
	// DeniedPerSecond is the hits that this daemon refused, of late.
	DeniedPerSecond *float64 `json:"denied_per_second"`
}

// statusPage serves what ask returns.
func statusPage(ask func() StatusAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if ask == nil {
			failNothing(w, "tells no status")
			return
		}
		answer := ask()
		answer.fill()
		answer.At = time.Now().UTC()
		writeJSON(w, answer)
	}
}

// fill makes lists of what is missing, and numbers unknown that JSON cannot carry.
// What the daemon keeps is not changed.
func (a *StatusAnswer) fill() {
	a.Regions = append([]RegionState{}, a.Regions...)
	for i := range a.Regions {
		r := &a.Regions[i]
		r.StalenessSeconds = finite(r.StalenessSeconds)
		r.Members = append([]MemberState{}, r.Members...)
		for j := range r.Members {
			r.Members[j].StalenessSeconds = finite(r.Members[j].StalenessSeconds)
		}
	}
	if a.Circuits == nil {
		a.Circuits = []Circuit{}
	}
	if a.Degraded == nil {
		a.Degraded = []DegradedState{}
	}
	a.Daemon.PeerOffsetSeconds = finite(a.Daemon.PeerOffsetSeconds)
	a.Worst, a.Denied = a.Worst.filled(), a.Denied.filled()
	a.Strict = a.Strict.filled()
}

func (u *RuleUse) filled() *RuleUse {
	if u == nil {
		return nil
	}
	out := *u
	out.Overage, out.Bound, out.DeniedPerSecond = finite(u.Overage), finite(u.Bound), finite(u.DeniedPerSecond)
	return &out
}
