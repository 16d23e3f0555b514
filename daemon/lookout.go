package daemon

import (
	"context"
	"github.com/georld/rld/daemon/overage"
	"log/slog"
	"sync"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// recentState keeps what people ask of a daemon and only who looked before can tell:
// since when answers are degraded, which rule refuses most of late, and which layout
// was in force. It is safe for concurrent use.
type recentState struct {
	engine *Engine
	now    func() time.Time

	mu       sync.Mutex
	degraded *degradedLog
	since    [len(node.Stats{}.Degraded)]time.Time // by reason; zero: it is not
	denied   [2]denials                            // the latest two looks, the older one first
	layout   uint64                                // the latest that was seen in force
}

// denials is how many hits each rule had refused at an instant.
type denials struct {
	at     time.Duration
	counts map[ruleKey]uint64
}

type ruleKey struct{ domain, path string }

// recentEvery is the time between two looks.
const recentEvery = 2 * time.Second

func newRecentState(e *Engine, now func() time.Time) *recentState {
	return &recentState{engine: e, now: now, degraded: newDegradedLog(slog.New(slog.DiscardHandler))}
}

// run looks until ctx ends.
func (l *recentState) run(ctx context.Context) {
	t := time.NewTicker(recentEvery)
	defer t.Stop()
	for {
		l.look()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (l *recentState) look() {
	l.watchDegraded()
	now := l.count()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied[0], l.denied[1] = l.denied[1], now
}

// watchDegraded takes in what is degraded now.
func (l *recentState) watchDegraded() node.Stats {
	stats := l.engine.Stats()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.degraded.look(l.engine.Now().Mono, stats)
	for i := range l.since {
		switch active := l.degraded.spans[i].active; {
		case !active:
			l.since[i] = time.Time{}
		case l.since[i].IsZero():
			l.since[i] = l.now().UTC()
		}
	}
	return stats
}

// degradations lists why answers are less than exact now.
func (l *recentState) degradations() []api.DegradedState {
	stats := l.watchDegraded()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []api.DegradedState
	for _, reason := range node.DegradedReasons() {
		if l.since[reason].IsZero() {
			continue
		}
		out = append(out, api.DegradedState{
			Reason: reason.String(), Since: new(l.since[reason]),
			Answers: stats.Degraded[reason] - l.degraded.spans[reason].before, Text: degradation(reason, stats),
		})
	}
	return out
}

// count returns what was refused so far.
func (l *recentState) count() denials {
	d := denials{at: l.engine.Now().Mono, counts: map[ruleKey]uint64{}}
	l.engine.Tallies(func(domain, rule string, t quota.Tally) { d.counts[ruleKey{domain, rule}] += t.HitsOver })
	return d
}

// mostDenied returns the rule that refuses most of late, nil for none.
func (l *recentState) mostDenied() *api.RuleUse {
	now := l.count()
	l.mu.Lock()
	was := l.denied[0]
	if was.counts == nil {
		was = l.denied[1]
	}
	l.mu.Unlock()
	took := (now.at - was.at).Seconds()
	if was.counts == nil || took <= 0 {
		return nil
	}
	var most *rules.Rule
	worst := uint64(0)
	for _, r := range l.engine.Rules().Rules() { // in their order, so that of equals it is the first
		k := ruleKey{r.Domain, r.Path}
		if grown := now.counts[k] - min(now.counts[k], was.counts[k]); grown > worst {
			most, worst = r, grown
		}
	}
	if most == nil {
		return nil
	}
	out := overage.UseOf(most)
	out.DeniedPerSecond = new(float64(worst) / took)
	return out
}

// inForce notes that a layout is seen in force, and returns the latest that was.
func (l *recentState) inForce(number uint64, is bool) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is {
		l.layout = max(l.layout, number)
	}
	return l.layout
}
