package sim

import (
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// Result is the outcome of a run, the --json of rld sim run. Ratios are
// fractions of 1.
type Result struct {
	Scenario string `json:"scenario"`
	// Drawn is the drawn configuration as a scenario, "" for a run without a
	// draw.
	Drawn          string  `json:"drawn,omitempty"`
	Seed           uint64  `json:"seed"`
	Regions        int     `json:"regions"`
	Daemons        int     `json:"daemons"`
	VirtualSeconds float64 `json:"virtual_seconds"`
	WallSeconds    float64 `json:"wall_seconds"`
	Events         uint64  `json:"events"`
	Decisions      uint64  `json:"decisions"`
	Admitted       uint64  `json:"admitted"` // hits
	Denied         uint64  `json:"denied"`   // hits
	Refunded       uint64  `json:"refunded"` // hits
	// Degraded counts the descriptors with a degraded answer, Unanswered the
	// requests for which no daemon was up, or whose client waited no longer.
	Degraded   uint64 `json:"degraded"`
	Unanswered uint64 `json:"unanswered"`

	Rules            []RuleResult `json:"rules"`
	Auditors         []Audit      `json:"auditors"`
	BytesPerDecision float64      `json:"bytes_per_decision"`
	Staleness        Staleness    `json:"staleness"`
	Traffic          Traffic      `json:"traffic"`
	// Seen counts the events of the replicas by name: what this run reached.
	Seen map[string]uint64 `json:"seen"`
	// Situations is how often situations that a cluster must survive took
	// effect, nil without a control log.
	Situations []situationResult `json:"situations,omitempty"`
	// Pending is the reason why the liveness phase is not done, "" when it is.
	Pending   string `json:"pending,omitempty"`
	TraceHash string `json:"trace_hash"` // 16 hexadecimal digits

	// Rights is what became of rights, nil where no rule has any.
	Rights *RightsResult `json:"rights,omitempty"`

	// Strict is what became of keys that are counted at owners, nil where there
	// are none.
	Strict *StrictResult `json:"strict,omitempty"`

	// Grid is the table of a run that was many, see package grid.
	Grid []GridCell `json:"grid,omitempty"`

	// Series is for the report: samples over virtual time.
	Series *Series `json:"series,omitempty"`
}

// RuleResult is what became of one rule. Overage is over all its keys' windows
// in which anything was admitted.
type RuleResult struct {
	Rule      string `json:"rule"` // domain and path
	Algorithm string `json:"algorithm"`
	Limit     uint64 `json:"limit"`
	Admitted  uint64 `json:"admitted"` // hits
	Denied    uint64 `json:"denied"`   // hits
	Windows   uint64 `json:"windows"`
	// OverageRatioMax is the worst window's (admitted - limit) / limit, 0 when
	// none went over; OverageRatioMean is over the windows that reached the
	// limit.
	OverageRatioMax  float64 `json:"overage_ratio_max"`
	OverageRatioMean float64 `json:"overage_ratio_mean"`
	// OverageLaterMax and OverageLaterMean are those of the windows of keys
	// that reached the limit in a window before.
	OverageLaterMax  float64 `json:"overage_later_max"`
	OverageLaterMean float64 `json:"overage_later_mean"`
	// Bound is Theorem 1's for the worst window, as a ratio of the limit,
	// computed from the recorded arrivals and ages.
	Bound float64 `json:"bound"`
	// FalseDenialRatio is the share of the hits asked for that were refused
	// although the world had admitted less than the limit.
	FalseDenialRatio float64 `json:"false_denial_ratio"`
	// Budget is the excess of all rights of a window over the limit, as a ratio
	// of it. Exceeded counts the windows of keys that admitted more than all
	// rights, which no policy with rights may do. ExceededWorst is the greatest
	// excess, as a ratio of all rights.
	Budget        float64 `json:"budget,omitempty"`
	Exceeded      uint64  `json:"exceeded,omitempty"`
	ExceededWorst float64 `json:"exceeded_worst,omitempty"`
}

// RightsResult is what became of rights in a run.
type RightsResult struct {
	Policy string `json:"policy"`
	// Descriptors that gates refused: the estimate alone, the rights alone,
	// both.
	ByEstimate uint64 `json:"denied_by_estimate"`
	ByRights   uint64 `json:"denied_by_rights"`
	ByBoth     uint64 `json:"denied_by_both"`
	// Hits of rights that daemons gave each other.
	Given    uint64 `json:"given"`
	Received uint64 `json:"received"`
	// Transfers counts messages sent because rights were asked for or given;
	// PerDecision is that for a decision.
	Transfers   uint64  `json:"transfers"`
	PerDecision float64 `json:"transfers_per_decision"`
	// Epochs counts those that were proposed.
	Epochs uint64 `json:"epochs"`
}

// GridCell is what came of one policy under one pattern at one size.
// Ratios are fractions of 1: of the limit, and false denials of what could have
// been admitted, the limit or all that was asked for.
type GridCell struct {
	WindowSeconds float64 `json:"window_seconds"`
	LagSeconds    float64 `json:"lag_seconds"`
	Pattern       string  `json:"pattern"`
	Policy        string  `json:"policy"`
	Windows       int     `json:"windows"`
	OverageMean   float64 `json:"overage_mean"`
	OverageWorst  float64 `json:"overage_worst"`
	FalseDenial   float64 `json:"false_denial_mean"`
	// Exceeded counts the windows above the sum of all rights. The naive and
	// the extrapolated policies have none, and are held to the budget.
	Exceeded uint64 `json:"exceeded"`
	// Transfers is the messages about transfers for a decision.
	Transfers float64 `json:"transfers"`
	// Design is the figures of the simulation that the policies were designed
	// with, nil where it played no such cell.
	Design *GridDesign `json:"design,omitempty"`
}

// GridDesign is the figures of a cell in the simulation of the design.
type GridDesign struct {
	OverageMean  float64 `json:"overage_mean"`
	OverageWorst float64 `json:"overage_worst"`
	FalseDenial  float64 `json:"false_denial_mean"`
}

// Exceeded returns how many windows of keys admitted more than all rights sum
// to, and the greatest excess, as a ratio of all rights.
func (r *Result) Exceeded() (windows uint64, worst float64) {
	for i := range r.Rules {
		windows += r.Rules[i].Exceeded
		worst = max(worst, r.Rules[i].ExceededWorst)
	}
	return windows, worst
}

// Audit is what one auditor found.
type Audit struct {
	Name       string `json:"name"`
	Checks     uint64 `json:"checks"`
	Violations uint64 `json:"violations"`
	// First describes the first violation, "" for none. FirstSeconds is its
	// virtual time, 0 where it has none.
	First        string  `json:"first,omitempty"`
	FirstSeconds float64 `json:"first_seconds,omitempty"`
}

// Staleness is the age of views as messages arrive and between them, sampled
// over the run, in milliseconds.
type Staleness struct {
	RegionP50Ms float64 `json:"in_region_p50_ms"`
	RegionP99Ms float64 `json:"in_region_p99_ms"`
	AcrossP50Ms float64 `json:"across_p50_ms"`
	AcrossP99Ms float64 `json:"across_p99_ms"`
	// UnsentP99Ms is that of the oldest increment that was not yet sent.
	UnsentP99Ms float64 `json:"unsent_p99_ms"`
	// NearRegionP99Ms and NearAcrossP99Ms are how long counts of keys are under
	// way of which at most half of the limit is left: until the aggregator of
	// the region has them, and until another region has them. They are 0
	// without the auditor of overage.
	NearRegionP99Ms float64 `json:"near_in_region_p99_ms,omitempty"`
	NearAcrossP99Ms float64 `json:"near_across_p99_ms,omitempty"`
}

// Series holds columns of equal length: one sample each Step.
type Series struct {
	StepSeconds float64      `json:"step_seconds"`
	Seconds     []float64    `json:"seconds"`
	Regions     []string     `json:"regions"`
	Rules       []RuleSeries `json:"rules"`
	// InRegionMs and AcrossMs are the greatest ages of views in each step.
	InRegionMs []float64     `json:"in_region_ms"`
	AcrossMs   []float64     `json:"across_ms"`
	Faults     []FaultRecord `json:"faults"`
}

// RuleSeries is one rule over time.
type RuleSeries struct {
	Rule  string  `json:"rule"`
	Limit float64 `json:"limit"` // of the busiest key, hits a window
	// WindowSeconds is the time in which as much as Limit comes back: the
	// window, or what an empty bucket takes to be full; 0 when it never is.
	WindowSeconds float64 `json:"window_seconds"`
	// Admitted is, per region, the hits admitted in each step.
	Admitted [][]float64 `json:"admitted"`
	Denied   []float64   `json:"denied"`
	// Overage is the worst (admitted - limit) / limit of the windows running
	// or ended in the step, Bound what Theorem 1 allows for it.
	Overage []float64 `json:"overage"`
	Bound   []float64 `json:"bound"`
}

// FaultRecord is a fault on the time axis.
type FaultRecord struct {
	From float64 `json:"from"` // seconds
	To   float64 `json:"to"`   // seconds; = From for an instant
	Text string  `json:"text"`
}

// Exit codes of rld sim by the outcome of a run.
const (
	ExitFine        = 0
	ExitCrash       = 3
	ExitLiveness    = 4
	ExitCorrectness = 5
)

// Code returns the exit code a result calls for.
func (r *Result) Code() int {
	if len(r.Violated()) > 0 {
		return ExitCorrectness
	}
	if r.Pending != "" {
		return ExitLiveness
	}
	return ExitFine
}

// Violated returns the names of the auditors that found something.
func (r *Result) Violated() (names []string) {
	for _, a := range r.Auditors {
		if a.Violations > 0 {
			names = append(names, a.Name)
		}
	}
	return names
}

// Include adds the sums of a run to those of many.
func (r *Result) Include(o *Result) {
	r.VirtualSeconds += o.VirtualSeconds
	r.Events += o.Events
	r.Decisions += o.Decisions
	r.Admitted += o.Admitted
	r.Denied += o.Denied
	r.Degraded += o.Degraded
	r.Unanswered += o.Unanswered
	r.Traffic.include(&o.Traffic)
	if r.Seen == nil {
		r.Seen = make(map[string]uint64)
	}
	for name, n := range o.Seen {
		r.Seen[name] += n
	}
	for _, a := range o.Auditors {
		i := slices.IndexFunc(r.Auditors, func(b Audit) bool { return a.Name == b.Name })
		if i < 0 {
			r.Auditors = append(r.Auditors, a)
			continue
		}
		b := &r.Auditors[i]
		b.Checks += a.Checks
		b.Violations += a.Violations
		if b.First == "" {
			b.First, b.FirstSeconds = a.First, a.FirstSeconds
		}
	}
}

func (t *Traffic) include(o *Traffic) {
	t.Frames += o.Frames
	t.Bytes += o.Bytes
	t.Lost += o.Lost
	t.Duplicated += o.Duplicated
	t.Mangled += o.Mangled
	t.ProtocolErrors += o.ProtocolErrors
	t.Refused += o.Refused
	t.Accepted += o.Accepted
	t.Overflowed += o.Overflowed
	t.Unsendable += o.Unsendable
	t.Unreadable += o.Unreadable
	t.Rights += o.Rights
	t.RightsBytes += o.RightsBytes
}

// tallies counts what became of the hits of each rule, whatever set it is in.
type tallies struct {
	regions   int
	rules     []ruleTally
	decisions uint64
	admitted  uint64 // hits
	denied    uint64 // hits
	degraded  uint64 // descriptors
}

// ruleTally is one rule's. By region in step is what came since the last row
// of the series.
type ruleTally struct {
	id       rules.ID
	name     string
	limit    *rules.Limit // of the newest set
	admitted uint64
	denied   uint64

	stepAdmitted []float64
	stepDenied   float64
}

// RuleName is what results call a rule: its domain and path.
func RuleName(r *rules.Rule) string { return r.Domain + ": " + r.Path }

// place returns the number of a rule's tally, -1 for one that limits nothing.
// It is that of the rule's identity, whatever set the rule is of.
func (t *tallies) place(r *rules.Rule) int {
	if r.Limit == nil || r.Limit.Unlimited {
		return -1
	}
	for i := range t.rules {
		if t.rules[i].id == r.ID {
			return i
		}
	}
	t.rules = append(t.rules, ruleTally{
		id: r.ID, name: RuleName(r), limit: r.Limit, stepAdmitted: make([]float64, t.regions),
	})
	return len(t.rules) - 1
}

// note counts the hits of one descriptor.
func (t *tallies) note(rule, region int, hits uint64, allowed, refused bool) {
	if rule < 0 {
		return
	}
	r := &t.rules[rule]
	switch {
	case allowed:
		r.admitted += hits
		r.stepAdmitted[region] += float64(hits)
	case refused:
		r.denied += hits
		r.stepDenied += float64(hits)
	}
}

// decision counts a call.
func (t *tallies) decision(hits uint64, allowed bool) {
	t.decisions++
	if allowed {
		t.admitted += hits
	} else {
		t.denied += hits
	}
}

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
			r.Layouts = max(r.Layouts, max(1, d.acceptor.Acceptor.Routing().Number())-1)
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
