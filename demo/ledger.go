package demo

import (
	"sync"
	"time"
)

// Ledger is the demo's account of the admitted hits, by rule, key, window and
// region. It is safe for concurrent use.
type Ledger struct {
	regions int

	mu    sync.Mutex
	rules []ruleAccount
}

// ruleAccount is what became of one rule.
type ruleAccount struct {
	period time.Duration
	limit  uint64
	keys   []keyAccount
	totals RuleTotals
	// bounded is the first window that began under the present budget, 0
	// without one.
	bounded int64
}

// windowsKept is how many windows of a key are kept: the one that runs, the
// one before, for late answers, and the next, for clocks that are ahead.
const windowsKept = 3

// keyAccount is the latest windows of one key, in no order. One with window 0
// is free.
type keyAccount [windowsKept]windowAccount

// windowAccount is one window of a key.
type windowAccount struct {
	window int64
	// limit is the greatest limit in force in the window: a daemon may have
	// admitted by any of them.
	limit uint64
	by    []uint64 // admitted, by region
	total uint64
}

// over returns the overage: the hits beyond the limit as a share of the limit,
// or 0.
func (w *windowAccount) over() float64 {
	if w.total <= w.limit || w.limit == 0 {
		return 0
	}
	return float64(w.total-w.limit) / float64(w.limit)
}

// NewLedger returns an empty account of rules in so many regions. keys is how
// many keys a rule has.
func NewLedger(all []Rule, regions int, keys func(rule int) int) *Ledger {
	l := &Ledger{regions: regions}
	for i := range all {
		l.rules = append(l.rules, ruleAccount{
			period: all[i].Period(), limit: uint64(all[i].Limit), keys: make([]keyAccount, keys(i)),
		})
	}
	return l
}

// WindowAt returns the number of the window that ends a time after an instant.
// Both are known to some milliseconds only, so the nearest end counts.
func WindowAt(at time.Time, left, period time.Duration) int64 {
	end := at.Add(left).UnixMilli()
	width := period.Milliseconds()
	return (end+width/2)/width - 1
}

// Admit counts an ask that passed, in the window of a window.
func (l *Ledger) Admit(a Ask, window int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.rules[a.Rule]
	t := &r.totals
	t.Passed++
	w := r.window(a.Key, window, l.regions)
	if w == nil {
		return
	}
	w.by[a.Region]++
	w.total++
	t.Worst = max(t.Worst, w.over())
	if t.MostOf == 0 || w.total*t.MostOf > t.Most*w.limit {
		t.Most, t.MostOf = w.total, w.limit
	}
	if w.total == w.limit {
		t.Full++
	}
	if r.bounded > 0 && window >= r.bounded {
		t.SinceBudget = max(t.SinceBudget, w.over())
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
	r.bounded, r.totals.SinceBudget = 0, 0
	if has {
		r.bounded = r.windowAt(now) + 1
	}
}

// SetLimit changes the limit of a rule. Windows that run keep the greater one.
func (l *Ledger) SetLimit(rule int, limit uint32, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.rules[rule]
	r.limit = uint64(limit)
	for k := range r.keys {
		for i := range r.keys[k] {
			if w := &r.keys[k][i]; w.window >= r.windowAt(now) {
				w.limit = max(w.limit, r.limit)
			}
		}
	}
}

// windowAt returns the number of the current window.
func (r *ruleAccount) windowAt(now time.Time) int64 { return now.UnixMilli() / r.period.Milliseconds() }

// window returns a window of a key, nil for one that is older than all that
// are kept.
func (r *ruleAccount) window(key int, window int64, regions int) *windowAccount {
	k := &r.keys[key]
	oldest := &k[0]
	for i := range k {
		if k[i].window == window {
			return &k[i]
		}
		if k[i].window < oldest.window {
			oldest = &k[i]
		}
	}
	if window < oldest.window {
		return nil
	}
	*oldest = windowAccount{window: window, limit: r.limit, by: make([]uint64, regions)}
	return oldest
}

// RuleRow is the state of a rule.
type RuleRow struct {
	// Key is the key with the fullest running window, Admitted its admitted
	// hits by region, Total their sum, Limit its limit.
	Key      int      `json:"-"`
	Limit    uint64   `json:"limit"`
	Admitted []uint64 `json:"-"`
	Total    uint64   `json:"total"`
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
	Most   uint64 `json:"most_in_a_window"`
	MostOf uint64 `json:"most_of"`
	Full   int    `json:"full_windows"`
	// Passed and Denied count the asks of all keys.
	Passed uint64 `json:"passed_since_start"`
	Denied uint64 `json:"denied_since_start"`
}

// Rows returns the state of all rules at an instant.
func (l *Ledger) Rows(now time.Time) []RuleRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]RuleRow, len(l.rules))
	for i := range l.rules {
		r := &l.rules[i]
		row := &out[i]
		*row = RuleRow{Limit: r.limit, Admitted: make([]uint64, l.regions), RuleTotals: r.totals}
		for k := range r.keys {
			for j := range r.keys[k] {
				w := &r.keys[k][j]
				if w.window != r.windowAt(now) || w.total <= row.Total {
					continue
				}
				row.Key, row.Total, row.Limit = k, w.total, w.limit
				copy(row.Admitted, w.by)
				row.Over = w.over()
			}
		}
	}
	return out
}
