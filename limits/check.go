package limits

import (
	"fmt"

	"github.com/georld/rld/rules"
)

// Check returns an error for a limit whose amounts no file may have. Overrides
// change amounts without a file.
func Check(l *rules.Limit, o Options) error {
	b := builder{options: &o, out: l}
	shared := o.Replicated && l.Consistency != rules.Strict && l.Scope != rules.NodeLocal
	switch most := b.mostBudget(); {
	case l.Algorithm == rules.SlidingLog && l.Requests > MaxLogHits:
		return fmt.Errorf("%d requests with sliding_log: want at most %d", l.Requests, MaxLogHits)
	case l.Algorithm == rules.SlidingLog && shared && l.Requests > MaxSharedLogHits:
		return fmt.Errorf("%d requests with sliding_log, whose hits go to all daemons: want at most %d", l.Requests, MaxSharedLogHits)
	case l.HasBudget && l.Consistency == rules.Eventual && l.Budget > most:
		return fmt.Errorf("an overage_budget of %v: want at most %v", l.Budget, most)
	}
	return nil
}
