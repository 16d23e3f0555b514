package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/wire"
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
	w.crash(d)
	if d.downs == 0 {
		w.events.push(w.now, evStart, int32(d.Index))
	}
}

// command is a command about rights, which the operator gives at one daemon
// after the other until one accepts it.
type command struct {
	give     func(a *agent.Agent) error
	at       func(d *Daemon) bool // the daemons to give it at
	accepted func()
	attempts int
}

// errNoLog is the result of commands about rights in runs without a control
// log.
var errNoLog = errors.New("no control log")

// The operator gives a command again after commandEvery, maxAttempts times in
// all.
const (
	commandEvery = time.Second
	maxAttempts  = 60
)

// command lets the operator give a command.
func (a *faults) command(w *World, i int32) {
	c := a.commands.take(i)
	first := a.rng.IntN(len(w.daemons))
	for k := range w.daemons {
		d := w.daemons[(first+k)%len(w.daemons)]
		if !d.Up || d.Paused || d.leaving != nil || d.agent == nil || !c.at(d) {
			continue
		}
		err := c.give(d.agent.Agent)
		if w.traced(d) {
			w.lines.add(d, "command", "error=%v", err)
		}
		if d.turnAgent(w); err == nil {
			c.accepted()
			return
		}
	}
	if c.attempts++; c.attempts < maxAttempts {
		w.events.push(w.now+commandEvery, evCommand, a.commands.put(c))
	}
}

// order has the operator give a command.
func (a *faults) order(w *World, c *command) {
	if w.rights {
		w.events.push(w.now, evCommand, a.commands.put(c))
	}
}

// retire stops the daemons of fault i, or those of its regions, and has the
// operator retire them while they are down: the statement that they admit
// nothing any more is true.
func (a *faults) retire(w *World, f *Fault, i int) {
	if w.retiresDaemons(f) {
		ofEach(func(_ *faults, _ *World, _ *Fault, d *Daemon) {
			if f.Kind != LateStart {
				a.crash(w, f, d)
			}
			a.order(w, &command{
				give:     func(*agent.Agent) error { return errNoLog },
				at:       func(o *Daemon) bool { return o.Region == d.Region && slices.Contains(a.active, i) },
				accepted: func() { d.retired = true },
			})
		})(a, w, f, i)
		return
	}
	for _, region := range w.regionsOf(f) {
		for _, d := range w.local[region] {
			a.crash(w, f, d)
		}
		a.order(w, &command{
			give: func(*agent.Agent) error { return errNoLog },
			at:   func(o *Daemon) bool { return o.RegionIndex != region && slices.Contains(a.active, i) },
			accepted: func() {
				for _, d := range w.local[region] {
					d.retired = true
				}
			},
		})
	}
}

// unretire starts retired processes again, without the records of the retired
// participant. A region gets rights again, unless its records are kept.
func (a *faults) unretire(w *World, f *Fault, i int) {
	start := func(a *faults, w *World, f *Fault, d *Daemon) {
		if d.retired && f.Kind != KeptRecord {
			d.disk.Remove(replica.RightsFile)
		}
		d.retired = false
		a.restart(w, f, d)
	}
	if w.retiresDaemons(f) {
		ofEach(start)(a, w, f, i)
		return
	}
	for _, region := range w.regionsOf(f) {
		was := slices.ContainsFunc(w.local[region], func(d *Daemon) bool { return d.retired })
		for _, d := range w.local[region] {
			start(a, w, f, d)
		}
		if was && f.Kind != KeptRecord {
			a.order(w, &command{
				give:     func(*agent.Agent) error { return errNoLog },
				at:       func(o *Daemon) bool { return o.RegionIndex != region },
				accepted: func() {},
			})
		}
	}
}

// retiresDaemons reports whether a fault retires single daemons, and not their
// regions.
func (w *World) retiresDaemons(f *Fault) bool {
	isRegion := func(place string) bool { return slices.Contains(w.regions, place) }
	return f.Kind == RetireDaemon || f.Kind == LateStart ||
		f.Kind == KeptRecord && len(f.From) > 0 && !slices.ContainsFunc(f.From, isRegion)
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

// unknown are fields that this version does not know, as later ones may add
// them: a number and a text.
var unknown = append(binary.AppendUvarint(append(binary.AppendUvarint(nil, 1_999<<3), 1), 2_000<<3|2), "\x05later"...)

// withUnknown returns a frame about rights or strict keys as a later version
// sends it. Counts have no unknown fields: a change of them is another version
// of the protocol, which the handshake refuses.
func withUnknown(frame []byte) []byte {
	if !wire.IsRights(frame) && !wire.IsStrict(frame) && !wire.IsControl(frame) || len(frame)+len(unknown) > wire.MaxFrameBytes {
		return frame
	}
	return sealed(append(frame, unknown...))
}

// sealed sets the checksum of a frame.
func sealed(frame []byte) []byte {
	wire.SetChecksum(frame)
	return frame
}

// sameWithoutUnknown returns an error unless a frame of a later version means
// the same without its unknown fields.
func sameWithoutUnknown(in *replica.Inbound, from replica.Origin, frame []byte) error {
	rest, extended := bytes.CutSuffix(frame, unknown)
	if !extended {
		return nil
	}
	plain, err := replica.Decode(&wire.Decoder{}, from, sealed(bytes.Clone(rest)))
	if err == nil && !reflect.DeepEqual(plain, *in) {
		err = errors.New("unknown fields change a message")
	}
	return err
}
