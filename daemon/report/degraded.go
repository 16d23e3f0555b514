package report

import (
	"fmt"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
)

// degradedQuiet is how long no decision may be degraded for a degradation to
// end.
const degradedQuiet = 10 * time.Second

// degradedLog follows the degradations, by reason.
type degradedLog [len(node.Stats{}.Degraded)]struct {
	counted uint64        // at the last sample
	before  uint64        // when the degradation began
	grew    time.Duration // when the count last grew
	since   time.Time     // when the degradation began; zero if there is none
}

// sampleDegraded follows the degradations, and logs once when one begins and
// once when it ends.
func (r *Report) sampleDegraded() node.Stats {
	stats, at := r.Engine.Stats(), r.Engine.Now().Mono
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reason := range node.DegradedReasons() {
		n, d := stats.Degraded[reason], &r.degraded[reason]
		switch {
		case n != d.counted && d.since.IsZero():
			d.since, d.before, d.grew = r.Wall().UTC(), d.counted, at
			r.Log.Warn(r.degradation(reason, stats), "reason", reason.String())
		case n != d.counted:
			d.grew = at
		case !d.since.IsZero() && at-d.grew >= degradedQuiet:
			d.since = time.Time{}
			if reason == node.KeysFull {
				r.keysFull = r.countKeysFull()
			}
			r.Log.Info("decisions are exact again", "reason", reason.String(), "degraded", n-d.before)
		}
		d.counted = n
	}
	return stats
}

// degradations returns the current degradations.
func (r *Report) degradations() []api.DegradedState {
	stats := r.sampleDegraded()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []api.DegradedState
	for _, reason := range node.DegradedReasons() {
		if d := &r.degraded[reason]; !d.since.IsZero() {
			out = append(out, api.DegradedState{
				Reason: reason.String(), Since: new(d.since), Answers: d.counted - d.before, Text: r.degradation(reason, stats),
			})
		}
	}
	return out
}

// degradation describes a reason and the remedy, as far as this daemon knows.
func (r *Report) degradation(reason node.Degraded, s node.Stats) string {
	if reason == node.KeysFull {
		return r.keysFullText(s)
	}
	if r.Rights == nil || reason != node.NoRights && reason != node.NoCluster {
		return degradation(reason, s)
	}
	is := r.Rights.Status()
	why := r.Rights.WhyNot(is.Reason)
	if reason == node.NoRights && is.Holds && is.Since > 0 {
		return fmt.Sprintf("this daemon has no allotment in windows that began before %s: an earlier run or a former cluster may have "+
			"used them; limits with a budget admit only transferred rights in these, unless on_failure allows more", time.UnixMilli(is.Since).UTC().Format(time.RFC3339))
	}
	if is.Holds || reason == node.NoCluster && why == is.Reason.String() {
		return degradation(reason, s)
	}
	return "this daemon has no allotment, and for limits with a budget it admits only transferred rights, unless on_failure allows more: " + why
}

// degradation describes a reason and the remedy.
func degradation(reason node.Degraded, s node.Stats) string {
	switch reason {
	case node.Alone:
		return "all peers refuse this daemon, so it counts alone and is not ready; /readyz?verbose gives the reason"
	case node.NoRights:
		return "this daemon has no allotment: for limits with a budget it admits only transferred rights, unless on_failure allows more; " +
			"rld budget gives the reason"
	case node.NoCluster:
		return "the cluster has not begun, or it has not the region of this daemon: rld cluster init, or rld region add; " +
			"until then on_failure decides for limits that need rights"
	case node.OwnerUnreachable:
		return "owners of strict keys do not answer: on_failure applies; rld status lists them"
	case node.CircuitOpen:
		return "circuit breakers to owners of strict keys are open: on_failure applies at once; rld status lists them"
	case node.CellsFull:
		return "a sliding_log has more hits than it can tell apart: some count longer than they should; " +
			"lower the limit or use sliding_window"
	}
	return "decisions are degraded"
}
