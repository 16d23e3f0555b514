package admin

import "time"

// ExplainAnswer is the answer of /v1/explain: what a call would get that came
// now, and all that led to it, as the daemon that is asked knows it. Nothing is
// charged. The JSON names are stable: programs read them. What is not known is
// null, which is another thing than 0.
type ExplainAnswer struct {
	// At is as in MembersAnswer.
	At time.Time `json:"at"`
	// Self is the daemon that answers. A daemon without a region has no name.
	Self   DaemonRef `json:"self"`
	Domain string    `json:"domain"`
	// Hits is what each descriptor asks for.
	Hits uint64 `json:"hits"`
	// Allowed is what the limits say of the call; RefusedBy is the display name of
	// the rule that refuses, "" for none. Shadow says that the daemon is in shadow
	// mode, and tells callers yes whatever the limits say.
	Allowed   bool   `json:"allowed"`
	RefusedBy string `json:"refused_by"`
	Shadow    bool   `json:"shadow"`
	// HTTPStatus and Headers are those of an answer over HTTP, in their order.
	HTTPStatus int      `json:"http_status"`
	Headers    []Header `json:"headers"` // never null
	// Descriptors are those of the question, in its order. Never null.
	Descriptors []Explained `json:"descriptors"`
}

// Header is a field of an HTTP answer.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Explained is one descriptor.
type Explained struct {
	// Rule is the rule that matched, null for none: then WhyNoRule says why, and
	// Closest what was perhaps meant, "" for nothing.
	Rule      *RuleRef `json:"rule"`
	WhyNoRule string   `json:"why_no_rule"`
	Closest   string   `json:"closest"`
	// Limit is what limits it, null for nothing: then WhyNoLimit says why where a
	// rule matched, and what follows is null or empty.
	Limit      *LimitInForce `json:"limit"`
	WhyNoLimit WhyNoLimit    `json:"why_no_limit"`
	// Key is the hash that it is counted under, 32 hexadecimal digits, the same on
	// all daemons of the cluster.
	Key string `json:"key"`
	// Counts is what each region is known to have admitted of the label that runs,
	// by region; of a bucket or a log what of it still counts. Never null.
	Counts   []RegionCount `json:"counts"`
	Estimate *EstimateGate `json:"estimate_gate"`
	// Rights is null for a limit that holds none here.
	Rights *RightsGate `json:"rights_gate"`
	// StrictKey is null for a limit whose rights are spread over all daemons, or that
	// has none. Reserve is that of a region's floor, in the region of the daemon that
	// answers.
	Ledger  *StrictKey `json:"strict_key"`
	Reserve *StrictKey `json:"regional_reserve"`
	// Verdict is what these hits would get by themselves.
	Verdict *Verdict `json:"verdict"`
}

// RuleRef is where a rule is.
type RuleRef struct {
	// Path is as rld budget shows it, Name that of its limit, "" for none.
	Path string `json:"path"`
	Name string `json:"name"`
	// File and Line say where it is written, "" and 0 for nowhere.
	File string `json:"file"`
	Line int    `json:"line"`
}

// WhyNoLimit says why nothing limits what a rule matches.
type WhyNoLimit string

// The reasons.
const (
	// LimitUnlimited: the rule says unlimited.
	LimitUnlimited WhyNoLimit = "unlimited"
	// LimitNone: the rule has no rate_limit.
	LimitNone WhyNoLimit = "no_limit"
	// LimitReplaced: another descriptor of the call replaces it.
	LimitReplaced WhyNoLimit = "replaced"
)

// LimitInForce is a limit as it applies.
type LimitInForce struct {
	// Requests are the hits of a window of WindowSeconds; Burst is of buckets, else 0.
	Requests      uint64  `json:"requests"`
	WindowSeconds float64 `json:"window_seconds"`
	Burst         uint64  `json:"burst"`
	Algorithm     string  `json:"algorithm"`
	Consistency   string  `json:"consistency"`
	Scope         string  `json:"scope"`
	// Placement is where its rights sit, "" for a limit without.
	Placement string `json:"placement"`
	// OnFailure is what a strict limit answers without its home: deny, allow, or
	// "share: 10%"; "" for others.
	OnFailure string   `json:"on_failure"`
	Budget    *float64 `json:"overage_budget_ratio"`
	Quota     bool     `json:"quota"`
	Shadow    bool     `json:"shadow"`
	// Override says that it came with the call.
	Override bool `json:"override"`
}

// RegionCount is what is known of a region.
type RegionCount struct {
	Region string `json:"region"`
	Hits   uint64 `json:"hits"`
	// AgeSeconds is the age of the oldest view of a daemon there, 0 for the daemon
	// itself; null when nothing was heard.
	AgeSeconds *float64 `json:"age_seconds"`
	// Stamp is the latest time of a clock there that came here, as
	// hlc.Timestamp prints it: "milliseconds.counter"; "" when none has.
	Stamp string `json:"stamp"`
}

// EstimateGate lets pass what all are thought to have room for.
type EstimateGate struct {
	// Counted is what is in use of Capacity as far as it is known here, Elsewhere
	// what others are thought to have admitted since they were heard.
	Counted   uint64 `json:"counted_hits"`
	Elsewhere uint64 `json:"elsewhere_hits"`
	Capacity  uint64 `json:"capacity_hits"`
	Passes    bool   `json:"passes"`
}

// RightsGate lets pass what this daemon holds rights to. Left is what Allotment and
// Received come to without Used and Given; of buckets and logs what drained and
// what expired is not in Used any more.
type RightsGate struct {
	// Window is the start of the label that the rights are of.
	Window    *time.Time `json:"window"`
	Allotment uint64     `json:"allotment_hits"`
	Received  uint64     `json:"received_hits"`
	Given     uint64     `json:"given_hits"`
	Used      uint64     `json:"used_hits"`
	Left      uint64     `json:"left_hits"`
	// WhyNot says why the base is 0, "" when it is not.
	WhyNot string `json:"why_not"`
	Passes bool   `json:"passes"`
}

// Verdict is what hits get.
type Verdict struct {
	// Allowed is false for hits that do not fit, also in shadow mode.
	Allowed   bool   `json:"allowed"`
	Remaining uint64 `json:"remaining"`
	// ResetSeconds is the time until the whole limit is available; RetrySeconds
	// that until the hits fit, null when they do now or, as Never says, never will.
	ResetSeconds float64  `json:"reset_seconds"`
	RetrySeconds *float64 `json:"retry_seconds"`
	Never        bool     `json:"never"`
	// DelaySeconds is how long a passed request is held back, 0 for not at all.
	DelaySeconds float64 `json:"delay_seconds"`
	// Degraded says why the answer is less than exact, "" when it is not.
	Degraded string `json:"degraded"`
}

// fill makes lists of what is missing.
func (a *ExplainAnswer) fill() {
	if a.Headers == nil {
		a.Headers = []Header{}
	}
	if a.Descriptors == nil {
		a.Descriptors = []Explained{}
	}
	for i := range a.Descriptors {
		d := &a.Descriptors[i]
		if d.Counts == nil {
			d.Counts = []RegionCount{}
		}
		d.Ledger.fill()
		d.Reserve.fill()
	}
}
