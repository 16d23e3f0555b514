package demo

import (
	"sync"
	"time"

	"github.com/georld/rld/internal/admitted"
)

// Ledger is the demo's account of the admitted hits, by rule, key, window and
// region. It is safe for concurrent use.
type Ledger struct {
	regions []string

	mu      sync.Mutex
	account admitted.Account
	rules   []ruleAccount
}

// ruleAccount is the state of one rule.
type ruleAccount struct {
	Rule
	totals RuleTotals
	// bounded is when the present budget came, zero without one.
	bounded time.Time
}

// windowsKept is how many windows of a key are kept: the one that runs, the
// one before, for late answers, and the next, for clocks that are ahead.
const windowsKept = 3

// NewLedger returns an empty account of rules in regions.
func NewLedger(all []Rule, regions []string) *Ledger {
	l := &Ledger{regions: regions, account: admitted.Account{Keep: windowsKept}}
	for _, r := range all {
		l.rules = append(l.rules, ruleAccount{Rule: r})
	}
	return l
}

// Admit counts an ask that passed. The answer at the given time stated how much
// of its window was left.
func (l *Ledger) Admit(a Ask, at time.Time, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.rules[a.Rule]
	t := &r.totals
	t.Passed++
	w := admitted.WindowOf(r.Name, crowds[a.Rule].key(a.Key), r.Period(), at, left)
	c := l.account.Add(w, int(r.Limit), admitted.Hit{By: admitted.Daemon{Region: l.regions[a.Region]}})
	if c == nil {
		return
	}
	t.Worst = max(t.Worst, c.Overage())
	if t.MostOf == 0 || c.Total*t.MostOf > t.Most*c.Limit {
		t.Most, t.MostOf = c.Total, c.Limit
	}
	if c.Total == c.Limit {
		t.Full++
	}
	if !r.bounded.IsZero() && w.Start.After(r.bounded) {
		t.SinceBudget = max(t.SinceBudget, c.Overage())
	}
}

// Deny counts an ask that was refused.
func (l *Ledger) Deny(a Ask) {
	l.mu.Lock()
	l.rules[a.Rule].totals.Denied++
	l.mu.Unlock()
}

// SetBudget records that a rule has another overage budget from now on, or
// none.
func (l *Ledger) SetBudget(rule int, has bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.rules[rule]
	r.bounded, r.totals.SinceBudget = time.Time{}, 0
	if has {
		r.bounded = now
	}
}

// SetLimit changes the limit of a rule. Windows that run keep the greater one.
func (l *Ledger) SetLimit(rule int, limit uint32, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.rules[rule]
	r.Limit = limit
	for _, c := range l.account.Counts() {
		if c.Rule == r.Name && c.End().After(now) {
			c.Limit = max(c.Limit, int(limit))
		}
	}
}

// RuleRow is the state of a rule.
type RuleRow struct {
	// Key is the key with the fullest running window, Admitted its admitted
	// hits by region, Total their sum, Limit its limit.
	Key      string         `json:"key"`
	Limit    int            `json:"limit"`
	Admitted map[string]int `json:"admitted"`
	Total    int            `json:"total"`
	// Over is the greatest overage of a running window of any key, as a share
	// of the limit.
	Over float64 `json:"overage_ratio"`
	RuleTotals
}

// RuleTotals is the state of a rule over all keys and windows since the start.
type RuleTotals struct {
	// Worst is the greatest overage of a window, as a share of the limit.
	Worst float64 `json:"worst_overage_ratio"`
	// SinceBudget is the worst overage of the windows that began under the
	// present budget, 0 without one.
	SinceBudget float64 `json:"-"`
	// Most is the count of the fullest window of any key, MostOf its limit;
	// Full is the number of windows of keys that reached it.
	Most   int `json:"most_in_a_window"`
	MostOf int `json:"most_of"`
	Full   int `json:"full_windows"`
	// Passed and Denied count the asks of all keys.
	Passed uint64 `json:"passed_since_start"`
	Denied uint64 `json:"denied_since_start"`
}

// Rows returns the state of all rules at an instant.
func (l *Ledger) Rows(now time.Time) []RuleRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.account.Counts()
	out := make([]RuleRow, len(l.rules))
	for i, r := range l.rules {
		fullest := &admitted.Count{Window: admitted.Window{Key: crowds[i].key(0)}, Limit: int(r.Limit)}
		for _, c := range counts {
			if c.Rule == r.Name && c.Contains(now) && c.Total > fullest.Total {
				fullest = c
			}
		}
		row := RuleRow{
			Key: fullest.Key, Limit: fullest.Limit, Admitted: make(map[string]int),
			Total: fullest.Total, Over: fullest.Overage(), RuleTotals: r.totals,
		}
		for _, region := range l.regions {
			row.Admitted[region] = fullest.Admitted(admitted.Daemon{Region: region})
		}
		out[i] = row
	}
	return out
}
