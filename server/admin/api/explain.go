package api

import "time"

// ExplainQuery is a request to /v1/explain.
type ExplainQuery struct {
	Domain      string              `json:"domain"`
	Descriptors []ExplainDescriptor `json:"descriptors"`
	// Hits is the hits that each descriptor requests, 1 if absent.
	Hits uint64 `json:"hits"`
}

// ExplainDescriptor is one descriptor of a query.
type ExplainDescriptor struct {
	Entries []ExplainEntry `json:"entries"`
}

// ExplainEntry is one entry of a descriptor.
type ExplainEntry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// ExplainAnswer is the answer of /v1/explain: the decision that a call would
// get now and its causes, as seen by the daemon that answers. Nothing is
// charged.
type ExplainAnswer struct {
	// At is as in MembersAnswer.
	At time.Time `json:"at"`
	// Self is the daemon that answers.
	Self   DaemonRef `json:"self"`
	Domain string    `json:"domain"`
	// Hits is the hits that each descriptor requests.
	Hits uint64 `json:"hits"`
	// Allowed is the decision of the limits. RefusedBy is the display name of
	// the rule that denies the call, "" if none does. Shadow reports that the
	// daemon is in shadow mode and admits every call.
	Allowed   bool   `json:"allowed"`
	RefusedBy string `json:"refused_by"`
	Shadow    bool   `json:"shadow"`
	// HTTPStatus and Headers are those of an answer over HTTP, in their order.
	HTTPStatus int      `json:"http_status"`
	Headers    []Header `json:"headers"`
	// Descriptors are those of the query, in its order.
	Descriptors []Explained `json:"descriptors"`
}

// Header is a header of an HTTP answer.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Explained is the explanation of one descriptor.
type Explained struct {
	// Rule is the rule that matched. If it is null, WhyNoRule gives the reason,
	// and Closest the most similar name, "" if none is similar.
	Rule      *RuleRef `json:"rule"`
	WhyNoRule string   `json:"why_no_rule"`
	Closest   string   `json:"closest"`
	// Limit is the limit that applies. If it is null, WhyNoLimit gives the
	// reason if a rule matched, and the fields below are null or empty.
	Limit      *LimitInForce `json:"limit"`
	WhyNoLimit WhyNoLimit    `json:"why_no_limit"`
	// Key is the hash of the key, 16 hexadecimal digits, the same on all
	// daemons of the cluster.
	Key string `json:"key"`
	// NextKey is that under the next cluster secret, "" for one secret: block
	// and reset both.
	NextKey string `json:"next_key,omitempty"`
	// Counts are the known admitted hits of each region in the current window;
	// for a bucket or a log, those that still count.
	Counts   []RegionCount `json:"counts"`
	Estimate *EstimateGate `json:"estimate_gate"`
	// Rights is null for a limit without rights at this daemon.
	Rights *RightsGate `json:"rights_gate"`
	// StrictKey is null for a limit without an owner. Reserve is the regional
	// reserve of the limit, in the region of the daemon that answers.
	StrictKey *StrictKey `json:"strict_key"`
	Reserve   *StrictKey `json:"regional_reserve"`
	// Verdict is the decision for this descriptor alone.
	Verdict *Verdict `json:"verdict"`
}

// RuleRef is the position of a rule.
type RuleRef struct {
	// Path is its path. Name is the name of its limit, "" if it has none.
	Path string `json:"path"`
	Name string `json:"name"`
	// File and Line are its place in the files, "" and 0 if it has none.
	File string `json:"file"`
	Line int    `json:"line"`
}

// WhyNoLimit is the reason why no limit applies to a rule that matched.
type WhyNoLimit string

// The reasons.
const (
	// LimitUnlimited: the rule has unlimited: true.
	LimitUnlimited WhyNoLimit = "unlimited"
	// LimitNone: the rule has no rate_limit.
	LimitNone WhyNoLimit = "no_limit"
	// LimitReplaced: another descriptor of the call replaces it.
	LimitReplaced WhyNoLimit = "replaced"
)

// LimitInForce is a limit as it applies.
type LimitInForce struct {
	// Requests are the hits of a window of WindowSeconds. Burst is 0 except for
	// buckets.
	Requests      uint64  `json:"requests"`
	WindowSeconds float64 `json:"window_seconds"`
	Burst         uint64  `json:"burst"`
	Algorithm     string  `json:"algorithm"`
	Consistency   string  `json:"consistency"`
	Scope         string  `json:"scope"`
	// Placement is where its rights are, "" for a limit without rights.
	Placement string `json:"placement"`
	// OnFailure is the answer without an owner or rights: deny, allow, or
	// "share: 10%"; "" for limits that need neither.
	OnFailure string   `json:"on_failure"`
	Budget    *float64 `json:"overage_budget_ratio"`
	Quota     bool     `json:"quota"`
	Shadow    bool     `json:"shadow"`
	// Override reports that the limit came with the call.
	Override bool `json:"override"`
	// Blocked reports that an operator blocked the key.
	Blocked bool `json:"blocked"`
	// ResetAt is when an operator reset the key: hits from before do not count.
	// It is null for other keys.
	ResetAt *time.Time `json:"reset_at"`
}

// RegionCount is the known count of one region.
type RegionCount struct {
	Region string `json:"region"`
	Hits   uint64 `json:"hits"`
	// StalenessSeconds is the age of the oldest view of a daemon there,
	// including unsent counts: 0 for the daemon itself, null without any.
	StalenessSeconds *float64 `json:"staleness_seconds"`
	// Stamp is the latest known clock reading of the region, as hlc.Timestamp
	// prints it: "milliseconds.counter"; "" without any.
	Stamp string `json:"stamp"`
}

// EstimateGate admits hits that fit into the limit by known and expected
// counts.
type EstimateGate struct {
	// Counted is the known hits in use of Capacity. Extrapolated is the hits
	// that peers are expected to have admitted since their last message.
	Counted      uint64 `json:"counted_hits"`
	Extrapolated uint64 `json:"extrapolated_hits"`
	Capacity     uint64 `json:"capacity_hits"`
	Passes       bool   `json:"passes"`
}

// RightsGate admits hits that this daemon has rights to. Left is Allotment
// plus Received less Given and Used. Of a bucket or a log Used excludes hits
// that drained or expired.
type RightsGate struct {
	// Window is the start of the window that the rights are for.
	Window    *time.Time `json:"window"`
	Allotment uint64     `json:"allotment_hits"`
	Received  uint64     `json:"received_hits"`
	Given     uint64     `json:"given_hits"`
	Used      uint64     `json:"used_hits"`
	Left      uint64     `json:"left_hits"`
	// WhyNot explains an allotment of 0, else "".
	WhyNot string `json:"why_not"`
	Passes bool   `json:"passes"`
}

// Verdict is the decision for the hits of one descriptor.
type Verdict struct {
	// Allowed is false for hits that do not fit, also in shadow mode.
	Allowed   bool   `json:"allowed"`
	Remaining uint64 `json:"remaining"`
	// ResetSeconds is the time until the whole limit is available.
	// RetrySeconds is the time until the hits fit, null if they fit now, or
	// never will, as Never reports.
	ResetSeconds float64  `json:"reset_seconds"`
	RetrySeconds *float64 `json:"retry_seconds"`
	Never        bool     `json:"never"`
	// DelaySeconds is how long an admitted request is held back.
	DelaySeconds float64 `json:"delay_seconds"`
	// Degraded is the reason why the decision is degraded, "" if it is exact.
	Degraded string `json:"degraded"`
}
