package swarm

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// streamControl is the stream that the control log of a run is drawn from, so
// that all else of a run is the same with and without one.
const streamControl = uint64(1)<<62 + uint64(1)<<61

// streamRevoked is the stream that revocations are drawn from, for the same
// reason.
const streamRevoked = streamControl + 1

// control draws whether daemons have a control log, which most of the runs do,
// the founders, the daemons without a disk, the timers of voters, commands and
// recoveries at any time, and crashes between a write and its messages.
func (d *draw) control(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, streamControl))
	without := 0.35
	if d.large { // it takes long
		without = 0.8
	}
	if rng.Float64() < without {
		return
	}
	plain := d.Rand
	d.Rand = rng
	defer func() { d.Rand = plain }()
	c := &d.cfg
	x := &control.Config{}
	c.Control = x
	// An election must outlast some round trips.
	trip := 2 * max(c.Network.Across.Delay+4*c.Network.Across.Jitter, c.Network.Region.Delay+4*c.Network.Region.Jitter)
	x.Heartbeat = max(trip/4, d.wild(50*time.Millisecond, 400*time.Millisecond), affordable(d, 5)).Round(time.Millisecond)
	if least := affordable(d, 4); least > time.Second {
		x.Compare = least.Round(time.Millisecond)
	}
	least := 4 * max(x.Heartbeat/4, x.Compare, trip) // until then live daemons are silent
	if n := time.Duration(c.Daemons()); n > 20 {
		// Each second a daemon sends to one of the others. Where few of them
		// count as live, regions of one daemon hardly begin at the same time.
		least = max(least, 2*n*max(x.Compare, time.Second))
	}
	x.Stable = max(least/40, d.wild(100*time.Millisecond, 3*time.Second)).Round(time.Millisecond)
	x.ReplaceAfter = max(least, d.wild(time.Second, 10*time.Second)).Round(time.Millisecond)
	x.RemoveAfter = max(least, d.wild(time.Second, 10*time.Second)).Round(time.Millisecond)
	maybe(d, 0.4, &x.Entries, d.between, 1, 20)
	founders := 0
	for _, r := range c.Regions {
		for i := range r.Daemons {
			switch name := r.Daemon(i); {
			case founders < 5 && (i == 0 || d.chance(0.2)):
				x.Founders, founders = append(x.Founders, name), founders+1
			case d.chance(0.3):
				c.Diskless = append(c.Diskless, name)
			}
		}
	}
	for range d.between(0, 6) {
		f := sim.Fault{Kind: sim.ControlCommand, At: d.time(0, c.Duration-1)}
		if d.chance(0.3) {
			places := c.Places()
			f.From = []string{places[d.IntN(len(places))]}
		}
		if d.chance(0.1) {
			f.Share = 100 * rules.Percent
		}
		c.Faults = append(c.Faults, f)
	}
	d.forgetful()
	drawCopies(d)
	drawMisuses(d)
	drawPods(d)
	drawSituations(d)
	drawVersions(d)
	d.Rand = rand.New(rand.NewPCG(seed, streamRevoked))
	drawRevoked(d)
}

// drawRevoked draws daemons that an operator revokes, and accepts again, some
// of them while they restart. Most are no founders: without a majority of the
// voters the command is refused. Beside regions that stay broken there may be
// none to accept them again.
func drawRevoked(d *draw) {
	c := &d.cfg
	if !d.chance(0.25) || d.long || len(c.Outside) > 0 || c.Daemons() == 1 {
		return
	}
	f := sim.Fault{Kind: sim.Revoke, At: early(d)}
	for range d.between(1, 2) {
		f.From, f.For = nil, d.time(2*time.Second, 25*time.Second)
		if r := regionOf(d, 2); r != nil && d.chance(0.8) {
			f.From = []string{r.Daemon(d.between(1, r.Daemons-1))}
		} else {
			f.From = founderOf(d)
		}
		add(d, f)
		lengthen(d, f.At+f.For)
		if d.chance(0.5) {
			kind := []sim.FaultKind{sim.Crash, sim.Leave}[d.IntN(2)]
			add(d, sim.Fault{Kind: kind, At: f.At + d.time(0, f.For), For: d.wild(10*time.Millisecond, 2*time.Second), From: f.From, Rename: d.chance(0.2)})
		}
		f.At += d.time(0, f.For)
	}
	if x := c.Control; c.Settle > 0 { // the operator may have to recover the log
		c.Settle += 200*x.Heartbeat + x.Stable + x.ReplaceAfter + 10*x.Compare + time.Minute
	}
}

// drawVersions draws a rolling upgrade to a version that reads a later format
// of the record. Now and then a daemon is down until the format is raised, or
// goes back to the former version, before the raise or after it.
func drawVersions(d *draw) {
	c := &d.cfg
	if !d.chance(0.25) {
		return
	}
	c.Duration = max(c.Duration, 25*time.Second)
	c.Control.FormatAfter = d.wild(100*time.Millisecond, 4*time.Second).Round(time.Millisecond)
	f := sim.Fault{Kind: sim.Upgrade, At: d.time(0, c.Duration/8), For: d.wild(100*time.Millisecond, time.Second)}
	late, back := -1, -1
	if d.chance(0.5) {
		late = d.IntN(c.Daemons())
	}
	if d.chance(0.5) {
		back = d.IntN(c.Daemons())
	}
	every, i := d.wild(time.Millisecond, 2*time.Second), 0
	for _, r := range c.Regions {
		for _, f.From = range slices.Collect(slices.Chunk(namesOf(&r, 0), 1)) {
			one := f
			if i == late {
				one.Kind, one.For = sim.Crash, d.time(c.Duration/2, c.Duration)
			}
			add(d, one)
			if i == back {
				one.Kind, one.At, one.For = sim.Downgrade, one.At+f.For+d.time(time.Second, c.Duration/2), f.For
				add(d, one)
				one.Kind, one.At = sim.Upgrade, one.At+f.For+d.time(time.Second, c.Duration/4)
				add(d, one)
			}
			f.At += every
			i++
		}
	}
}

// controlEvents is about how many events of one kind of timer the control log
// makes during a run, and controlInterval the longest interval.
const (
	controlEvents   = 15_000
	controlInterval = time.Minute
)

// affordable returns the least interval of something that makes a number of
// events at each daemon.
func affordable(d *draw, events int) time.Duration {
	c := &d.cfg
	return min(c.Duration*time.Duration(events*c.Daemons())/controlEvents, controlInterval)
}

// drawPods draws what becomes of diskless daemons in Kubernetes: all of them,
// or those of a region, are replaced at once or one after the other, some under
// other names. They need a horizon.
func drawPods(d *draw) {
	c := &d.cfg
	if len(c.Diskless) == 0 {
		return
	}
	if d.rights && c.Rights.DaemonHorizon <= 0 {
		c.Rights.DaemonHorizon = d.wild(time.Second, 30*time.Second)
	}
	if !d.chance(0.6) {
		return
	}
	pods := slices.Clone(c.Diskless)
	if region := c.Regions[d.IntN(len(c.Regions))]; d.chance(0.5) {
		all := make([]string, region.Daemons)
		for i := range all {
			all[i] = region.Daemon(i)
		}
		pods = slices.DeleteFunc(pods, func(p string) bool { return !slices.Contains(all, p) })
	}
	f := sim.Fault{Kind: sim.Crash, At: d.time(0, c.Duration-1), For: d.wild(time.Millisecond, 5*time.Second), Rename: d.chance(0.5)}
	if len(pods) == 0 {
		return
	}
	if d.chance(0.6) {
		f.From = pods
		c.Faults = append(c.Faults, f)
		return
	}
	f.Kind = sim.Leave
	for i := range pods {
		f.From = pods[i : i+1]
		c.Faults = append(c.Faults, f)
		f.At = min(f.At+d.wild(time.Millisecond, 3*time.Second), c.Duration-1)
	}
}

// drawMisuses draws what operators must not do to a machine, and what the
// control log makes harmless to rights: a process with a wrong clock, a file
// that is cut, and a machine with a copy of the disk of another one. Voters of
// strict keys do not know old journals yet.
func drawMisuses(d *draw) {
	c := &d.cfg
	copied := slices.ContainsFunc(c.Faults, func(f sim.Fault) bool { return f.Kind == sim.CopiedControl })
	if copied || !d.chance(0.4) {
		return
	}
	kinds := []sim.FaultKind{sim.WrongClock}
	if !d.strict {
		kinds = append(kinds, sim.TruncatedFile, sim.ClonedDisk)
	}
	f := d.fault(kinds[d.IntN(len(kinds))])
	r := c.Regions[d.IntN(len(c.Regions))]
	switch {
	case f.Kind != sim.ClonedDisk:
	case r.Daemons == 1:
		return
	default:
		of := d.Perm(r.Daemons)
		f.From, f.To = []string{r.Daemon(of[0])}, []string{r.Daemon(of[1])}
	}
	c.Faults = append(c.Faults, f)
}

// drawCopies draws one control log that becomes older than it was, or that
// another daemon gets, too: what two old ones forget, nobody may know.
func drawCopies(d *draw) {
	c := &d.cfg
	if !d.chance(0.4) {
		return
	}
	var all []string
	var region [][]string // that of each of all
	for _, r := range c.Regions {
		var names []string
		for i := range r.Daemons {
			names = append(names, r.Daemon(i))
		}
		for range names {
			region = append(region, names)
		}
		all = append(all, names...)
	}
	f := sim.Fault{Kind: sim.CopiedControl, At: d.time(0, c.Duration-1), For: d.wild(time.Millisecond, c.Duration)}
	of := d.IntN(len(all))
	f.From = all[of : of+1]
	// Nobody can notice the copy of a voter in a region that a partition
	// separates from its own: both vote.
	if near := region[of]; len(near) > 1 && d.chance(0.6) {
		i := slices.Index(near, all[of])
		f.To = []string{near[(i+1+d.IntN(len(near)-1))%len(near)]}
		c.Faults = append(c.Faults, f)
		return
	}
	if d.chance(0.5) {
		f.At, f.For, f.From = early(d), d.time(time.Second, 4*time.Second), founderOf(d)
		commandsBeside(d, f.At, f.For)
	}
	c.Faults = append(c.Faults, f)
}

// forgetful draws processes that crash while they write the control log, or
// right after, some of them with slow disks.
func (d *draw) forgetful() {
	c := &d.cfg
	if !d.chance(0.5) {
		return
	}
	if d.chance(0.5) {
		c.Faults = append(c.Faults, sim.Fault{Kind: sim.SlowDisk, Delay: d.wild(10*time.Millisecond, time.Second)})
	}
	for range d.between(2, 10) {
		f := sim.Fault{
			Kind: []sim.FaultKind{sim.Crash, sim.PowerLoss}[d.IntN(2)], At: d.time(0, c.Duration/2), For: d.wild(time.Millisecond, 500*time.Millisecond),
		}
		d.aim(&f, []string{"writing_control", "stored_control"}[d.IntN(2)])
		f.When.Count = int(d.wild(1, 20))
		c.Faults = append(c.Faults, f)
	}
}
