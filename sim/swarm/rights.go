package swarm

import (
	"fmt"
	"time"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
)

// budgets draws whether rules have rights, which half of the runs do, and how
// daemons share them out. Such runs are longer, so that epochs come and go, and
// their links worse: up to 40 % of the frames are lost, and a frame may take as
// long as a window.
func (d *draw) budgets() {
	if !d.chance(0.5) {
		return
	}
	c := &d.cfg
	d.rights = true
	d.readmits = !d.long && !d.large && d.chance(0.12)
	if d.chance(0.5) {
		c.Policy = sim.Partitioned
	}
	maybe(d, 0.3, &c.Duration, d.time, 8*time.Second, 25*time.Second)
	r := &c.Rights
	r.Period = 5 * time.Second
	r.DaemonHorizon = d.wild(time.Second, 30*time.Second)
	if d.chance(0.3) {
		r.DaemonHorizon = 0
	}
	r.Ahead = d.time(time.Second, 5*time.Second)
	if d.chance(0.5) {
		r.Interval, r.WANInterval = d.time(20*time.Millisecond, time.Second), d.time(50*time.Millisecond, 2*time.Second)
	}
	for _, l := range []*sim.Link{&c.Network.Region, &c.Network.Across} {
		if d.chance(0.3) {
			l.Loss = share(0.4 * d.Float64())
		}
	}
	maybe(d, 0.3, &c.Network.Across.Delay, d.time, time.Second, 6*time.Second)
}

// streamFailures is the stream of what limits answer without rights.
const streamFailures = streamFeatures + 4

// openly lets some limits with rights admit hits without them.
func openly(d *draw, f []string) []string {
	if d.failures.Float64() < 0.2 {
		f = append(f, "on_failure: allow")
	}
	return f
}

// rightsOf draws what rights a limit of a scope has.
func (d *draw) rightsOf(scope string) []string {
	var f []string
	switch {
	case d.chance(0.2):
		return nil
	case d.chance(0.25):
		f = append(f, "consistency: partition")
	default:
		budgets := []int{0, 1, 10, 10, 10, 50, 100, 300}
		b := budgets[d.IntN(len(budgets))]
		if n := len(d.cfg.Regions); d.strict && n > 1 { // more would be refused where regions are known
			b = min(b, 100*(n-1))
		}
		f = append(f, fmt.Sprintf("overage_budget: %d%%", b))
	}
	if scope == "global" && d.chance(0.1) {
		f = append(f, "weights: {"+d.pins()+"}")
	}
	return openly(d, f)
}

// pins draws the shares of all regions.
func (d *draw) pins() string {
	text, left := "", 100
	last := len(d.cfg.Regions) - 1
	for _, r := range d.cfg.Regions[:last] {
		share := d.between(0, left)
		text += fmt.Sprintf("%s: %d%%, ", r.Name, share)
		left -= share
	}
	text += fmt.Sprintf("%s: %d%%", d.cfg.Regions[last].Name, left)
	return text
}

// rightsFaults draws what goes wrong with the records of rights.
func (d *draw) rightsFaults() {
	if d.rights && d.chance(0.3) {
		d.storageFaults(d.cfg.Regions[d.IntN(len(d.cfg.Regions))], d.time(0, d.cfg.Duration-1))
	}
}

// Naively plays the swarm run of a seed under the naive policy, audited for how
// often it exceeds the sum of all rights. The result is nil when the run has no
// limit with rights.
func Naively(seed uint64) (*sim.Result, error) {
	cfg := Draw(seed, false)
	cfg.Policy = sim.Naive // the same cluster, load and faults under another gate
	if !cfg.HasRights() {
		return nil, nil
	}
	cfg.Settle = 0
	return sim.Run(cfg, sim.Options{Auditors: audit.Only("admitted")})
}
