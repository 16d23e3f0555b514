package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/wire"
)

// allShards names the nodes of a daemon as a bit set.
const allShards = ^uint64(0)

// leastSleep keeps a replica that asks to be woken at once from stopping time.
const leastSleep = 100 * time.Microsecond

// drain takes over what the touched nodes of a daemon want done: their events,
// their messages, and when to wake them.
func (w *World) drain(d *Daemon, touched uint64) {
	out := w.outbox[:0]
	for s, n := range d.Nodes {
		if touched&(1<<s) == 0 {
			continue
		}
		r := n.Ready()
		for _, e := range r.Events {
			w.happened(d, e)
		}
		out = append(out, r.Messages...)
		d.wakes[s] = r.Wake
	}
	w.sleep(d)
	w.post(d, out)
	clear(out)
	w.outbox = out[:0]
	if w.owners {
		w.errands(d, touched)
	}
}

// sleep schedules the next Tick of a daemon, unless one before it is scheduled
// anyway: that one then finds nothing to do and looks again.
func (w *World) sleep(d *Daemon) {
	next := slices.Min(d.wakes)
	if next >= never-w.cfg.Duration || next > MaxDuration*2 {
		return
	}
	at := max(d.started+next, w.now+leastSleep)
	if d.waking <= at && d.waking > w.now {
		return
	}
	d.waking = at
	w.events.push(at, evWake, int32(d.Index))
}

// wake ticks the nodes of a daemon that are due.
func (w *World) wake(d *Daemon, at time.Duration) {
	if !d.Up || d.Paused || d.waking != at {
		return
	}
	d.waking = never
	now := d.Instant(w.now)
	touched := uint64(0)
	for s, n := range d.Nodes {
		if d.wakes[s] <= now.Mono {
			n.Tick(now)
			touched |= 1 << s
			w.stepped(d, nil, nil)
		}
	}
	if d.wakes[len(d.Nodes)] <= now.Mono {
		w.attend(d)
	}
	if d.wakes[len(d.Nodes)+1] <= now.Mono {
		w.sit(d)
	}
	if touched == 0 {
		w.sleep(d)
		return
	}
	w.drain(d, touched)
}

// post sends messages: those of a daemon's shards to one peer in one frame.
func (w *World) post(d *Daemon, out []gossip.Message) {
	slices.SortStableFunc(out, func(a, b gossip.Message) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Shard, b.Shard))
	})
	for len(out) > 0 {
		n := 1
		for n < len(out) && out[n].To == out[0].To && out[n].Shard > out[n-1].Shard {
			n++
		}
		w.postOne(d, out[:n])
		out = out[n:]
	}
}

func (w *World) postOne(d *Daemon, msgs []gossip.Message) {
	gossip.Unite(msgs)
	if s := msgs[0].Stamp; s > d.stamp {
		d.stamp, d.stampAt = s, w.now
	}
	if w.cfg.mutation.generous {
		embellish(msgs)
	}
	to, known := w.addressOf[msgs[0].To]
	if !known {
		return // the members a fault made up have no address
	}
	frame, err := wire.Encode(w.buffer(), msgs)
	if err != nil || len(frame) > wire.MaxFrameBytes {
		w.traffic.Unsendable++
		return
	}
	if slices.ContainsFunc(msgs, func(m gossip.Message) bool { return donates(&m) }) {
		w.donations++
	}
	m := &w.members[to]
	if m.daemon != d.Index {
		w.send(d.Index, m.daemon, m.name, frame)
	}
}

// receive hands a frame to the nodes of a daemon that runs.
func (w *World) receive(d *Daemon, f flight) {
	w.trace.bytes(f.frame)
	if wire.IsRights(f.frame) {
		w.receiveRights(d, f)
		return
	}
	if wire.IsStrict(f.frame) {
		w.receiveStrict(d, f)
		return
	}
	msgs, err := wire.Decode(f.frame)
	w.drop(f)
	if f.mangled {
		w.mangled(err)
		return
	}
	if err != nil {
		w.traffic.Unreadable++
		return
	}
	at := d.Instant(w.now)
	touched := uint64(0)
	for i := range msgs {
		m := &msgs[i]
		if m.Shard < 0 || m.Shard >= len(d.Nodes) {
			w.traffic.Unreadable++
			continue
		}
		d.observe(w.now, m.Stamp)
		err := d.Nodes[m.Shard].Step(at, m)
		touched |= 1 << m.Shard
		w.stepped(d, m, err)
	}
	if touched != 0 {
		w.drain(d, touched)
	}
}

// mangled notes what became of a damaged frame: it must have been refused.
func (w *World) mangled(err error) {
	if err != nil {
		w.traffic.Refused++
	} else {
		w.traffic.Accepted++
	}
}

// stepped tells the auditors of an input to a daemon.
func (w *World) stepped(d *Daemon, m *gossip.Message, err error) {
	for _, a := range w.auditors {
		a.Stepped(w, d, m, err)
	}
}

// happened takes in an event of a replica.
func (w *World) happened(d *Daemon, e gossip.Event) {
	w.seen[e.Kind]++
	w.trace.happened(d, e)
	if e.Kind == gossip.JumpAdopted && d.bureau != nil {
		d.bureau.clock.AdoptJump()
	}
	for _, a := range w.auditors {
		a.Happened(w, d, e)
	}
}

// account records the decision on the call and tells the auditors.
func (w *World) account(a *asked, at node.Instant) {
	d, c := a.daemon, a.call
	w.trace.decision(d, c)
	if w.owners {
		w.strict.decided(w.now, a)
	}
	hits := c.Hits()
	set := &w.sets[a.set]
	asked := uint64(0)
	for i := range hits {
		st := &c.Statuses[i]
		if st.Limit == nil {
			continue
		}
		asked = max(asked, hits[i].N)
		if st.Degraded != node.NotDegraded {
			w.tallies.degraded++
		}
		if st.Rule != nil {
			w.tallies.note(set.tally[st.Rule.Index], d.RegionIndex, hits[i].N, c.Decision.Allowed, st.Refuses())
		}
		w.decided = Decided{
			At: w.now, Instant: at, Daemon: d, Key: hits[i].Key, Rule: st.Rule, Limit: st.Limit,
			Hits: hits[i].N, Allowed: c.Decision.Allowed, Status: *st,
		}
		for _, a := range w.auditors {
			a.Decided(w, &w.decided)
		}
	}
	w.tallies.decision(asked, c.Decision.Allowed)
}

// embellish makes gifts greater on their way: a planted bug.
func embellish(msgs []gossip.Message) {
	for i := range msgs {
		for j := range msgs[i].Cells {
			if c := &msgs[i].Cells[j]; c.Kind == gossip.Given {
				c.Value.P += 20
			}
		}
	}
}
