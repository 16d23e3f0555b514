package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
)

// leaving is the end of a process that leaves.
type leaving struct {
	since     time.Duration
	departed  time.Duration // when its calls were finished, if departing
	departing bool
	departure replica.Departure
	over      bool
}

const (
	// lateCalls is how long calls still arrive at a process that leaves: those
	// that were on their way.
	lateCalls = 20 * time.Millisecond
	// maxDrain is how long such a process waits for its calls, as by default.
	maxDrain = 10 * time.Second
	// departEvery is the time between two looks at its links.
	departEvery = 20 * time.Millisecond
)

// accepts reports whether a process takes calls.
func (l *leaving) accepts(now time.Duration) bool { return l == nil || now < l.since+lateCalls }

// leave begins the end of a process: it gives up its share of the work and
// announces that.
func (a *faults) leave(w *World, _ *Fault, d *Daemon) {
	d.downs++
	if !d.Up || d.leaving != nil {
		return
	}
	d.leaving = &leaving{since: w.now}
	w.met.leaves(w, d)
	if w.traced(d) {
		w.lines.add(d, "leave", "process=%d", d.member)
	}
	at := d.Instant(w.now)
	for _, n := range d.Nodes {
		n.Leave(at)
	}
	if d.control != nil {
		d.control.Leave()
	}
	if d.agent != nil {
		d.agent.Agent.Leave()
	}
	w.auditors.stepped(d, nil, nil) // they read the clocks
	w.drain(d, allShards)
	w.membership.announce(w, d.member, w.cfg.Members.Join)
	w.events.push(w.now+lateCalls, evLeave, d.member)
}

// depart ends a process that leaves, once it has finished its calls and its
// peers have its counts.
func (w *World) depart(process int32) {
	d := w.daemons[w.membership.all[process].daemon]
	if !d.Up || d.member != process {
		return
	}
	l, acknowledged := d.leaving, false
	links := func(shard int) []node.Link { return slices.Collect(d.Nodes[shard].Links(d.Instant(w.now))) }
	switch at := d.Instant(w.now).Mono; {
	case d.Paused:
	case l.departing:
		l.over, acknowledged = l.departure.Over(at, links)
	case d.process == nil || d.process.Waiters.Len() == 0 || w.now-l.since >= maxDrain:
		l.departing, l.departed = true, w.now
		var rights replica.Rights
		if d.agent != nil {
			rights = d.agent.Agent
		}
		most := node.MaxLastTransfers
		for _, n := range d.Nodes {
			most -= n.TransferAll(d.Instant(w.now), most)
		}
		w.drain(d, allShards)
		l.departure = replica.Depart(at, len(d.Nodes), links, rights)
	}
	if d.agent != nil && d.Up && !d.Paused {
		d.turnAgent(w)
	}
	if !l.over {
		w.events.push(w.now+departEvery, evLeave, process)
		return
	}
	if acknowledged {
		w.auditors.left(d, l.departed)
	}
	handOn(d, w)
	w.crash(d)
	if d.downs == 0 {
		w.events.push(w.now, evStart, int32(d.Index))
	}
}

// command is a step of the operator, made every commandEvery until it returns
// true, maxAttempts times at most.
type command struct {
	step     func() bool
	attempts int
}

const (
	commandEvery = time.Second
	maxAttempts  = 300
)

// command makes the next step of a command.
func (a *faults) command(w *World, i int32) {
	c := a.commands.take(i)
	if c.attempts++; !c.step() && c.attempts < maxAttempts {
		w.events.push(w.now+commandEvery, evCommand, a.commands.put(c))
	}
}

// order has the operator begin a command.
func (a *faults) order(w *World, step func() bool) {
	w.events.push(w.now, evCommand, a.commands.put(&command{step: step}))
}

// removal is a command to remove a region, or daemons, that the operator stated
// to be stopped. They start again when its outcome is known: until then the
// statement is true.
type removal struct {
	change  func(d *Daemon) control.Change // as d would submit it
	targets []*Daemon
	name    revocation.Name // that it revokes instead, zero for none
	id      control.Number  // of a command without an outcome, 0 for none
	sent    time.Duration
	done    bool
}

// step submits the command again while it is refused and the fault is in force.
func (r *removal) step(w *World, active bool) bool {
	if r.id != 0 {
		for _, d := range w.daemons {
			if d.control == nil || d.control.Record() == nil {
				continue
			}
			if o := d.control.Record().Outcome(r.id); o != nil {
				r.id, r.done = 0, o.Refused == ""
				break
			}
		}
	}
	switch {
	case r.done || r.id == 0 && !active:
		return true
	case r.id == 0:
		r.submit(w)
	}
	return false
}

func (r *removal) submit(w *World) {
	if slices.ContainsFunc(r.targets, func(o *Daemon) bool { return o.Up }) {
		return
	}
	d := operated(w, func(o *Daemon) bool { return !slices.Contains(r.targets, o) && led(w, o) })
	if d == nil {
		return
	}
	change := r.change(d)
	if id, err := d.control.Submit(control.Request{Author: "operator", Change: change}); err == nil {
		r.id, r.sent = id, w.now
		w.met.ordered(w, d, id, change)
	}
	d.turnControl(w)
}

// led reports whether the leader that a daemon follows runs: a command without
// a leader would wait for one for ever.
func led(w *World, d *Daemon) bool {
	leader := d.control.Status().Leader
	return slices.ContainsFunc(w.daemons, func(o *Daemon) bool { return o.Up && o.control != nil && o.control.ID() == leader })
}

// operated draws a daemon that takes commands, nil for none.
func operated(w *World, fits func(*Daemon) bool) *Daemon {
	var able []*Daemon
	for _, d := range w.daemons {
		if d.Up && !d.Paused && d.leaving == nil && d.control != nil && fits(d) {
			able = append(able, d)
		}
	}
	if len(able) == 0 {
		return nil
	}
	w.acting = able[w.faults.rng.IntN(len(able))]
	return w.acting
}

// remove stops the daemons of fault i, or those of its regions, and has the
// operator remove them from the record, where there is one.
func (a *faults) remove(w *World, f *Fault, i int) {
	order := func(r *removal) {
		if w.cfg.Control == nil {
			return
		}
		a.removals[i] = append(a.removals[i], r)
		a.order(w, func() bool { return r.step(w, slices.Contains(a.active, i)) })
	}
	if f.Kind == RemoveDaemon {
		ofEach(func(_ *faults, _ *World, _ *Fault, d *Daemon) {
			var id control.ID
			if d.control != nil {
				id = d.control.ID()
			}
			a.crash(w, f, d)
			if id != (control.ID{}) {
				order(&removal{targets: []*Daemon{d}, change: func(*Daemon) control.Change {
					return control.Change{Dead: &control.DeadID{ID: id, Stopped: true}}
				}})
			}
		})(a, w, f, i)
		return
	}
	for _, region := range w.regionsOf(f) {
		local := w.local[region]
		if f.Kind == LostVoters {
			local = slices.DeleteFunc(slices.Clone(local), func(d *Daemon) bool { return !d.in(f.From) })
		}
		for _, d := range local {
			a.crash(w, f, d)
		}
		order(&removal{targets: local, change: func(d *Daemon) control.Change {
			if f.Kind == LostVoters {
				return giveUp(d.control.Record(), w.regions[region], local)
			}
			return control.Change{Region: &control.RegionChange{Op: control.RemoveRegion, Name: w.regions[region], Stopped: true}}
		}})
	}
}

// giveUp returns the recovery of a region whose strict voters among some
// daemons are lost.
func giveUp(r *control.Record, region string, lost []*Daemon) control.Change {
	c := &control.StrictRecovery{LostVoters: control.LostVoters{Region: region}}
	for _, d := range lost {
		if r != nil && r.Layouts.Active != nil && slices.Contains(r.Layouts.Active.VotersOf(region), d.Name) {
			c.Stopped = append(c.Stopped, d.Name)
		}
	}
	return control.Change{Layouts: &control.LayoutChange{Recover: c}}
}

// unremove starts what was stopped when the outcome of its removal is known,
// and has the operator add regions again.
func (a *faults) unremove(w *World, f *Fault, i int) {
	all := a.removals[i]
	delete(a.removals, i)
	a.order(w, func() bool {
		if slices.ContainsFunc(all, func(r *removal) bool { return r.id != 0 }) {
			return false
		}
		if f.Kind != RemoveRegion {
			ofEach((*faults).restart)(a, w, f, i)
			return true
		}
		for _, region := range w.regionsOf(f) {
			for _, d := range w.local[region] {
				a.restart(w, f, d)
			}
			if w.cfg.Control != nil {
				a.order(w, func() bool { return addRegion(w, region) })
			}
		}
		return true
	})
}

// addRegion has the operator add a region that the record lacks. It returns
// true when the record has it.
func addRegion(w *World, region int) bool {
	name := w.regions[region]
	d := operated(w, func(o *Daemon) bool { return o.control.Record() != nil })
	switch {
	case d == nil:
		return false
	case d.control.Record().Region(name) != nil:
		return true
	}
	ended := func(o *Daemon) bool {
		return !o.Up || o.control == nil || o.control.Record() == nil || o.control.Record().Region(name) == nil
	}
	change := control.Change{Region: &control.RegionChange{
		Op: control.AddRegion, Name: name, Weight: uint32(control.Whole / len(w.regions)), Force: true,
		Stopped: !slices.ContainsFunc(w.local[region], func(o *Daemon) bool { return !ended(o) }),
	}}
	if id, err := d.control.Submit(control.Request{Author: "operator", Change: change}); err == nil {
		w.met.ordered(w, d, id, change)
	}
	d.turnControl(w)
	return false
}

// firstRegions returns the regions of the founding, with the weights of the
// run: the operator leaves those out that have no daemon with a disk, or none
// that runs.
func firstRegions(w *World, without bool) []control.FirstRegion {
	weights := w.cfg.Rights.Weights
	if len(weights) == 0 || w.cfg.Policy == Static {
		weights = slices.Repeat([]uint64{1}, len(w.regions))
	}
	var out []control.FirstRegion
	sum, left := uint64(0), uint32(control.Whole)
	for i, name := range w.regions {
		if slices.ContainsFunc(w.local[i], func(d *Daemon) bool { return w.cfg.controlOf(d).Durable && (d.Up || !without) }) {
			out = append(out, control.FirstRegion{Name: name, Weight: uint32(weights[i])})
			sum += weights[i]
		}
	}
	for i := range out {
		// Without a disk in each region of a weight, the others share equally.
		if sum == 0 {
			out[i].Weight = control.Whole / uint32(len(out))
		} else {
			out[i].Weight = uint32(control.Whole * uint64(out[i].Weight) / sum)
		}
		left -= out[i].Weight
	}
	out[0].Weight += left
	return out
}

// regionsOf returns the numbers of the regions that a fault is in.
func (w *World) regionsOf(f *Fault) []int {
	var all []int
	for i, local := range w.local {
		if slices.ContainsFunc(local, func(d *Daemon) bool { return d.in(f.From) }) {
			all = append(all, i)
		}
	}
	return all
}

// heard reports whether all daemons run and are connected, so that those of a
// region count as live.
func heard(w *World, region string) bool {
	return slices.Contains(w.regions, region) && !slices.ContainsFunc(w.daemons, func(d *Daemon) bool {
		return d.Paused || d.leaving != nil || slices.ContainsFunc(w.daemons, func(o *Daemon) bool { return !w.Connected(d, o) })
	})
}

// The commands of a fault, in the order of Commands.
const (
	applies = iota
	rollsBack
	sets
	unsets
	blocks
	unblocks
	resets
	adopts
	adds
	weighs
	drains
	removes
	notes
	resumesRegion
)

// commandWords are their words.
var commandWords = []string{"apply", "rollback", "set", "unset", "block", "unblock", "reset", "adopt", "add", "weigh", "drain", "remove", "note", "resume"}

// Commands lists the words of Command.
func (*Fault) Commands() []string { return commandWords }

// change draws a command of a kind at a daemon, which has a record. Wild ones
// are refused most of the time. The others fit the record: where it lacks what
// the command is about, another command adds that.
func (a *faults) change(w *World, d *Daemon, kind int, wild bool) control.Change {
	l := &d.control.Record().Limits
	switch kind {
	case applies, adopts:
		if set, err := control.NewRuleSet(a.ruleFiles()); err == nil {
			return control.Change{Limits: &control.LimitsChange{Rules: &control.RulesChange{Set: set, Adopt: kind == adopts}}}
		}
	case rollsBack:
		v := control.Version{Index: uint64(a.rng.IntN(50))}
		if !wild {
			former := slices.DeleteFunc(slices.Clone(l.Applied), func(v control.RulesVersion) bool { return v.Set == l.Applied[len(l.Applied)-1].Set })
			if len(former) == 0 {
				return a.change(w, d, applies, wild)
			}
			v = former[a.rng.IntN(len(former))].Version
		}
		return control.Change{Limits: &control.LimitsChange{Rules: &control.RulesChange{Rollback: &v}}}
	case resets:
		o := &control.OverrideChange{}
		o.Target, _ = a.target(true)
		o.Reset = true
		return control.Change{Limits: &control.LimitsChange{Override: o}}
	case unblocks:
		blocked := slices.DeleteFunc(slices.Clone(l.Overrides), func(o control.Override) bool { return !o.Block || o.Ended != nil })
		if len(blocked) == 0 && !wild {
			return a.change(w, d, blocks, wild)
		}
		o := &control.OverrideChange{Unset: true}
		if o.Target, _ = a.target(true); len(blocked) > 0 {
			o.Key = blocked[a.rng.IntN(len(blocked))].Key
		}
		return control.Change{Limits: &control.LimitsChange{Override: o}}
	case sets, blocks, unsets:
		o := &control.OverrideChange{Unset: kind == unsets}
		o.For = int64(a.rng.IntN(30_000))
		o.Target, o.Setting = a.target(kind == blocks)
		switch n := len(l.Overrides); {
		case wild || kind == blocks:
		case len(l.Applied) == 0:
			return a.change(w, d, applies, wild)
		case kind == unsets && n == 0:
			return a.change(w, d, sets, wild)
		case kind == unsets:
			x := &l.Overrides[a.rng.IntN(n)]
			o.Target = control.Target{Domain: x.Domain, Rule: x.Rule, Key: x.Key}
		}
		if o.Key == "" && !o.Unset && a.rng.IntN(4) == 0 {
			o.Setting = control.Setting{Mode: []control.Mode{control.ModeShadow, control.ModeEnforce}[a.rng.IntN(2)]}
		}
		return control.Change{Limits: &control.LimitsChange{Override: o}}
	case adds, weighs, drains, removes:
		if c := a.changeRegion(w, d.control.Record(), kind, wild); c.Name != "" {
			return control.Change{Region: &c}
		}
	}
	n := a.rng.IntN(100)
	if n < 20 {
		op := []control.FormatOp{control.HoldFormat, control.UnholdFormat}[n%2]
		return control.Change{Format: &control.FormatChange{Op: op}}
	}
	return control.Change{Note: &control.Note{Text: fmt.Sprint("note ", n)}}
}

// changeRegion draws a change of a region, without a name for none that fits.
func (a *faults) changeRegion(w *World, r *control.Record, kind int, wild bool) control.RegionChange {
	c := control.RegionChange{
		Op:     []control.RegionOp{control.AddRegion, control.WeighRegion, control.DrainRegion, control.RemoveRegion}[kind-adds],
		Weight: uint32(a.rng.IntN(control.Whole)), Force: a.rng.IntN(2) == 0,
	}
	names := append(slices.Clone(w.regions), "new-1", "new-2")
	if !wild {
		names = slices.DeleteFunc(slices.Clone(w.regions), func(name string) bool { return (r.Region(name) == nil) != (kind == adds) })
	}
	if len(names) > 0 {
		c.Name = names[a.rng.IntN(len(names))]
	}
	// An error of the operator, which is refused as a daemon is heard.
	c.Stopped = kind == removes && heard(w, c.Name)
	return c
}

// target draws a rule or a key, and what an override sets.
func (a *faults) target(key bool) (control.Target, control.Setting) {
	if key {
		return control.Target{Key: fmt.Sprintf("%016x", a.rng.IntN(3))}, control.Setting{Block: true}
	}
	return control.Target{Domain: "log", Rule: []string{"user", "path"}[a.rng.IntN(2)]}, control.Setting{Requests: new(uint32(a.rng.IntN(200)))}
}

// emergency draws an emergency override.
func (a *faults) emergency(wall int64) control.Emergency {
	e := control.Emergency{Author: "operator", Until: wall/int64(time.Millisecond) + int64(a.rng.IntN(60_000))}
	e.Target, e.Setting = a.target(a.rng.IntN(4) == 0)
	return e
}

// ruleFiles draws small rules, one of them with a fault now and then.
func (a *faults) ruleFiles() []control.RuleFile {
	var b strings.Builder
	b.WriteString("domain: log\ndescriptors:\n")
	for _, key := range []string{"user", "path"} {
		if a.rng.IntN(4) == 0 {
			continue
		}
		unit := []string{"second", "minute", "furlong"}[min(2, a.rng.IntN(20)/9)]
		fmt.Fprintf(&b, "  - key: %s\n    rate_limit: {unit: %s, requests_per_unit: %d", key, unit, a.rng.IntN(200))
		b.WriteString([]string{"", "", ", algorithm: token_bucket", ", overage_budget: 5%", ", consistency: strict"}[a.rng.IntN(5)] + "}\n")
	}
	return []control.RuleFile{{Name: "log.yaml", Text: b.String()}}
}
