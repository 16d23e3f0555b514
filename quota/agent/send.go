package agent

import (
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// Ready is what a driver must do: store Store, if there is one, and call
// Stored or Failed; send Messages, in any order, none of which depends on what
// Store holds; note Events. Wake is when to call Tick and Ready again at the
// latest.
type Ready struct {
	Store    *Stored
	Messages []Message
	Events   []Event
	// Dropped is how many events did not fit.
	Dropped uint64
	Wake    time.Duration
}

// Ready returns what there is to do now. Call it after every other call that
// takes something in, and again after Stored.
func (o *Agent) Ready(at time.Duration) Ready {
	o.at = at
	r := Ready{Store: o.toStore()}
	r.Wake = at + wakeEvery
	if !o.holding() && o.self != 0 && o.stamp != 0 {
		for _, l := range o.links {
			if m, ok := o.message(l); ok {
				r.Messages = append(r.Messages, m)
			}
			r.Wake = min(r.Wake, l.due)
		}
	}
	r.Wake = max(r.Wake, at+time.Millisecond)
	r.Events, o.events = o.events, nil
	r.Dropped, o.dropped = o.dropped, 0
	return r
}

// wakeEvery is the longest time between two Ticks.
const wakeEvery = 250 * time.Millisecond

// message returns what the peer is to be told now, if anything.
func (o *Agent) message(l *link) (Message, bool) {
	if !l.local && (!o.leading || !o.addressed(l)) {
		l.due = o.at + o.interval(l)
		return Message{}, false
	}
	due := o.at >= l.due
	if !due && l.looked == o.changes {
		return Message{}, false
	}
	l.looked = o.changes
	m := Message{
		From: o.self, To: l.peer.ID, Region: o.cfg.Region, Name: o.cfg.Name, Stamp: o.stamp,
		Member: o.member, Fence: o.fence, Genesis: o.genesis, Ready: o.ready, Heard: o.heardOf(l),
	}
	news := o.fill(l, &m)
	if !due && !news {
		return Message{}, false
	}
	if l.local {
		m.Extension, l.grant = l.grant, nil
	}
	l.due = o.at + o.interval(l)
	return m, true
}

func (o *Agent) interval(l *link) time.Duration {
	if l.local {
		return o.cfg.Interval
	}
	return o.cfg.WANInterval
}

// fill puts into the message what this daemon has, and what the peer lacks;
// news says whether there is anything of the latter.
func (o *Agent) fill(l *link, m *Message) (news bool) {
	room := fillBytes
	news = o.fillSection(l, 0, &m.Regions, &room)
	if l.local {
		news = o.fillSection(l, 1, &m.Daemons, &room) || news
		m.HasVotes = o.standing(2).has
		if l.heardAt >= 0 {
			news = o.fillVotes(l, m, &room) || news
		}
	}
	return o.fillDemand(l, m) || news
}

// standing is what this daemon says it has of a table.
type standing struct {
	changes       uint64
	base, settled epoch.ID
	has           []uint64
}

// standing returns it for the tables of the regions (0), of the daemons (1)
// and for votes (2). The slice is shared by messages and never changed.
func (o *Agent) standing(table int) *standing {
	s := &o.told[table]
	if s.changes == o.changes+1 {
		return s
	}
	s.changes, s.has = o.changes+1, nil
	if table == 2 {
		for _, v := range o.votes {
			s.has = append(s.has, itemPrint(printVote, 0, v.Ack.ID, v.Daemon))
		}
	} else {
		t := o.table(table)
		s.base, s.settled = t.At(0).Epoch.ID, settledID(t)
		for i := 1; i < t.Len(); i++ {
			k := t.At(i)
			s.has = append(s.has, itemPrint(printEpoch, uint64(table), k.Epoch.ID, 0))
			for _, a := range k.Acks {
				s.has = append(s.has, itemPrint(printAck, uint64(table), a.ID, a.By))
			}
		}
	}
	s.has = s.has[:min(len(s.has), MaxHas)]
	slices.Sort(s.has)
	s.has = slices.Compact(s.has)
	return s
}

func (o *Agent) table(i int) *epoch.Table {
	if i == 0 {
		return o.region
	}
	return o.local
}

// fillSection says what this daemon has of a table, and adds what the peer
// lacks once it has said what that is.
func (o *Agent) fillSection(l *link, table int, s *Section, room *int) (news bool) {
	is := o.standing(table)
	s.Base, s.Settled, s.Has = is.base, is.settled, is.has
	if l.heardAt < 0 {
		return false
	}
	t, said := o.table(table), &l.tables[table]
	if base := t.At(0); said.settled.Before(base.Epoch.ID) &&
		o.wants(l, itemPrint(printClaim, uint64(table), base.Epoch.ID, 0)) {
		c := t.Claim()
		s.Claim, news = &c, true
		*room -= epochBytes(&base.Epoch)
	}
	for i := 1; i < t.Len(); i++ {
		k := t.At(i)
		if !said.base.Before(k.Epoch.ID) {
			continue
		}
		id, known := k.Epoch.ID, true
		if p := itemPrint(printEpoch, uint64(table), id, 0); !contains(said.has, p) {
			if known = l.sent[p].times > 0; *room > 0 && o.wants(l, p) {
				s.Epochs = append(s.Epochs, k.Epoch)
				*room -= epochBytes(&k.Epoch)
				known, news = true, true
			}
		}
		for _, a := range k.Acks {
			p := itemPrint(printAck, uint64(table), id, a.By)
			if known && *room > 0 && !contains(said.has, p) && o.wants(l, p) {
				s.Acks = append(s.Acks, a)
				*room -= ackBytes(&a)
				news = true
			}
		}
	}
	return news
}

// fillVotes adds the votes that the peer lacks.
func (o *Agent) fillVotes(l *link, m *Message, room *int) (news bool) {
	for _, v := range o.votes {
		p := itemPrint(printVote, 0, v.Ack.ID, v.Daemon)
		if *room <= 0 || contains(l.voted, p) || !l.tables[0].base.Before(v.Ack.ID) || !o.wants(l, p) {
			continue
		}
		m.Votes = append(m.Votes, v)
		*room -= ackBytes(&v.Ack) + 16*len(v.Locals)
		news = true
	}
	return news
}

// About how many bytes an item takes.
func epochBytes(e *epoch.Epoch) int {
	return 64 + 20*len(e.Members) + 20*len(e.Retired) + len(e.Rules)*(10+3*len(e.Members))
}

func ackBytes(a *epoch.Ack) int {
	return 64 + 20*len(a.Before) + 20*len(a.Horizons) + 24*len(a.Held)
}

func contains(sorted []uint64, p uint64) bool {
	_, ok := slices.BinarySearch(sorted, p)
	return ok
}
