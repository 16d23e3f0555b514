package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// BudgetQuery is a request to /v1/budget.
type BudgetQuery struct {
	// Rule selects rules by name, by path, or by "domain: path"; "" selects
	// all.
	Rule string
	// Target is the ratio of false denials to give advice for, negative for no
	// advice.
	Target float64
}

// BudgetAnswer is the answer of /v1/budget: the bound of the overage of each
// rule and the overage that occurred, as seen by the daemon that answers.
// Ratios are fractions of a limit: 0.02 is two percent above it.
type BudgetAnswer struct {
	// At and Alone are as in MembersAnswer. Rules is empty for a daemon alone,
	// which never exceeds a limit.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	// Region and Daemon name the daemon that answers.
	Region string `json:"region"`
	Daemon string `json:"daemon"`
	// VoterOnly reports that the daemon is a witness: it counts nothing and
	// holds no rights, so Rules and Views are empty.
	VoterOnly bool `json:"voter_only"`
	// Rules are the rules that several daemons count together, in the order of
	// the files. Omitted is the number of further rules that are not observed.
	Rules   []RuleBudget `json:"rules"`
	Omitted int          `json:"omitted"`
	// Views is the staleness of each region.
	Views []RegionView `json:"views"`
	// Rights describes the rights agent, null for a daemon without one.
	Rights *RightsState `json:"rights"`
}

// RuleBudget describes the overage of one rule.
type RuleBudget struct {
	Domain string `json:"domain"`
	// Rule is its path. Name is the name of its limit, "" if it has none.
	Rule string `json:"rule"`
	Name string `json:"name"`

	Algorithm   string `json:"algorithm"`
	Consistency string `json:"consistency"`
	Scope       string `json:"scope"`
	// Placement is where its rights are: "owner" for a strict rule, "" for a
	// rule without rights.
	Placement string `json:"placement"`
	Shadow    bool   `json:"shadow"`
	// Limit is the hits of a window of WindowSeconds. For a bucket the window
	// is the time to fill it, and Limit its burst plus the refill of that time.
	Limit         uint64  `json:"limit"`
	WindowSeconds float64 `json:"window_seconds"`
	// Budget is the overage budget, 0 for consistency partition, null for a
	// rule without one.
	Budget *float64 `json:"overage_budget_ratio"`

	// Bound is the worst case. It is null in shadow mode, and for a strict rule
	// that admits calls while its owner is unreachable. Bounded reports that
	// rights enforce it under any delay, loss or partition; otherwise only the
	// number of daemons does.
	Bound   *float64 `json:"overage_bound_ratio"`
	Bounded bool     `json:"bounded"`
	// Predicted is the expected overage of windows that cross the limit without
	// rights, null before the first one. Achieved is the overage of the busiest
	// key in the current window. AchievedWorst is the greatest of the last
	// hour, of windows that began under the current limit and budget. Both are
	// null for a rule with charge_denied, whose counts include denied hits.
	Predicted     *float64 `json:"overage_predicted_ratio"`
	Achieved      *float64 `json:"overage_ratio"`
	AchievedWorst *float64 `json:"overage_worst_hour_ratio"`

	// FalseDenials is the fraction of hits within the limit that the rights
	// gate of this daemon denied, for the busiest key in Gated of Windows
	// windows; null while Gated is 0.
	FalseDenials *float64 `json:"false_denials_ratio"`
	Windows      int      `json:"windows"`
	Gated        int      `json:"gated_windows"`
	// DeniedRights, Stranded and Offered are hits of all keys at this daemon
	// since its start: denied by the rights gate alone, those of them denied
	// while less than nine tenths of the limit were in use, and requested.
	DeniedRights uint64 `json:"denied_rights_hits"`
	Stranded     uint64 `json:"stranded_hits"`
	Offered      uint64 `json:"offered_hits"`
	// Headroom is the fraction of the bound that no window used, null before
	// the first window.
	Headroom *float64 `json:"headroom_ratio"`

	// Held is the allotment of this daemon in the current window, in hits, as
	// the epochs assign it. WhyNot explains a Held of 0.
	Held    uint64        `json:"rights_held_hits"`
	WhyNot  string        `json:"rights_why_not"`
	Regions []RegionShare `json:"regions"`

	// Explanation states the worst case, its cause, and how to change it.
	Explanation []string `json:"explanation"`
	Recommended string   `json:"recommended"`
	Alarms      []string `json:"alarms"`
	// Advice is present if the query has a target.
	Advice *Advice `json:"advice,omitempty"`
}

// RegionShare is the share of one region in a rule.
type RegionShare struct {
	Region string `json:"region"`
	// Weight is its fraction of the rights and Rights its hits of the current
	// window, null for a rule without rights. Admitted is its known admitted
	// hits of the busiest key in the window.
	Weight   *float64 `json:"weight_ratio"`
	Rights   *uint64  `json:"rights_hits"`
	Admitted uint64   `json:"admitted_hits"`
}

// RegionView is the staleness of the view of one region.
type RegionView struct {
	Region string `json:"region"`
	// StalenessSeconds is the age of the oldest view of a daemon there,
	// including unsent counts. RTTSeconds is the longest round trip to one.
	StalenessSeconds *float64 `json:"staleness_seconds"`
	RTTSeconds       *float64 `json:"rtt_seconds"`
}

// Advice is the setting that meets a target of false denials.
type Advice struct {
	Target float64 `json:"target_ratio"`
	// YAML is the text for rate_limit, "" if Problem gives the reason for none.
	YAML         string  `json:"yaml"`
	Text         string  `json:"text"`
	Budget       float64 `json:"overage_budget_ratio"`
	Bound        float64 `json:"overage_bound_ratio"`
	Predicted    float64 `json:"overage_predicted_ratio"`
	FalseDenials float64 `json:"false_denials_ratio"`
	Problem      string  `json:"problem"`
}

// RightsState is the state of a rights agent.
type RightsState struct {
	// Holds reports whether this daemon has an allotment in a window that
	// starts now, WhyNot why not. StoreFault is why it cannot store its
	// promises, "" if it can.
	Holds      bool   `json:"holds"`
	WhyNot     string `json:"why_not"`
	StoreFault string `json:"store_fault"`
	// Since is the start of the first window in which it has one, null for no
	// bound: an earlier run or a former cluster may have used older windows.
	Since *time.Time `json:"since"`
	// Regions are the epochs that divide rights among regions, Daemons those
	// that divide them among the daemons of this region, from the settled one
	// on.
	Regions []EpochState `json:"region_epochs"`
	Daemons []EpochState `json:"daemon_epochs"`
}

// EpochState is one agreement on shares.
type EpochState struct {
	ID      string `json:"id"`
	Settled bool   `json:"settled"`
	// Since is when it was proposed, null for the epoch of the configuration.
	Since *time.Time `json:"since"`
	// Members are its participants. Their weights apply to all rules except
	// RuleWeights rules that have weights of their own.
	Members     []EpochMember `json:"members"`
	RuleWeights int           `json:"rule_weights"`
	// WaitsFor names the members that have not acknowledged it, and the others
	// that may use rights of an earlier one.
	WaitsFor []string `json:"waits_for"`
	// Unacknowledged names the daemons of this region that have not
	// acknowledged it, if WaitsFor includes the region.
	Unacknowledged []string `json:"unacknowledged"`
}

// EpochMember is a region or a daemon, with its weight among the others.
type EpochMember struct {
	Name   string `json:"name"`
	Weight uint64 `json:"weight"`
}

// ParsePercent parses a percentage such as "0.1%" into a fraction.
func ParsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(v) || v < 0 || v > 100 {
		return 0, fmt.Errorf("%q is not a percentage from 0%% to 100%%: want one such as 0.1%%", Clip(text))
	}
	return v / 100, nil
}
