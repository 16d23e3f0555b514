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
