package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// Refusals of Receive that a caller may tell apart.
var (
	// ErrNotPeer is for a message of who is not among the peers, or is
	// another than membership says.
	ErrNotPeer = errors.New("of a stranger")
	// ErrGenesis is for a message of who started from another configuration.
	ErrGenesis = errors.New("started from other regions, weights, daemons or another horizon")
)

// farAhead is how far ahead of the clock an epoch may have been proposed.
// Those beyond would stand above all to come.
const farAhead = int64(time.Minute / time.Millisecond)

// Receive takes in a message. now is the label clock in Unix milliseconds. The
// error says what is wrong with the message as a whole, of which nothing was
// then taken; what is wrong with an item is an Event.
func (o *Agent) Receive(at time.Duration, now int64, m *Message) error {
	o.at, o.now = at, now
	l, err := o.sender(m)
	if err != nil {
		o.event(Refused, m.Name, err.Error())
		return fmt.Errorf("rights: %w", err)
	}
	l.heardAt = at
	if m.Stamp >= l.stamp {
		l.stamp, l.ready, l.member, l.fence = m.Stamp, m.Ready, m.Member, m.Fence
		l.voted = m.HasVotes
		l.heard = max(l.heard, m.Heard)
		for i, s := range []*Section{&m.Regions, &m.Daemons} {
			l.tables[i] = said{s.Base, s.Settled, s.Has}
		}
		l.looked = 0
	}
	o.takeSection(l, o.region, 0, &m.Regions)
	if l.local {
		o.takeSection(l, o.local, 1, &m.Daemons)
		o.takeVotes(l, m)
		o.takeGrant(l, m)
	}
	o.takeDemand(l, m)
	o.catchUp(l)
	o.advance()
	return nil
}

// sender returns the link of who sent the message, or why it is refused.
func (o *Agent) sender(m *Message) (*link, error) {
	if m.To != o.self {
		return nil, fmt.Errorf("message for %s: want one for %s", m.To, o.self)
	}
	l := o.link(m.From)
	if l == nil {
		return nil, fmt.Errorf("message of %s: %w: want a live peer", m.From, ErrNotPeer)
	}
	if m.Name != l.peer.Name || m.Region != l.peer.Region {
		return nil, fmt.Errorf("message of %q in %q: %w: %s is %q in %q",
			m.Name, m.Region, ErrNotPeer, m.From, l.peer.Name, l.peer.Region)
	}
	if !sameName(m.Member, memberID(m.Name, 0)) {
		return nil, fmt.Errorf("message of %q as participant %016x: %w: want one of its own",
			m.Name, m.Member, ErrNotPeer)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if m.Genesis[0] != o.genesis[0] || l.local && m.Genesis[1] != o.genesis[1] {
		return nil, fmt.Errorf("message of %q: it %w than this daemon: want the same everywhere, for ever",
			m.Name, ErrGenesis)
	}
	if !l.local && (!m.Daemons.Empty() || len(m.Votes) > 0 || m.Extension != nil) {
		return nil, fmt.Errorf("message of %q in %q: it tells of daemons across regions", m.Name, m.Region)
	}
	return l, nil
}

// tableName is what a table is called in events.
func tableName(table int) string { return [...]string{"regions", "daemons"}[table] }

// refuse notes that an item was not taken, but for what is only late.
func (o *Agent) refuse(l *link, table int, err error) {
	if err != nil && !errors.Is(err, epoch.ErrStale) && !errors.Is(err, epoch.ErrUnknown) {
		o.event(Refused, l.peer.Name, fmt.Sprintf("%s: %v", tableName(table), err))
	}
}

// takeSection takes in what is said of one table.
func (o *Agent) takeSection(l *link, t *epoch.Table, table int, s *Section) {
	if c := s.Claim; c != nil {
		err := o.plausible(table, &c.Base)
		if err == nil {
			err = t.TakeClaim(*c)
		}
		o.refuse(l, table, err)
	}
	for i := range s.Epochs {
		e := &s.Epochs[i]
		if t.Knows(e.ID) {
			continue
		}
		err := o.plausible(table, e)
		if err == nil {
			err = t.Learn(*e)
		}
		if err != nil {
			o.refuse(l, table, err)
			continue
		}
		o.from(itemPrint(printEpoch, uint64(table), e.ID, 0), l)
		o.changes++
	}
	for i := range s.Acks {
		o.takeAck(l, t, table, &s.Acks[i])
	}
}

func (o *Agent) takeAck(l *link, t *epoch.Table, table int, a *epoch.Ack) {
	if a.By == t.Owner() && table == 1 {
		return // only this daemon makes them
	}
	if a.By == l.member && table == 1 && !sameName(a.By, memberID(l.peer.Name, 0)) {
		return
	}
	for i := range t.Len() {
		k := t.At(i)
		if k.Epoch.ID == a.ID && hasAck(&k, a.By) {
			return
		}
	}
	if err := t.TakeAck(*a); err != nil {
		o.refuse(l, table, err)
		return
	}
	o.from(itemPrint(printAck, uint64(table), a.ID, a.By), l)
	o.changes++
}

// plausible returns what is wrong with an epoch here that is right on its own.
func (o *Agent) plausible(table int, e *epoch.Epoch) error {
	switch {
	case e.ID.Stamp.Millis() > o.now+farAhead:
		return fmt.Errorf("epoch %s of the future: want it proposed at most %d ms after %d", e.ID, farAhead, o.now)
	case table == 0 && e.Horizon != 0:
		return fmt.Errorf("epoch %s with a horizon of %d ms: want none among regions", e.ID, e.Horizon)
	case table == 0 && e.Total() > epoch.Whole:
		return fmt.Errorf("epoch %s of %d in all: want at most %d", e.ID, e.Total(), epoch.Whole)
	case table == 1 && len(e.Rules) > 0:
		return fmt.Errorf("epoch %s with %d rows: want none among daemons", e.ID, len(e.Rules))
	}
	return nil
}

// takeVotes keeps votes for epochs that are known.
func (o *Agent) takeVotes(l *link, m *Message) {
	for _, v := range m.Votes {
		switch {
		case v.Daemon == o.member || v.Ack.By != o.ids[o.own]:
			if v.Ack.By != o.ids[o.own] {
				o.refuse(l, 0, fmt.Errorf("vote of %016x for another region", v.Daemon))
			}
		case !o.region.At(0).Epoch.ID.Before(v.Ack.ID) || !o.region.Knows(v.Ack.ID):
		case o.addVote(v):
			o.from(itemPrint(printVote, 0, v.Ack.ID, v.Daemon), l)
		}
	}
}

func (o *Agent) takeGrant(l *link, m *Message) {
	if g, ok := o.local.ExtendHorizon(m.Member, o.now); ok {
		l.grant = &g
	}
	if m.Extension == nil || m.Extension.To != o.member {
		return
	}
	if m.Extension.By != m.Member {
		o.refuse(l, 1, fmt.Errorf("grant of %016x told by %016x: want its own", m.Extension.By, m.Member))
		return
	}
	if err := o.local.TakeExtension(*m.Extension); err != nil {
		o.refuse(l, 1, err)
		return
	}
	o.unblock()
}

// catchUp looks whether the daemon has learned all that the peer said it has.
// With a ready one of its region that makes it ready.
func (o *Agent) catchUp(l *link) {
	if !l.ready || o.ready && !o.listening || !o.caughtUp(l, 0) {
		return
	}
	if !l.local {
		o.abroad = true
	} else if o.caughtUp(l, 1) {
		o.owner, o.abroad = true, true
		if !o.ready {
			o.becomeReady()
		}
	}
	o.listen()
}

// caughtUp reports whether the daemon has all of a table that the peer said it
// has.
func (o *Agent) caughtUp(l *link, table int) bool {
	if settledID(o.table(table)).Before(l.tables[table].settled) {
		return false
	}
	has := o.standing(table).has
	for _, p := range l.tables[table].has {
		if !contains(has, p) {
			return false
		}
	}
	return true
}

// listenFor is how long a restarted daemon holds nothing while nobody tells it
// what happened since.
const listenFor = 5 * time.Second

// listen ends the listening of a restarted daemon when it has heard its region
// and another one, as far as there are any, or for long enough. It may have
// been retired while it was down.
func (o *Agent) listen() {
	if !o.listening {
		return
	}
	s, _ := o.local.Settled()
	owner := o.owner || len(s.Members) == 1 && s.Has(o.member)
	abroad := o.abroad || len(o.cfg.Regions) == 1
	if owner && abroad || o.started >= 0 && o.at-o.started >= listenFor {
		o.listening = false
		o.version++
	}
}

func (o *Agent) becomeReady() {
	o.ready = true
	o.changes++
	o.event(BecameReady, "", "")
}
