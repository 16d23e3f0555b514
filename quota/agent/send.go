package agent

import (
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// Ready is the work for the driver: store Store, if there is one, and call
// Stored or Failed; send Messages, in any order; have the control log decide
// about Proposal, if there is one, and call ProposalDone; log Events. No
// message depends on Store. Wake is the latest time to call Tick and Ready
// again.
type Ready struct {
	Store    *Stored
	Messages []Message
	// Proposal is an epoch of regions with other shares of rules. It must not
	// be modified.
	Proposal *epoch.Epoch
	Events   []Event
	Wake     time.Duration
}

// Ready returns the work that is due now. Call it after every other call that
// changes the agent, and again after Stored.
func (a *Agent) Ready(at time.Duration) Ready {
	a.clock(at)
	r := Ready{Store: a.toStore()}
	r.Wake = at + wakeEvery
	if a.ready { // nothing is due sooner than messages and the record
		r.Wake = at + max(wakeEvery, min(a.cfg.Interval, a.cfg.Ahead/4))
	}
	if !a.disk.holding() && a.self != 0 && a.stamp != 0 {
		for _, l := range a.links {
			if m, ok := a.message(l); ok {
				r.Messages = append(r.Messages, m)
			}
			r.Wake = min(r.Wake, l.due)
		}
	}
	if a.proposal.unsent {
		r.Proposal, a.proposal.unsent = a.proposal.epoch, false
	}
	r.Wake = max(r.Wake, at+time.Millisecond)
	r.Events = a.log.Take()
	return r
}

// wakeEvery is the longest time between two Ticks, unless the intervals of the
// configuration are longer.
const wakeEvery = 250 * time.Millisecond

// message returns the message to send to a peer now. It returns ok false for
// none.
func (a *Agent) message(l *link) (Message, bool) {
	if !l.local && (!a.leading || !a.links.addressed(a.at, l)) {
		l.due = a.at + l.interval()
		return Message{}, false
	}
	changed := l.revision != a.changes
	if changed {
		l.revision, l.due = a.changes, l.sentAt+pause(a, l)
	}
	due := a.at >= l.due
	if !due && !changed {
		return Message{}, false
	}
	m := Message{
		From: a.self, To: l.peer.ID, Region: a.cfg.Region, Name: a.cfg.Name, Stamp: a.stamp,
		Member: a.cfg.Self, Genesis: a.genesis, Ready: a.ready, Leaving: a.leaving, Diskless: a.cfg.Diskless,
	}
	if known := a.demand.latest(l); known != nil {
		m.Heard = known.period
	}
	news := a.fill(l, &m)
	if !due && !news {
		return Message{}, false
	}
	if l.local {
		m.Extension, l.extension = l.extension, nil
	}
	l.stated.ready, l.sentAt = a.ready, a.at
	for table := range l.stated.tables {
		l.stated.tables[table] = a.content(table).known
	}
	l.due = a.at + pause(a, l)
	return m, true
}

// fill puts the content of this daemon and the items that the peer lacks into a
// message. It reports whether there are any items.
func (a *Agent) fill(l *link, m *Message) (news bool) {
	room := fillBytes
	news = a.fillSection(l, regionTable, &m.Regions, &room)
	if l.local {
		news = a.fillSection(l, daemonTable, &m.Daemons, &room) || news
		m.HasVotes = a.content(voteTable).has
		if l.receivedAt >= 0 {
			news = a.fillVotes(l, m, &room) || news
		}
	}
	if d, ok := a.demand.toSend(a.at, l, a.leading, a.links); ok && l.send(a.at, a.origins, demandPrint(d.period)) {
		m.Period, m.Demand = d.period, d.rows
		news = true
	}
	return news
}

// content is the content of an own table as of a number of changes. A table may
// have acknowledgements of participants that only epochs named that were
// pruned. A daemon that has none of those epochs records none of them, and must
// become ready without them.
type content struct {
	changes uint64
	known
}

// content returns the content of a table. Messages share the slice; it is never
// changed.
func (a *Agent) content(table int) *content {
	s := &a.contents[table]
	if s.changes == a.changes+1 {
		return s
	}
	s.changes, s.has = a.changes+1, nil
	if table == voteTable {
		for _, v := range a.votes {
			s.has = append(s.has, itemPrint(printVote, 0, v.Ack.ID, v.Daemon))
		}
	} else {
		t := a.table(table)
		s.base, s.settled = t.At(0).Epoch.ID, settledID(t)
		for i := 1; i < t.Len(); i++ {
			k := t.At(i)
			s.has = append(s.has, itemPrint(printEpoch, uint64(table), k.Epoch.ID, 0))
			for _, ack := range k.Acks {
				if !t.Names(ack.By) {
					continue
				}
				s.has = append(s.has, itemPrint(printAck, uint64(table), ack.ID, ack.By))
			}
		}
	}
	s.has = s.has[:min(len(s.has), MaxHas)]
	slices.Sort(s.has)
	s.has = slices.Compact(s.has)
	return s
}

// fillSection describes the content of a table, and adds the items that the
// peer lacks once it has described its own.
func (a *Agent) fillSection(l *link, table int, s *Section, room *int) (news bool) {
	own := a.content(table)
	s.Base, s.Settled, s.Has = own.base, own.settled, own.has
	if l.receivedAt < 0 {
		return false
	}
	t, peer := a.table(table), &l.tables[table]
	old := a.at-a.settledAt[table] >= 2*a.cfg.resend(l.local)
	if i := claimable(t, peer, old); i >= 0 {
		k := t.At(i)
		if l.send(a.at, a.origins, itemPrint(printClaim, uint64(table), k.Epoch.ID, 0)) {
			c := t.Claim(i)
			s.Claim, news = &c, true
			*room -= epochBytes(&k.Epoch)
		}
	}
	for i := 1; i < t.Len(); i++ {
		k := t.At(i)
		if !peer.base.Before(k.Epoch.ID) {
			continue
		}
		id, known := k.Epoch.ID, true
		if p := itemPrint(printEpoch, uint64(table), id, 0); !contains(peer.has, p) {
			if known = l.sent[p].times > 0; *room > 0 && l.send(a.at, a.origins, p) {
				s.Epochs = append(s.Epochs, k.Epoch)
				*room -= epochBytes(&k.Epoch)
				known, news = true, true
			}
		}
		for _, ack := range k.Acks {
			p := itemPrint(printAck, uint64(table), id, ack.By)
			if known && *room > 0 && !contains(peer.has, p) && t.Names(ack.By) && l.send(a.at, a.origins, p) {
				s.Acks = append(s.Acks, ack)
				*room -= ackBytes(&ack)
				news = true
			}
		}
	}
	return news
}

// claimable returns the place of the settled epoch that a peer cannot settle by
// itself, since one of them has pruned the predecessor, or acknowledgements of
// daemons that left are lost: then it was settled a while ago, old. It returns
// -1 for none.
func claimable(t *epoch.Table, peer *known, old bool) int {
	if peer.settled.Before(t.At(0).Epoch.ID) {
		return 0
	}
	for i := t.Len() - 1; i > 0; i-- {
		if k := t.At(i); k.Settled {
			if peer.settled.Before(k.Epoch.ID) && (old || k.Epoch.Pred.Before(peer.base)) {
				return i
			}
			break
		}
	}
	return -1
}

// fillVotes adds the votes that the peer lacks.
func (a *Agent) fillVotes(l *link, m *Message, room *int) (news bool) {
	for _, v := range a.votes {
		p := itemPrint(printVote, 0, v.Ack.ID, v.Daemon)
		if *room <= 0 || contains(l.tables[voteTable].has, p) || !l.tables[regionTable].base.Before(v.Ack.ID) ||
			!l.send(a.at, a.origins, p) {
			continue
		}
		m.Votes = append(m.Votes, v)
		*room -= ackBytes(&v.Ack) + 16*len(v.Locals)
		news = true
	}
	return news
}

// epochBytes returns the approximate size of an epoch.
func epochBytes(e *epoch.Epoch) int {
	return 64 + 20*len(e.Members) + 20*len(e.Retired) + len(e.Rules)*(10+3*len(e.Members))
}

// ackBytes returns the approximate size of an acknowledgement.
func ackBytes(a *epoch.Ack) int {
	return 64 + 20*len(a.Before) + 20*len(a.Horizons) + 24*len(a.Held)
}

func contains(sorted []uint64, p uint64) bool {
	_, ok := slices.BinarySearch(sorted, p)
	return ok
}
