package sim

import (
	"time"

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
	at := d.Instant(w.now)
	for _, n := range d.Nodes {
		n.Leave(at)
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
	links := func(shard int) []node.Link { return d.Nodes[shard].Links(d.Instant(w.now)) }
	switch at := d.Instant(w.now).Mono; {
	case d.Paused:
	case l.departing:
		l.over, acknowledged = l.departure.Over(at, links)
	case d.process == nil || d.process.Waiters.Len() == 0 || w.now-l.since >= maxDrain:
		l.departing, l.departed, l.departure = true, w.now, replica.Depart(at, len(d.Nodes), links)
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
