package swarm

import (
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/sim"
)

// aimed lets a third of the faults that are drawn wait for an event, most of
// them at its daemon, and some begin about the start of a window: at a time
// that is drawn alone, a fault seldom meets the instants at which much depends
// on it.
func (d *draw) aimed() {
	c := &d.cfg
	var storage, messages, rest []string
	for _, event := range (&sim.Fault{}).When.Events() {
		switch {
		case event == sim.Revoke.String()+"_ended": // drawn after these
		case strings.HasPrefix(event, "writing_"), strings.HasPrefix(event, "stored_"):
			storage = append(storage, event)
		case strings.HasPrefix(event, "sent_"), strings.HasPrefix(event, "received_"):
			messages = append(messages, event)
		default:
			rest = append(rest, event)
		}
	}
	for i := range c.Faults {
		switch f := &c.Faults[i]; {
		case d.chance(0.33):
			events := [][]string{storage, messages, rest}[d.IntN(3)]
			d.aim(f, events[d.IntN(len(events))])
			if f.At = 0; d.chance(0.3) {
				f.At = d.time(0, c.Duration-1)
			}
			if d.chance(0.7) {
				f.From = nil
			}
		case d.chance(0.15):
			d.atWindow(f)
		}
	}
	d.promises()
	d.readmitted()
}

// aim lets a fault wait for an event.
func (d *draw) aim(f *sim.Fault, event string) {
	f.When.Event, f.When.Count = event, int(d.wild(1, 50))
	maybe(d, 0.3, &f.When.After, d.wild, 10*time.Microsecond, time.Second)
}

// atWindow lets a fault begin near the start of a window of some limit, if one
// starts during the run.
func (d *draw) atWindow(f *sim.Fault) {
	c := &d.cfg
	all := c.Rules.Rules()
	l := all[d.IntN(len(all))].Limit
	if l == nil || l.Unlimited {
		return
	}
	length := time.Duration(l.Window()) * time.Millisecond
	if length <= 0 || length >= c.Duration {
		return
	}
	at := length * time.Duration(d.between(1, int((c.Duration-1)/length)))
	near := d.wild(10*time.Microsecond, 300*time.Millisecond)
	if d.chance(0.5) {
		near = -near
	}
	f.At = min(at+near, c.Duration-1)
}

// promises draws processes that end while their record or log is written, or
// after failed writes, so that sent promises are not on their disks.
func (d *draw) promises() {
	c := &d.cfg
	if !d.rights && !d.strict || !d.chance(0.25) {
		return
	}
	region := c.Regions[d.IntN(len(c.Regions))].Name
	if d.chance(0.5) { // a message sent too early stays too early for longer
		c.Faults = append(c.Faults, sim.Fault{Kind: sim.SlowDisk, Delay: d.wild(10*time.Millisecond, 2*time.Second)})
	}
	ends := []sim.FaultKind{sim.Crash, sim.PowerLoss}
	for range d.between(2, 8) {
		end := sim.Fault{Kind: ends[d.IntN(2)], For: d.wild(time.Millisecond, 300*time.Millisecond)}
		if d.rights && d.chance(0.5) || !d.strict {
			d.aim(&end, []string{
				"writing_record", "sent_acknowledgements", "sent_votes", "sent_extension", "rights_proposed", "rights_settled",
			}[d.IntN(6)])
			c.Faults = append(c.Faults, end)
			continue
		}
		failing := sim.Fault{
			Kind: []sim.FaultKind{sim.WriteErrors, sim.SyncErrors, sim.FullDisk}[d.IntN(3)],
			From: []string{region}, For: d.wild(5*time.Millisecond, time.Second),
		}
		d.aim(&failing, []string{"writing_log", "sent_accepts", "received_accepts", "writing_compaction"}[d.IntN(4)])
		failing.When.Where, failing.When.After = failing.From, 0
		end.From = failing.From
		end.When.Event, end.When.Where, end.When.Count = failing.Kind.String()+"_ended", slices.Clone(failing.From), 1
		c.Faults = append(c.Faults, failing, end)
	}
}

// readmitted draws a daemon that alone has the rights of its region, and loses
// power while it promises others a part of them: those that were retired before
// and came back. It starts again beside none that knows what it promised.
// Little else goes wrong, so that it comes to that.
func (d *draw) readmitted() {
	c := &d.cfg
	region := c.Regions[d.IntN(len(c.Regions))]
	if !d.readmits || region.Daemons < 2 {
		return
	}
	all := d.Perm(region.Daemons)
	one, rest := []string{region.Daemon(all[0])}, []string(nil)
	for _, i := range all[1:] {
		rest = append(rest, region.Daemon(i))
	}
	retired := sim.Fault{Kind: sim.RemoveDaemon, At: d.time(0, 2*time.Second), From: rest, For: d.time(14*time.Second, 17*time.Second)}
	loss := sim.Fault{Kind: sim.PowerLoss, At: retired.At + retired.For, From: one, For: d.wild(time.Millisecond, 300*time.Millisecond)}
	loss.When.Event = []string{"rights_settled", "rights_settled", "rights_proposed", "sent_acknowledgements"}[d.IntN(4)]
	loss.When.Where = slices.Clone(one)
	cut := loss
	cut.Kind, cut.To, cut.For = sim.Cut, rest, d.time(8*time.Second, 16*time.Second)
	cut.When.After = d.wild(time.Millisecond, time.Second) // its last messages arrive
	slow := sim.Fault{Kind: sim.SlowDisk, At: loss.At, From: one, Delay: d.wild(20*time.Millisecond, 500*time.Millisecond)}
	c.Faults = append(c.Faults[:min(len(c.Faults), d.IntN(3))], retired, slow, loss, cut)
	if d.chance(0.7) { // otherwise those that are cut off hold nothing
		c.Rights.DaemonHorizon = 0
	}
	c.Network.Region = sim.Link{Delay: d.wild(50*time.Microsecond, 2*time.Millisecond), Jitter: d.wild(10*time.Microsecond, time.Millisecond)}
	c.Duration = max(c.Duration, loss.At+d.time(12*time.Second, 18*time.Second))
	for i := range c.Workloads {
		c.Workloads[i].Rate /= 2
	}
}
