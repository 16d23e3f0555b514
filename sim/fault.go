package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
)

// FaultKind is a kind of fault.
type FaultKind uint8

// The faults.
const (
	// Crash ends the processes of From; For later they start again, with
	// nothing but their disks and names (or other names, see Rename). A whole
	// region lost is a crash of the region.
	Crash FaultKind = iota
	// Cut lets nothing pass from From to To, nor back unless OneWay.
	Cut
	// Pause stops the processes of From: they neither run nor answer.
	Pause
	// ClockStep moves the wall clocks of From by Offset, and back after For.
	ClockStep
	// ClockDrift lets the wall clocks of From run PPM parts in a million
	// faster for that long.
	ClockDrift
	// Degrade gives the links from From to To, and back unless OneWay, other
	// qualities.
	Degrade
	// MissMembers hides the daemons To from the daemons From.
	MissMembers
	// KeepMembers hides from From that daemons left.
	KeepMembers
	// LateMembers delays all changes of members at From until it is over.
	LateMembers
	// NewRules puts Rules in force, on one daemon after the other within For.
	NewRules
	// Amnesia is a crash that the disks of From do not survive either.
	Amnesia
	// Suspect has the daemons of From take others of To for dead that are not:
	// each half of the time, drawn anew again and again.
	Suspect
	// Zombie stops the processes of From, which all others take for dead, for
	// the first half of its time. Then they go on, and are still taken for
	// dead.
	Zombie
	// LayoutChange has another layout of owners announced, which is drawn. With
	// a control log a daemon of From gives a region another weight instead.
	LayoutChange
	// PowerLoss is a crash in which the disks of From lose unsynced data,
	// except for a Share of the sectors.
	PowerLoss
	// WriteErrors and SyncErrors let a Share of the writes or syncs to the
	// disks of From fail, all when it is 0. FullDisk leaves the disks no room,
	// and SlowDisk delays each of their writes by up to Delay.
	WriteErrors
	SyncErrors
	FullDisk
	SlowDisk
	// BitFlip is a crash after which a bit of a file of each of From differs.
	BitFlip
	// TruncatedFile is a crash after which a file of each of From is cut.
	TruncatedFile
	// ProtocolErrors lets the daemons of From send messages that no daemon may
	// send, beside a Share of their own, all when it is 0. The daemons that
	// receive them must reject them.
	ProtocolErrors
	// OldDisk is a crash at its end, after which the disks of From have the
	// content of its beginning.
	OldDisk
	// Leave ends the processes of From as a daemon ends at SIGTERM: they give
	// up their work, finish their calls, and hand their counts over. For later
	// they start again; those that still run are killed first.
	Leave
	// RemoveDaemon is a crash of From. Where daemons have a control log, the
	// operator states that they are stopped, and removes their ids from the
	// record. They start again with their disks when the outcome is known.
	RemoveDaemon
	// RemoveRegion is the same for the regions of From, which the operator adds
	// again in the end.
	RemoveRegion
	// ClonedDisk starts the processes of To again with a copy of the disk of a
	// daemon of From in their region, and with its name. When it ends they
	// start with what was theirs.
	ClonedDisk
	// WrongClock starts the processes of From again with wall clocks that are
	// Offset ahead, and when it ends with the right ones.
	WrongClock
	// MixedLimits is NewRules that the other daemons do not get in the end: the
	// placement of a key depends on the daemon.
	MixedLimits
	// ControlCommand has the operator give a command to a daemon of From: a
	// change of the regions or of the limits, or a note.
	ControlCommand
	// CopiedControl copies the file of the control log of a daemon of From. At
	// its end the processes of To crash and start with the copy as their own.
	// Without To each of From gets its own file back, as by OldDisk.
	CopiedControl
	// LostVoters is an Amnesia of From after which the operator gives up the
	// strict voters among them. They start again when the outcome is known.
	LostVoters
	// Upgrade is Leave after which From start as a later version, which reads a
	// later format of the control log, and Downgrade one after which they start
	// as the former version. Where their disks have the later format already,
	// the operator starts the later version again.
	Upgrade
	Downgrade
	// Revoke has the operator revoke the certificates of From in the record of
	// the control log, and accept them again when it ends.
	Revoke
)

// faultKind is how the simulator plays a kind of fault. A kind without end
// stays in force.
type faultKind struct {
	name       string // the word of scenarios
	text       string // for reports, see Fault.String
	begin, end faultStep
	how        drawing
}

// drawing is whether swarm runs have a kind of fault.
type drawing bool

const (
	drawn drawing = false
	known drawing = true // only on request
)

// Known reports whether the kind breaks promises in ways that are known: the
// swarm plays it when asked to, and where it is harmless.
func (k FaultKind) Known() bool { return faultKinds[k].how == known }

// faultStep begins or ends fault i, which is f.
type faultStep func(a *faults, w *World, f *Fault, i int)

// ofEach returns the step that changes each daemon of From.
func ofEach(change func(a *faults, w *World, f *Fault, d *Daemon)) faultStep {
	return func(a *faults, w *World, f *Fault, _ int) {
		for _, d := range w.daemons {
			if d.in(f.From) {
				change(a, w, f, d)
			}
		}
	}
}

var faultKinds = [...]faultKind{
	Crash:        {"crash", "{from} down", ofEach((*faults).crash), ofEach((*faults).restart), drawn},
	Cut:          {"cut", "cut: {from} to {to}{back}", relink, relink, drawn},
	Pause:        {"pause", "{from} paused", ofEach((*faults).pause), ofEach((*faults).unpause), drawn},
	ClockStep:    {"clock_step", "clock of {from} stepped by {offset}", clocks(1, 0), clocks(-1, 0), drawn},
	ClockDrift:   {"clock_drift", "clock of {from} drifts by {ppm} ppm", clocks(0, 1), clocks(0, 0), drawn},
	Degrade:      {"degrade", "bad links: {from} to {to}{back}", relink, relink, drawn},
	MissMembers:  {"miss_members", "{from} not notified of {to}", ofEach(resyncMembers), ofEach(resyncMembers), drawn},
	KeepMembers:  {"keep_members", "{from} not notified of members that are gone", ofEach(resyncMembers), ofEach(resyncMembers), drawn},
	LateMembers:  {"late_members", "{from} notified of members late", ofEach(resyncMembers), ofEach(resyncMembers), drawn},
	NewRules:     {"new_rules", "rules change", (*faults).changeRules, nil, drawn},
	Amnesia:      {"amnesia", "{from} down, disks lost", ofEach((*faults).crash), ofEach((*faults).restart), drawn},
	Suspect:      {"suspect", "{from} consider {to} dead by turns", (*faults).suspect, ofEach((*faults).trust), drawn},
	Zombie:       {"zombie", "{from} paused and considered dead", (*faults).bury, (*faults).reveal, drawn},
	LayoutChange: {"layout_change", "a layout is announced", (*faults).changeLayout, nil, drawn},

	PowerLoss:      {"power_loss", "{from} without power", ofEach((*faults).crash), ofEach((*faults).restart), drawn},
	WriteErrors:    {"write_errors", "writes of {from} fail", ofEach((*faults).setDisk), ofEach((*faults).setDisk), drawn},
	SyncErrors:     {"sync_errors", "syncs of {from} fail", ofEach((*faults).setDisk), ofEach((*faults).setDisk), drawn},
	FullDisk:       {"full_disk", "disks of {from} full", ofEach((*faults).setDisk), ofEach((*faults).setDisk), drawn},
	SlowDisk:       {"slow_disk", "disks of {from} slow", ofEach((*faults).setDisk), ofEach((*faults).setDisk), drawn},
	BitFlip:        {"bit_flip", "{from} down, a file damaged", ofEach((*faults).flipBit), ofEach((*faults).restart), drawn},
	ProtocolErrors: {"protocol_errors", "{from} send what must be rejected", func(*faults, *World, *Fault, int) {}, nil, drawn},
	TruncatedFile:  {"truncated_file", "{from} down, a file cut", ofEach((*faults).truncate), ofEach((*faults).restart), known},
	Leave:          {"leave", "{from} leave", ofEach((*faults).leave), ofEach((*faults).restart), drawn},
	RemoveDaemon:   {"remove_daemon", "{from} down, and removed", (*faults).remove, (*faults).unremove, drawn},
	RemoveRegion:   {"remove_region", "regions of {from} down, and removed", (*faults).remove, (*faults).unremove, drawn},
	ClonedDisk:     {"cloned_disk", "{to} started as {from}, with copies of the disks", (*faults).clone, (*faults).unclone, known},
	WrongClock:     {"wrong_clock", "{from} started with clocks {offset} ahead", ofEach((*faults).startWrong), ofEach((*faults).startRight), drawn},
	MixedLimits:    {"mixed_limits", "other limits at {from}", (*faults).changeRules, nil, known},
	ControlCommand: {"control_command", "a command at {from}", (*faults).commandControl, nil, drawn},
	CopiedControl:  {"copied_control", "control logs of {from} copied, and put back at {to}", (*faults).copyControl, (*faults).putControl, drawn},
	LostVoters:     {"lost_voters", "{from} down, disks lost, strict voters given up", (*faults).remove, (*faults).unremove, drawn},
	Upgrade:        {"upgrade", "{from} replaced by a later version", ofEach((*faults).leave), ofEach((*faults).restart), drawn},
	Downgrade:      {"downgrade", "{from} replaced by a former version", ofEach((*faults).leave), ofEach((*faults).restart), drawn},
	Revoke:         {"revoke", "{from} revoked", (*faults).revoke, (*faults).unrevoke, drawn},
	OldDisk:        {"old_disk", "disks of {from} copied, and put back", ofEach((*faults).copyDisk), ofEach((*faults).restoreDisk), known},
}

// FaultKinds lists all kinds.
func FaultKinds() []FaultKind { return enum.All[FaultKind](len(faultKinds)) }

// String returns the word that scenarios use.
func (k FaultKind) String() string { return faultKinds[k].name }

// Fault is one thing that goes wrong.
type Fault struct {
	Kind FaultKind
	// At is when it begins, or begins to wait for When; it lasts For, or when
	// that is 0, until the liveness phase.
	At, For time.Duration
	When    trigger
	// From and To are the regions and daemons it is about, none for all. A
	// fault that waits for When is about the daemon of the event if From is
	// empty. To is for faults between two places only.
	From, To []string
	// OneWay faults of links spare the way back.
	OneWay bool
	// Rename gives what restarts another name and address.
	Rename bool
	// Stay keeps what crashed down in the liveness phase too.
	Stay   bool
	Offset time.Duration // ClockStep
	Delay  time.Duration // SlowDisk
	Share  rules.PPM     // WriteErrors, SyncErrors, PowerLoss, ProtocolErrors
	PPM    int64         // ClockDrift
	Link   Link          // Degrade
	Rules  *rules.Set    // NewRules
	Limits string        // its text, as that of Config
	// Command of ControlCommand is a word of Commands, "" for a drawn one.
	Command string
}

// String describes the fault, for the time axis of a report.
func (f *Fault) String() string {
	back := " and back"
	if f.OneWay {
		back = ""
	}
	from := everywhere(f.From)
	if f.When.Event != "" && len(f.From) == 0 {
		from = "the daemon of an event"
	}
	return strings.NewReplacer("{from}", from, "{to}", everywhere(f.To), "{back}", back,
		"{offset}", f.Offset.String(), "{ppm}", fmt.Sprint(f.PPM)).Replace(faultKinds[f.Kind].text)
}

func everywhere(places []string) string {
	if len(places) == 0 {
		return "all"
	}
	return strings.Join(places, ", ")
}

// crashes reports whether it ends processes.
func (f *Fault) crashes() bool {
	switch f.Kind {
	case Crash, Amnesia, PowerLoss, BitFlip, TruncatedFile, Leave, RemoveDaemon, RemoveRegion, LostVoters, Upgrade, Downgrade:
		return true
	}
	return false
}

// in reports whether a daemon is one of the places, which are regions and
// daemons; none are all.
func (d *Daemon) in(places []string) bool {
	return len(places) == 0 || slices.Contains(places, d.Region) || slices.Contains(places, d.owner)
}

// daemonName is the name a daemon of a region starts with.
func daemonName(region string, index int) string { return fmt.Sprintf("%s-%d", region, index) }

// faults are those in force, and the randomness that they draw from.
type faults struct {
	all    []Fault      // Config.Faults; those that waited are about some daemon
	armed  []armed      // those that wait for an event
	active []int        // their numbers
	risen  map[int]bool // those whose zombies continued
	rng    *rand.Rand

	commands pool[*command] // that the operator has still to give
	removals map[int][]*removal
	latest   control.Request                    // command of the control log
	recovers time.Duration                      // when the operator may recover it again
	undoing  bool                               // the operator accepts revoked daemons again
	undos    map[revocation.Name]control.Number // the latest command for each
}

// begin lets fault i happen, unless the liveness phase has begun.
func (a *faults) begin(w *World, i int) {
	if w.healed {
		return
	}
	f := &a.all[i]
	if f.When.Event != "" {
		a.arm(i)
		return
	}
	kind := &faultKinds[f.Kind]
	a.active = append(a.active, i)
	if w.traced(nil) {
		w.lines.add(nil, "fault", "begins: %v, for %v", f, f.For)
	}
	kind.begin(a, w, f, i)
	if f.For > 0 && kind.end != nil {
		w.events.push(w.now+f.For, evRecover, int32(i))
	}
}

// end takes fault i back.
func (a *faults) end(w *World, i int) {
	at := slices.Index(a.active, i)
	if at < 0 {
		return
	}
	a.active = slices.Delete(a.active, at, at+1)
	f := &a.all[i]
	if w.traced(nil) {
		w.lines.add(nil, "fault", "ends: %v", f)
	}
	if faultKinds[f.Kind].end != nil {
		faultKinds[f.Kind].end(a, w, f, i)
	}
	ofEach(func(_ *faults, w *World, f *Fault, d *Daemon) { d.saw(w, f.Kind.String()+over) })(a, w, f, i)
}

func (a *faults) crash(w *World, f *Fault, d *Daemon) {
	d.downs++
	w.crash(d)
	switch f.Kind {
	case Amnesia, LostVoters:
		d.newDisk(w)
	case PowerLoss:
		d.disk.PowerLoss(int(f.Share))
	}
}

func (a *faults) restart(w *World, f *Fault, d *Daemon) {
	if d.downs--; d.downs == 0 {
		if d.leaving != nil {
			w.crash(d) // it has not ended in time
		}
		if f.Rename {
			d.Name = fmt.Sprintf("%s-r%d", d.owner, d.starts)
			d.newDisk(w) // the storage belongs to the name
		}
		// A recovery is the operator's word that the voters before are lost for
		// good. With their disks they would confirm themselves behind a cut.
		if removed := f.Kind == RemoveDaemon || f.Kind == RemoveRegion; removed && w.controls[control.Recovered] > 0 {
			d.newDisk(w)
		}
		if f.Kind == Upgrade || f.Kind == Downgrade {
			d.newer = f.Kind == Upgrade
		}
		w.events.push(w.now+a.between(0, w.cfg.Members.Spread), evStart, int32(d.Index))
	}
}

func (a *faults) pause(w *World, _ *Fault, d *Daemon) {
	d.pauses++
	w.met.paused(w, d)
	d.Paused = true
}

func (a *faults) unpause(w *World, _ *Fault, d *Daemon) {
	if d.pauses--; d.pauses == 0 {
		w.events.push(w.now, evResume, int32(d.Index))
	}
}

// relink sets the qualities of all links anew.
func relink(_ *faults, w *World, _ *Fault, _ int) { w.network.relink(w) }

// clocks returns the step that moves clocks by some of the fault's offset, or
// sets some of its drift.
func clocks(offset time.Duration, drift int64) faultStep {
	return ofEach(func(_ *faults, w *World, f *Fault, d *Daemon) {
		w.auditors.stepped(d, nil, nil)
		defer w.auditors.stepped(d, nil, nil)
		if f.Kind == ClockStep {
			d.clock.step(w.now, offset*f.Offset)
			w.stepped = w.now
		} else {
			d.clock.drift(w.now, drift*f.PPM)
		}
	})
}

// misjudged reports of cells whether a daemon may have dropped them, or not
// taken them, because its clock was wrong and their window was over by it.
// Digests repair that in long windows alone.
func misjudged(w *World) func(gossip.Cell) bool {
	stepped := (w.base + int64(w.stepped)) / int64(time.Millisecond)
	return func(c gossip.Cell) bool { return c.Window <= stepped && c.WindowLength <= gossip.LongWindow }
}

// startWrong starts a process again after a step of its clock, and startRight
// after the step back.
func (a *faults) startWrong(w *World, f *Fault, d *Daemon) { a.startAt(w, f, d, f.Offset) }

func (a *faults) startRight(w *World, f *Fault, d *Daemon) { a.startAt(w, f, d, -f.Offset) }

func (a *faults) startAt(w *World, f *Fault, d *Daemon, step time.Duration) {
	a.crash(w, f, d)
	w.auditors.stepped(d, nil, nil)
	d.clock.step(w.now, step)
	w.auditors.stepped(d, nil, nil)
	a.restart(w, f, d)
}

// changeRules lets each daemon take the new set in force at a time of its own.
func (a *faults) changeRules(w *World, f *Fault, _ int) {
	set := w.addRules(f.Rules)
	for _, d := range w.daemons {
		if !d.in(f.From) {
			continue
		}
		w.events.push(w.now+a.between(0, f.For), evRules, w.adoptions.put(adoption{d.Index, set}))
	}
}

// between draws a time.
func (a *faults) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(a.rng.Int64N(int64(high-low)))
}

// changeLayout has other voters of a region, other weights or another home
// region announced. With a control log an operator gives a region another
// weight instead, and the log chooses the voters.
func (a *faults) changeLayout(w *World, f *Fault, _ int) {
	var able []*Daemon
	for _, d := range w.daemons {
		if d.Up && !d.Paused && d.acceptor != nil && d.in(f.From) {
			able = append(able, d)
		}
	}
	if len(able) == 0 {
		return
	}
	d := able[a.rng.IntN(len(able))]
	if d.control != nil {
		change := control.Change{Region: &control.RegionChange{
			Op: control.WeighRegion, Name: w.regions[a.rng.IntN(len(w.regions))], Weight: uint32(1 + a.rng.IntN(control.Whole-1)), Force: true,
		}}
		_, _ = d.control.Submit(control.Request{Author: "operator", Change: change}) // refused where it cannot be
		d.turnControl(w)
		return
	}
	if w.layouts.Active == nil {
		return
	}
	next := w.layouts.Active.Clone()
	region := &next.Regions[a.rng.IntN(len(next.Regions))]
	switch a.rng.IntN(4) {
	case 0:
		region.Weight = uint32(a.rng.IntN(4))
	case 1:
		a.repin(w, &next, region.Name)
	default:
		region.Replicas = slices.Sorted(slices.Values(a.drawReplicas(w, region.Name)))
	}
	if w.layouts.Announce(next, reportsOf(w)) == nil { // else it is impossible
		spreadLayouts(w)
	}
}

// drawReplicas draws some of a region's daemons, an odd number of them where it
// has more than two.
func (a *faults) drawReplicas(w *World, region string) []string {
	var all []string
	for _, d := range w.daemons {
		if d.Region == region {
			all = append(all, d.Name)
		}
	}
	a.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:votersOf(min(1+a.rng.IntN(len(all)), route.MaxReplicas))]
}

// repin pins a rule that owners count to a region.
func (a *faults) repin(w *World, l *route.Layout, region string) {
	for _, r := range w.Rules().Rules() {
		if r.Limit == nil || !r.Limit.Homed() {
			continue
		}
		id := uint64(r.ID)
		l.Pins = slices.DeleteFunc(slices.Clone(l.Pins), func(p route.Pin) bool { return p.Rule == id })
		l.Pins = append(l.Pins, route.Pin{Rule: id, Region: region})
		slices.SortFunc(l.Pins, func(a, b route.Pin) int { return cmp.Compare(a.Rule, b.Rule) })
		return
	}
}
