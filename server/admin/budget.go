package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// BudgetAnswer is the answer of /v1/budget: how far rules may go over their
// limits, and how far they went, as the daemon that is asked sees it. Ratios are
// parts of a limit: 0.02 is two percent over. The JSON names are stable: programs
// read them. What is not known is null, which is another thing than 0.
type BudgetAnswer struct {
	// At and Alone are as in MembersAnswer. Rules is empty for a daemon alone:
	// it never admits more than a limit says.
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	// Region and Daemon name the daemon that answers.
	Region string `json:"region"`
	Daemon string `json:"daemon"`
	// Rules are those that daemons count together, in the order of the files.
	// Never null. LeftOut is how many more there are that are not followed.
	Rules   []RuleBudget `json:"rules"`
	LeftOut int          `json:"omitted"`
	// Views is how old what is known of each region is. Never null.
	Views []RegionView `json:"views"`
	// Rights is how this daemon comes to hold rights, null for one that cannot.
	Rights *RightsState `json:"rights"`
}

// RuleBudget is one rule.
type RuleBudget struct {
	Domain string `json:"domain"`
	// Rule is its path, Name the name that callers are told, "" for none.
	Rule string `json:"rule"`
	Name string `json:"name"`

	Algorithm   string `json:"algorithm"`
	Consistency string `json:"consistency"`
	Scope       string `json:"scope"`
	// Placement is where its rights sit, "" for a rule without; home for a strict one.
	Placement string `json:"placement"`
	Shadow    bool   `json:"shadow"`
	// Limit is the hits of a label, of WindowSeconds. Of a bucket that is the
	// time in which it fills, and Limit its burst and what it mints meanwhile.
	Limit         uint64  `json:"limit"`
	WindowSeconds float64 `json:"window_seconds"`
	// Budget is the overage budget, 0 for consistency partition, null without.
	Budget *float64 `json:"overage_budget_ratio"`

	// Bound is the worst case, null in shadow mode, where nothing is refused, and
	// for a strict rule that passes what its home cannot decide. Bounded says that
	// rights hold it, whatever is late, lost or cut off; else
	// only the number of those that admit does.
	Bound   *float64 `json:"overage_bound_ratio"`
	Bounded bool     `json:"bounded"`
	// Predicted is what is expected of counts alone where the limit is crossed,
	// null while it never was. Achieved is that of the busiest key in the label
	// that runs, AchievedWorst the greatest of the last hour, of labels that
	// began under the present limit and budget; null for a rule with
	// charge_denied, whose counts hold what was refused too.
	Predicted     *float64 `json:"overage_predicted_ratio"`
	Achieved      *float64 `json:"overage_ratio"`
	AchievedWorst *float64 `json:"overage_worst_hour_ratio"`

	// FalseDenials is the part of the hits which the limit had room for that the
	// rights gate refused, of the busiest key in Gated of Windows labels, by this
	// daemon; null while none was gated.
	FalseDenials *float64 `json:"false_denials_ratio"`
	Windows      int      `json:"windows"`
	Gated        int      `json:"gated_windows"`
	// DeniedRights, Stranded and Offered are hits of all keys at this daemon since
	// its start: refused by the rights gate alone, those of them that came while
	// less than nine tenths of the limit were in use, and all that were asked for.
	DeniedRights uint64 `json:"denied_rights_hits"`
	Stranded     uint64 `json:"stranded_hits"`
	Offered      uint64 `json:"offered_hits"`
	// Headroom is the part of what may be admitted at most that no label used,
	// null while there was none.
	Headroom *float64 `json:"headroom_ratio"`

	// Held is how many hits of the label that runs this daemon holds rights to by
	// the epochs, WhyNot why it holds none.
	Held    uint64        `json:"rights_held_hits"`
	WhyNot  string        `json:"rights_why_not"`
	Regions []RegionShare `json:"regions"`

	// Explanation says what the worst case is, why, and what changes it.
	Explanation []string `json:"explanation"`
	Recommended string   `json:"recommended"`
	Alarms      []string `json:"alarms"`
	// Advice is there when a target was asked for.
	Advice *Advice `json:"advice,omitempty"`
}

// RegionShare is one region's part of a rule.
type RegionShare struct {
	Region string `json:"region"`
	// Weight is its part of the rights, Rights the hits of the label that runs;
	// null for a rule without rights. Admitted is what it is known to have
	// admitted of the busiest key in the label.
	Weight   *float64 `json:"weight_ratio"`
	Rights   *uint64  `json:"rights_hits"`
	Admitted uint64   `json:"admitted_hits"`
}

// RegionView is how old what is known of a region is.
type RegionView struct {
	Region string `json:"region"`
	// StalenessSeconds is the age of the oldest view of a daemon there, with what
	// it had not sent; RTTSeconds the longest round trip to one.
	StalenessSeconds *float64 `json:"staleness_seconds"`
	RTTSeconds       *float64 `json:"rtt_seconds"`
}

// Advice is what meets a target of false denials.
type Advice struct {
	Target float64 `json:"target_ratio"`
	// YAML is what to paste into rate_limit, "" when Problem says why there is
	// none.
	YAML         string  `json:"yaml"`
	Text         string  `json:"text"`
	Budget       float64 `json:"overage_budget_ratio"`
	Bound        float64 `json:"overage_bound_ratio"`
	Predicted    float64 `json:"overage_predicted_ratio"`
	FalseDenials float64 `json:"false_denials_ratio"`
	Problem      string  `json:"problem"`
}

// RightsState is how a daemon comes to hold rights.
type RightsState struct {
	// Holds says that this daemon holds rights of a label that starts now, WhyNot
	// why it does not, Failing why what it promises cannot be stored.
	Holds   bool   `json:"holds"`
	WhyNot  string `json:"why_not"`
	Failing string `json:"failing"`
	// Regions are the epochs that say what each region has, Daemons those of the
	// daemons of this region, from the settled one on.
	Regions []EpochState `json:"region_epochs"`
	Daemons []EpochState `json:"daemon_epochs"`
}

// EpochState is one agreement on shares.
type EpochState struct {
	ID      string `json:"id"`
	Settled bool   `json:"settled"`
	// Since is when it was proposed, null for the one that the configuration
	// gives.
	Since *time.Time `json:"since"`
	// Members are who shares, with their weights for all rules but those, Rows of
	// them, that have weights of their own.
	Members []EpochMember `json:"members"`
	Rows    int           `json:"rows"`
	// WaitsFor names those that have not acknowledged it.
	WaitsFor []string `json:"waits_for"`
	// Voteless names the daemons of this region that have not, where it is the
	// region itself that is waited for.
	Voteless []string `json:"voteless"`
}

// EpochMember is a region or a daemon, and its weight among the others.
type EpochMember struct {
	Name   string `json:"name"`
	Weight uint64 `json:"weight"`
}

// BudgetQuery is what is asked of /v1/budget.
type BudgetQuery struct {
	// Rule is a name or a path, "" for all.
	Rule string
	// Target is the part of false denials that advice is wanted for, negative for
	// no advice.
	Target float64
}

// UnknownRuleError is for a rule that is not there.
type UnknownRuleError struct {
	Rule    string
	Closest string // "" for none
}

// Error says which rule was perhaps meant.
func (e *UnknownRuleError) Error() string {
	text := fmt.Sprintf("there is no rule %q that daemons count together", e.Rule)
	if e.Closest != "" {
		text += fmt.Sprintf(" (did you mean %q?)", e.Closest)
	}
	return text
}

// Failure is the answer to what cannot be done.
type Failure struct {
	Error string `json:"error"`
}

// budgetPage serves what ask returns; a nil ask is a daemon alone.
func budgetPage(ask func(BudgetQuery) (BudgetAnswer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := readBudgetQuery(r)
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		answer := BudgetAnswer{Alone: true}
		if ask != nil {
			if answer, err = ask(q); err != nil {
				fail(w, http.StatusNotFound, err)
				return
			}
		}
		if answer.Rules == nil {
			answer.Rules = []RuleBudget{}
		}
		if answer.Views == nil {
			answer.Views = []RegionView{}
		}
		answer.At = time.Now().UTC()
		writeJSON(w, answer)
	}
}

// maxRuleText bounds the name of a rule in a query.
const maxRuleText = 4 << 10

func readBudgetQuery(r *http.Request) (BudgetQuery, error) {
	values := r.URL.Query()
	q := BudgetQuery{Rule: values.Get("rule"), Target: -1}
	if len(q.Rule) > maxRuleText {
		return q, fmt.Errorf("a rule of %d bytes, want at most %d", len(q.Rule), maxRuleText)
	}
	if text := values.Get("false_denials"); text != "" {
		var err error
		if q.Target, err = ParsePercent(text); err != nil {
			return q, fmt.Errorf("false_denials: %w", err)
		}
		if q.Rule == "" {
			return q, fmt.Errorf("false_denials asks for advice on one rule: give rule=")
		}
	}
	return q, nil
}

// ParsePercent reads a part of 1 that is written as a percentage: "0.1%".
func ParsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(v) || v < 0 || v > 100 {
		return 0, fmt.Errorf("%q is no percentage from 0%% to 100%%: say 0.1%%", clip(text))
	}
	return v / 100, nil
}

// clip keeps what is quoted in a message on the line.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}

// fail answers with an error as JSON.
func fail(w http.ResponseWriter, status int, err error) {
	body, encodeErr := json.Marshal(Failure{Error: err.Error()})
	if encodeErr != nil {
		text(w, http.StatusInternalServerError, "cannot write the answer: "+encodeErr.Error()+"\n")
		return
	}
	respond(w, status, "application/json", string(body)+"\n")
}
