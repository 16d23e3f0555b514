package replica

import (
	"time"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/rules"
)

// countsOfPeriod is how often in a period of the demand the hits are counted
// that rules were asked for.
const countsOfPeriod = 10

// RightsLoop drives the rights agent of a process. After each input the driver
// calls Turn and carries out the agent.Ready that it returns: it sends the
// messages, stores the record and then calls Stored. Messages that depend on a
// record come after it, from Stored.
type RightsLoop struct {
	Agent *agent.Agent

	counted time.Duration // when the next count is due
}

// CountDue reports whether the driver must report the hits that rules were
// asked for to Agent.Demand, before the next Turn.
func (l *RightsLoop) CountDue(at time.Duration) bool {
	if at < l.counted {
		return false
	}
	l.counted = at + l.Agent.Period()/countsOfPeriod
	return true
}

// Turn runs the timers that are due and returns the work of the driver. See
// agent.Agent.Tick for clockOff, and node.ClockContradicted.
func (l *RightsLoop) Turn(at time.Duration, now hlc.Timestamp, clockOff bool) agent.Ready {
	l.Agent.Tick(at, now, clockOff)
	return l.ready(at)
}

// Stored notes that the disk holds the record of Store, or the error of the
// write. It returns the next work of the driver.
func (l *RightsLoop) Stored(at time.Duration, err error) agent.Ready {
	if err != nil {
		l.Agent.Failed(err)
	} else {
		l.Agent.Stored()
	}
	return l.ready(at)
}

func (l *RightsLoop) ready(at time.Duration) agent.Ready {
	r := l.Agent.Ready(at)
	r.Wake = min(r.Wake, l.counted)
	return r
}

// RightsRules returns the rules of a set that have rights, as agents know them.
func RightsRules(set *rules.Set) []agent.Rule {
	var all []agent.Rule
	for _, r := range set.Rules() {
		if r.Limit == nil || !r.Limit.HasRights() {
			continue
		}
		window := time.Duration(r.Limit.Window()) * time.Millisecond
		all = append(all, agent.Rule{
			ID: r.Shared(), Pins: r.Limit.Weights, Lookback: 2*window + time.Minute, Window: window,
		})
	}
	return all
}
