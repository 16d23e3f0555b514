package daemon

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/georld/rld/node"
)

const (
	// degradedInterval is the time between two looks at what was degraded.
	degradedInterval = time.Second
	// degradedQuiet is how long no answer may be degraded for a degradation
	// to have ended.
	degradedQuiet = 10 * time.Second
)

// degradedLog says once when answers begin to be less than exact, and once
// when that has ended, by reason. It belongs to one goroutine.
type degradedLog struct {
	log   *slog.Logger
	spans [len(node.Stats{}.Degraded)]degradedSpan // by reason
}

// degradedSpan is a reason's state.
type degradedSpan struct {
	counted uint64 // at the last look
	before  uint64 // when the degradation began
	active  bool
	grew    time.Duration // when it last did
}

func newDegradedLog(log *slog.Logger) *degradedLog { return &degradedLog{log: log} }

// look takes the numbers of an engine at a time on its monotonic clock.
func (d *degradedLog) look(at time.Duration, s node.Stats) {
	for i, n := range s.Degraded {
		reason, span := node.Degraded(i), &d.spans[i]
		switch {
		case reason == node.NotDegraded:
			continue
		case n != span.counted && !span.active:
			span.active, span.before, span.grew = true, span.counted, at
			d.log.Warn(degradation(reason, s), "reason", reason.String())
		case n != span.counted:
			span.grew = at
		case span.active && at-span.grew >= degradedQuiet:
			span.active = false
			d.log.Info("answers are exact again", "reason", reason.String(), "degraded", n-span.before)
		}
		span.counted = n
	}
}

// degradation says what is less than exact and what to do about it.
func degradation(reason node.Degraded, s node.Stats) string {
	switch reason {
	case node.KeysFull:
		return fmt.Sprintf("%d of %d keys are tracked: new keys share overflow counters "+
			"and may be refused falsely; raise --max-keys", s.LiveKeys, s.MaxKeys)
	case node.NoRights:
		return "this daemon holds no rights of its own: it admits of limits with a budget only what others give it; " +
			"rld budget says why"
	case node.OwnerUnreachable:
		return "homes of strict keys do not answer: on_failure decides; rld status says which"
	case node.CircuitOpen:
		return "homes of strict keys are not asked, as they failed too often: on_failure decides at once; rld status says which"
	case node.CellsFull:
		return "a sliding_log has more hits than it can tell apart: some count longer than they should; " +
			"lower the limit or take sliding_window"
	}
	return "answers are less than exact"
}
