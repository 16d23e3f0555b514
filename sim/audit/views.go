package audit

import (
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/sim"
)

// viewAuditor compares the age of each view that a replica states with the
// messages that arrived: the stated age is no less than the true one.
type viewAuditor struct {
	finding
	views map[direction]*view
	count uint64
}

// direction is a shard's stream of messages from one process to another.
type direction struct{ to, from, shard int }

// view is what arrived of a stream.
type view struct {
	contiguous uint64
	sent       time.Duration // when the latest complete message was sent
	until      time.Duration // up to when the sender's counts arrived
}

// viewsEvery is the number of messages between two checks.
const viewsEvery = 64

func views(a *sim.Auditor, t *truth) {
	v := &viewAuditor{finding: finding{a, t}, views: make(map[direction]*view)}
	a.Stepped = v.stepped
}

func (a *viewAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	from, to, ok := a.accepted(d, m, err)
	if !ok {
		return
	}
	k := direction{to.index, from.index, m.Shard}
	v := a.views[k]
	if v == nil {
		v = &view{sent: unknown, until: unknown}
		a.views[k] = v
	}
	if m.Lo <= v.contiguous && m.Hi > v.contiguous {
		v.contiguous = m.Hi
	}
	if m.Complete && m.Hi <= v.contiguous {
		sent := from.sentAt(m.Nonce)
		v.sent, v.until = max(v.sent, sent), max(v.until, sent-m.Unsent)
	}
	if a.count++; a.count%viewsEvery == 0 {
		a.links(d, to, m.Shard)
	}
}

// links checks the stated ages of a replica's views of all its peers.
func (a *viewAuditor) links(d *sim.Daemon, to *process, shard int) {
	now := a.world.Now()
	for _, l := range d.Nodes[shard].Links(d.Instant(now)) {
		from := a.byIncarnation[l.Peer.ID]
		if l.Age < 0 || from == nil {
			continue
		}
		v := a.views[direction{to.index, from.index, shard}]
		if !a.ok(v != nil && v.until != unknown) {
			a.fail("%s states that its view of %s is %v old, and never had a complete message", d.Name, l.Peer.Name, l.Age)
			continue
		}
		if !a.ok(l.Age >= now-v.sent && l.Unsent >= now-v.until) {
			a.fail("%s states that its view of %s is %v old, increments %v; it is %v and %v",
				d.Name, l.Peer.Name, l.Age, l.Unsent, now-v.sent, now-v.until)
		}
	}
}
