package swarm

import (
	"slices"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// situation is a draw, and how often it is taken, relative to the others.
type situation struct {
	weight int
	draw   func(d *draw)
}

// situations draw faults that seldom meet by themselves, so that each of
// sim.Situations takes effect in enough runs. A draw that does not fit the run
// adds nothing.
var situations = []situation{
	{2, drawPausedVoter},
	{1, drawCutVoter},
	{2, drawCommands},
	{3, drawLimits},
	{2, drawRegions},
	{2, drawLivingRemoval},
	{2, drawRecoveries},
	{2, drawBothSides},
	{2, drawOverruled},
	{2, drawFilesBack},
	{2, drawFarClock},
	{1, drawEviction},
	{2, drawRoll},
	{1, drawSurge},
	{2, drawScaling},
	{1, drawDisklessDown},
	{3, drawOldLog},
	{1, drawCloneOfLastRun},
	{1, drawFailingLog},
	{1, drawLateFounding},
	{1, drawRemoval},
	{3, drawGeneration},
	{2, drawKeys},
	{5, drawResume},
	{8, drawLostVoters}, // it fits few runs
}

// drawSituations draws one or two of the situations in most runs with a control
// log.
func drawSituations(d *draw) {
	all := 0
	for i := range situations {
		all += situations[i].weight
	}
	for range 2 {
		if !d.chance(0.8) {
			continue
		}
		n := d.IntN(all)
		i := slices.IndexFunc(situations, func(s situation) bool { n -= s.weight; return n < 0 })
		situations[i].draw(d)
	}
}

// lengthen lets a run last until a time, if it is not long anyway.
func lengthen(d *draw, until time.Duration) {
	if !d.long {
		d.cfg.Duration = max(d.cfg.Duration, until)
	}
}

// add adds faults to the run.
func add(d *draw, all ...sim.Fault) {
	for _, f := range all {
		if f.At < d.cfg.Duration {
			d.cfg.Faults = append(d.cfg.Faults, f)
		}
	}
}

// early draws a time of the first half of a run, in which the cluster has begun
// most of the time.
func early(d *draw) time.Duration {
	begun := 10*d.cfg.Network.Across.Delay + 10*d.cfg.Control.Heartbeat
	lengthen(d, 2*begun)
	return d.time(min(begun, d.cfg.Duration/4), d.cfg.Duration/2)
}

// founderOf draws a founder, which votes at first.
func founderOf(d *draw) []string {
	all := d.cfg.Founders()
	i := d.IntN(len(all))
	return all[i : i+1 : i+1]
}

// regionOf draws a region with some daemons, nil for none.
func regionOf(d *draw, least int) *sim.Region {
	c := &d.cfg
	for _, i := range d.Perm(len(c.Regions)) {
		if c.Regions[i].Daemons >= least {
			return &c.Regions[i]
		}
	}
	return nil
}

// namesOf returns the daemons of a region from the first on.
func namesOf(r *sim.Region, first int) []string {
	var all []string
	for i := first; i < r.Daemons; i++ {
		all = append(all, r.Daemon(i))
	}
	return all
}

func drawPausedVoter(d *draw) {
	x := d.cfg.Control
	f := sim.Fault{Kind: sim.Pause, At: early(d), For: d.time(12*x.Heartbeat, 25*x.Heartbeat), From: founderOf(d)}
	add(d, f)
	lengthen(d, f.At+f.For)
}

func drawCutVoter(d *draw) {
	f := sim.Fault{Kind: sim.Cut, At: early(d), For: d.time(time.Second, 8*time.Second), OneWay: true, From: founderOf(d)}
	if d.chance(0.5) {
		f.From, f.To = nil, f.From
	}
	add(d, f)
}

// drawCommands draws many commands in a short time.
func drawCommands(d *draw) {
	at, length := early(d), d.wild(100*time.Millisecond, 5*time.Second)
	for range d.between(10, 25) {
		add(d, sim.Fault{Kind: sim.ControlCommand, At: at + d.time(0, length)})
	}
}

// drawChain draws commands of some kinds that an operator gives one after the
// other.
func drawChain(d *draw, least, most int, kinds ...string) {
	f := sim.Fault{Kind: sim.ControlCommand, At: early(d)}
	calmDown(d)
	if d.chance(0.3) {
		f.From = founderOf(d)
	}
	gap := d.wild(300*time.Millisecond, 2*time.Second) + 4*d.cfg.Network.Across.Delay
	for range d.between(least, most) {
		f.Command = kinds[d.IntN(len(kinds))]
		lengthen(d, f.At+time.Second)
		add(d, f)
		f.At += gap
	}
}

// drawLimits draws changes of the limits that build on each other.
func drawLimits(d *draw) {
	drawChain(d, 7, 10, "apply", "rollback", "rollback", "set", "unset", "unset")
}

// drawKeys draws commands about keys, and files that become the rules.
func drawKeys(d *draw) { drawChain(d, 5, 8, "block", "unblock", "unblock", "reset", "reset", "adopt") }

// drawResume draws a region that restarts while it is cut off, and an operator
// who states that it was not removed.
func drawResume(d *draw) {
	r, lost := regionOf(d, 1), 60*d.cfg.Control.Heartbeat
	if r == nil || lost > 12*time.Second || len(d.cfg.Regions) == 1 {
		return
	}
	cut := sim.Fault{Kind: sim.Cut, From: []string{r.Name}, For: 5*lost + 2*time.Second}
	cut.When.Event, cut.When.Count = "control_begun", 1
	cut.When.After = 500*time.Millisecond + d.time(0, 2*time.Second)
	down := cut
	down.Kind, down.For = sim.Crash, d.time(50*time.Millisecond, time.Second)
	down.When.After += d.time(0, 500*time.Millisecond)
	resume := cut
	resume.Kind, resume.Command, resume.For = sim.ControlCommand, "resume", 0
	resume.When.After = down.When.After + down.For + lost
	lengthen(d, 4*time.Second+6*lost)
	add(d, cut, down)
	for range 8 {
		add(d, resume)
		resume.When.After += d.time(0, lost)
	}
}

// drawRegions draws changes of the regions.
func drawRegions(d *draw) { drawChain(d, 4, 7, "weigh", "weigh", "drain", "drain", "add", "remove") }

// drawLivingRemoval draws an operator who errs about which regions are stopped.
func drawLivingRemoval(d *draw) { drawChain(d, 3, 6, "remove") }

// drawOverruled draws recoveries while a layout is announced, and not active
// yet.
func drawOverruled(d *draw) {
	if !d.strict {
		return
	}
	f := sim.Fault{Kind: sim.ControlCommand, Share: 100 * rules.Percent}
	for range d.between(1, 3) {
		f.When.Event, f.When.Count, f.When.After = "layout_announced", d.between(1, 8), d.wild(100*time.Microsecond, 200*time.Millisecond)
		f.When.Where = nil
		if d.chance(0.5) {
			f.When.Where = founderOf(d)
		}
		add(d, f)
	}
	if d.chance(0.5) {
		add(d, sim.Fault{Kind: sim.LayoutChange, At: early(d)})
	}
}

// commandsBeside draws commands while others go on.
func commandsBeside(d *draw, at, length time.Duration) {
	for range d.between(3, 8) {
		add(d, sim.Fault{Kind: sim.ControlCommand, At: at + d.time(0, length)})
	}
}

// drawRecoveries draws recoveries at a daemon that missed commands, once or
// twice.
func drawRecoveries(d *draw) {
	at, length := early(d), d.time(time.Second, 3*time.Second)
	behind := founderOf(d)
	add(d, sim.Fault{Kind: sim.Cut, At: at, For: length, From: behind})
	commandsBeside(d, at, length)
	f := sim.Fault{Kind: sim.ControlCommand, At: at + length - d.time(0, length/8), From: behind, Share: 100 * rules.Percent}
	add(d, f)
	if d.chance(0.7) {
		if f.At += d.time(0, 3*time.Second); d.chance(0.5) {
			f.From = founderOf(d)
		}
		add(d, f)
	}
}

// drawBothSides draws a recovery on either side of a cut.
func drawBothSides(d *draw) {
	all := d.cfg.Founders()
	if len(all) < 2 {
		return
	}
	at, length := early(d), d.time(500*time.Millisecond, 3*time.Second)
	of := d.Perm(len(all))
	for _, i := range of[:2] {
		add(d, sim.Fault{Kind: sim.ControlCommand, At: at + length/2 + d.time(0, length/4), From: all[i : i+1], Share: 100 * rules.Percent})
	}
	add(d, sim.Fault{Kind: sim.Cut, At: at, For: length, From: all[of[0] : of[0]+1]})
}

// drawFilesBack draws files that change, and change back.
func drawFilesBack(d *draw) {
	c := &d.cfg
	forth := d.fault(sim.NewRules)
	forth.From, forth.At, forth.For = nil, early(d), d.wild(time.Millisecond, time.Second)
	back := forth
	back.Rules, back.Limits = c.Rules, c.Limits
	for range d.between(1, 3) {
		back.At = forth.At + forth.For + d.time(0, c.Duration/8)
		add(d, forth, back)
		forth.At = back.At + back.For + d.time(0, c.Duration/8)
	}
}

func drawFarClock(d *draw) {
	f := sim.Fault{Kind: sim.ClockStep, At: early(d), For: d.time(time.Second, 5*time.Second), From: founderOf(d), Offset: d.time(time.Hour, 3*time.Hour)}
	if d.chance(0.5) {
		f.Offset = -f.Offset
	}
	add(d, f)
}

// drawEviction draws that all pods of a region leave at once.
func drawEviction(d *draw) {
	if r := regionOf(d, 2); r != nil {
		add(d, sim.Fault{
			Kind: sim.Leave, At: early(d), For: d.time(time.Second, 6*time.Second), From: []string{r.Name}, Rename: d.chance(0.4),
		})
	}
}

// drawRoll draws that the pods of a region are replaced, one after the other.
func drawRoll(d *draw) {
	r := regionOf(d, 2)
	if r == nil {
		return
	}
	f := sim.Fault{Kind: sim.Leave, At: early(d), For: d.time(500*time.Millisecond, 2*time.Second), Rename: d.chance(0.5)}
	for _, name := range namesOf(r, 0) {
		f.From = []string{name}
		add(d, f)
		f.At += 2*f.For + time.Second
	}
	d.cfg.Duration = max(d.cfg.Duration, f.At)
}

// drawSurge draws that new pods come at once beside others.
func drawSurge(d *draw) {
	if r := regionOf(d, 3); r != nil {
		add(d, sim.Fault{
			Kind: sim.Leave, At: early(d), For: d.time(time.Second, 4*time.Second), From: namesOf(r, 1), Rename: true,
		})
	}
}

// drawScaling draws that a region of ten daemons is scaled to three and back,
// and to three again.
func drawScaling(d *draw) {
	c := &d.cfg
	if d.long || c.Daemons() > 8 {
		return
	}
	r := &c.Regions[d.IntN(len(c.Regions))]
	r.Daemons = 10
	for i := range c.Workloads {
		c.Workloads[i].Rate = min(c.Workloads[i].Rate, 40)
	}
	f := sim.Fault{Kind: sim.Leave, At: d.time(0, 2*time.Second), For: d.time(4*time.Second, 6*time.Second), From: namesOf(r, 3), Rename: d.chance(0.4)}
	again := f
	again.At += f.For + d.time(4*time.Second, 6*time.Second)
	c.Duration = max(c.Duration, again.At+again.For)
	add(d, f, again)
}

// drawDisklessDown draws that all diskless daemons die at once.
func drawDisklessDown(d *draw) {
	c := &d.cfg
	for _, r := range c.Regions {
		for _, name := range namesOf(&r, 1) {
			if len(c.Diskless) < 4 && !slices.Contains(c.Control.Founders, name) && !slices.Contains(c.Diskless, name) {
				c.Diskless = append(c.Diskless, name)
			}
		}
	}
	if len(c.Diskless) > 1 {
		add(d, sim.Fault{
			Kind: sim.Crash, At: early(d), For: d.time(100*time.Millisecond, 4*time.Second), From: slices.Clone(c.Diskless), Rename: d.chance(0.7),
		})
	}
}

// misused reports whether a control log is copied or cut already: what two old
// ones forget, nobody may know.
func misused(d *draw) bool {
	return slices.ContainsFunc(d.cfg.Faults, func(f sim.Fault) bool { return misuses(&f) })
}

func misuses(f *sim.Fault) bool {
	switch f.Kind {
	case sim.CopiedControl, sim.ClonedDisk, sim.TruncatedFile, sim.BitFlip, sim.Amnesia, sim.LostVoters:
		return true
	default:
		return false
	}
}

// drawOldLog draws a log that is put back after commands.
func drawOldLog(d *draw) {
	if misused(d) {
		return
	}
	f := sim.Fault{Kind: sim.CopiedControl, At: early(d), For: d.time(time.Second, 4*time.Second), From: founderOf(d)}
	add(d, f)
	commandsBeside(d, f.At, f.For)
}

// drawCloneOfLastRun draws a log that another daemon gets after its own one has
// restarted.
func drawCloneOfLastRun(d *draw) {
	r := regionOf(d, 2)
	if misused(d) || r == nil {
		return
	}
	of := d.Perm(r.Daemons)
	f := sim.Fault{Kind: sim.CopiedControl, At: early(d), For: d.time(2*time.Second, 4*time.Second)}
	f.From, f.To = []string{r.Daemon(of[0])}, []string{r.Daemon(of[1])}
	add(d, f, sim.Fault{Kind: sim.Crash, At: f.At + f.For/4, For: f.For / 4, From: f.From})
}

// drawFailingLog draws commands while the disk of a voter fails.
func drawFailingLog(d *draw) {
	f := sim.Fault{Kind: sim.FullDisk, At: early(d), For: d.time(500*time.Millisecond, 4*time.Second), From: founderOf(d)}
	if d.chance(0.3) {
		f.Kind = sim.SyncErrors
	}
	add(d, f)
	commandsBeside(d, f.At, f.For)
}

// drawLateFounding draws a cluster that begins under load, and founders that
// crash as they store the founding.
func drawLateFounding(d *draw) {
	c := &d.cfg
	c.Begin = d.wild(time.Millisecond, c.Duration/3)
	for range d.between(1, 3) {
		f := sim.Fault{Kind: sim.Crash, From: founderOf(d), For: d.wild(10*time.Millisecond, 4*time.Second)}
		f.When.Event, f.When.Count, f.When.Where = "writing_control", d.between(1, 6), f.From
		add(d, f)
	}
}

// removed sets when a fault that removes begins and ends, so that the operator
// has the time to.
func removed(d *draw, f *sim.Fault) {
	x := d.cfg.Control
	calmDown(d)
	if !d.long { // the statement must arrive before it is old
		least := 4 * (d.cfg.Network.Across.Delay + d.cfg.Network.Across.Jitter)
		x.RemoveAfter = least + d.time(500*time.Millisecond, 2*time.Second).Round(time.Millisecond)
	}
	f.At = early(d)
	f.For = x.RemoveAfter + 25*x.Heartbeat + d.time(2*time.Second, 6*time.Second)
	lengthen(d, f.At+f.For+5*time.Second)
}

// calmDown drops half of the faults that were drawn before, and all that set
// clocks apart: what an operator states is old at once then.
func calmDown(d *draw) {
	d.cfg.Faults = slices.DeleteFunc(d.cfg.Faults, func(f sim.Fault) bool {
		return f.Kind == sim.ClockStep || f.Kind == sim.WrongClock || d.chance(0.5)
	})
}

// drawLostVoters draws a region whose daemons lose their disks once there are
// strict voters, and whose strict voters the operator gives up.
func drawLostVoters(d *draw) {
	c := &d.cfg
	if !d.strict || len(c.Regions) < 3 {
		return
	}
	c.Faults = slices.DeleteFunc(c.Faults, func(f sim.Fault) bool { return misuses(&f) })
	f := sim.Fault{Kind: sim.LostVoters, From: []string{c.Regions[d.IntN(len(c.Regions))].Name}}
	removed(d, &f)
	f.When.Event, f.When.Count, f.When.After = "layout_announced", 1, d.time(time.Second, 6*time.Second)
	add(d, f)
	lengthen(d, 2*f.At+f.For+10*time.Second)
}

// drawRemoval draws a daemon that is stopped and removed from the record.
func drawRemoval(d *draw) {
	if r := regionOf(d, 3); r != nil {
		f := sim.Fault{Kind: sim.RemoveDaemon, From: []string{r.Daemon(d.IntN(r.Daemons))}}
		removed(d, &f)
		add(d, f)
	}
}

// drawGeneration draws a region that is removed and added again, where a
// majority of the regions is left. Another region may be cut off then.
func drawGeneration(d *draw) {
	c := &d.cfg
	if len(c.Regions) < 3 {
		return
	}
	of := d.Perm(len(c.Regions))
	f := sim.Fault{Kind: sim.RemoveRegion, From: []string{c.Regions[of[0]].Name}}
	removed(d, &f)
	add(d, f)
	if d.chance(0.3) {
		add(d, sim.Fault{Kind: sim.Cut, At: f.At + f.For, For: d.time(time.Second, 8*time.Second), From: []string{c.Regions[of[1]].Name}})
	}
}
