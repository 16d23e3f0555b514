package audit

import (
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/sim"
)

// viewAuditor compares the age of each view that a replica states with the
// messages that arrived.
//
//   - The stated age is no less than the true one, also while nothing arrives.
//   - It is no more than the time since the message that all shards of the peer
//     had received when it answered last, up to its latest complete message.
type viewAuditor struct {
	finding
	views perDirection[view]
	count uint64
}

// view is what arrived of a stream.
type view struct {
	contiguous uint64
	sent       time.Duration // when the latest complete message was sent
	until      time.Duration // up to when the sender's counts arrived

	nonce    uint64        // of the latest message
	arrivals []arrival     // of such messages, ascending
	answered time.Duration // when that was sent which the latest answer is for
	echoed   time.Duration // the same, of answers up to the latest complete message
}

// arrival is when the sender of a stream received a message of ours.
type arrival struct{ at, sent time.Duration }

// viewsEvery is the number of inputs between two checks, maxArrivals the number
// of remembered arrivals of a stream.
const (
	viewsEvery  = 32
	maxArrivals = 256
)

func views(a *sim.Auditor, t *truth) {
	v := &viewAuditor{finding: finding{a, t}}
	a.Stepped, a.Happened = v.stepped, v.happened
}

// of returns the view of a direction.
func (a *viewAuditor) of(k direction) *view {
	if v := a.views.find(k); v != nil {
		return v
	}
	v := a.views.of(k)
	*v = view{sent: unknown, until: unknown, answered: unknown, echoed: unknown}
	return v
}

// happened notes that a process dropped its state of a peer's stream.
func (a *viewAuditor) happened(d *sim.Daemon, e gossip.Event) {
	to, from := a.up[d.Index], a.byIncarnation[e.Peer]
	if to == nil || from == nil {
		return
	}
	if e.Kind != gossip.PeerLeft {
		return
	}
	for shard := range d.Nodes {
		v := a.of(direction{to.index, from.index, shard})
		v.contiguous, v.nonce, v.arrivals, v.answered, v.echoed = 0, 0, nil, unknown, unknown
	}
}

func (a *viewAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	defer a.look(d)
	from, to, ok := a.accepted(d, m, err)
	if !ok {
		return
	}
	v := a.of(direction{to.index, from.index, m.Shard})
	sent := from.sentAt(m.Nonce)
	if m.Lo <= v.contiguous && m.Hi > v.contiguous {
		v.contiguous = m.Hi
	}
	if m.Nonce > v.nonce && m.Echo != 0 {
		v.answered = max(v.answered, a.answered(from, to, sent))
	}
	if m.Complete && m.Hi <= v.contiguous {
		v.sent, v.until = max(v.sent, sent), max(v.until, sent-m.Unsent)
		if m.Nonce > v.nonce {
			v.echoed = v.answered
		}
	}
	if m.Nonce > v.nonce {
		v.nonce = m.Nonce
		v.arrivals = append(v.arrivals, arrival{a.world.Now(), sent})
		if len(v.arrivals) > maxArrivals {
			v.arrivals = slices.Delete(v.arrivals, 0, maxArrivals/2)
		}
	}
}

// answered returns when the message was sent that a process answers at a time.
// Its shards share frames, which answer the oldest of their messages.
func (a *viewAuditor) answered(by, from *process, at time.Duration) time.Duration {
	oldest := at
	for shard := range from.daemon.Nodes {
		oldest = min(oldest, a.of(direction{by.index, from.index, shard}).arrivedBefore(at))
	}
	return oldest
}

// arrivedBefore returns when the latest message was sent that had arrived
// before a time, unknown if that is not remembered.
func (v *view) arrivedBefore(at time.Duration) time.Duration {
	for i := len(v.arrivals) - 1; i >= 0; i-- {
		if v.arrivals[i].at < at {
			return v.arrivals[i].sent
		}
	}
	return unknown
}

// look checks a daemon now and then.
func (a *viewAuditor) look(d *sim.Daemon) {
	if a.count++; a.count%viewsEvery != 0 || a.up[d.Index] == nil {
		return
	}
	for shard := range d.Nodes {
		a.links(d, a.up[d.Index], shard)
	}
}

// links checks the stated ages of a replica's views of all its peers.
func (a *viewAuditor) links(d *sim.Daemon, to *process, shard int) {
	now := a.world.Now()
	for l := range d.Nodes[shard].Links(d.Instant(now)) {
		from := a.byIncarnation[l.Peer.ID]
		if from == nil {
			continue
		}
		v := a.views.find(direction{to.index, from.index, shard})
		if l.Age < 0 {
			if !a.ok(v == nil || v.echoed == unknown) {
				a.fail("%s states that it has no view of %s, whose message of %v ago answered one of its own",
					d.Name, l.Peer.Name, now-v.sent)
			}
			continue
		}
		if !a.ok(v != nil && v.until != unknown) {
			a.fail("%s states that its view of %s is %v old, and never had a complete message", d.Name, l.Peer.Name, l.Age)
			continue
		}
		// The message may have been sent later, within the unit of its nonce.
		if !a.ok(l.Age > now-v.sent-gossip.NonceUnit && l.Unsent > now-v.until-gossip.NonceUnit) {
			a.fail("%s states that its view of %s is %v old, increments %v; it is %v and %v",
				d.Name, l.Peer.Name, l.Age, l.Unsent, now-v.sent, now-v.until)
		}
		if !a.ok(v.echoed == unknown || l.Age <= now-v.echoed+gossip.NonceUnit) {
			a.fail("%s states that its view of %s is %v old, and had an answer to a message of %v ago",
				d.Name, l.Peer.Name, l.Age, now-v.echoed)
		}
	}
}
