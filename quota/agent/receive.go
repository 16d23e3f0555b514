package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// Errors of Receive for errors.Is.
var (
	// ErrNotPeer is for a message from a daemon that is not among the peers,
	// or that differs from its membership.
	ErrNotPeer = errors.New("sender is not a peer")
	// ErrGenesis is for a message from a daemon of another cluster, or of
	// another generation of the region.
	ErrGenesis = errors.New("began with another cluster, or with another generation of the region")
)

// farAhead is how far ahead of the clock an epoch may have been proposed. Those
// beyond it would stand above all later ones.
const farAhead = int64(time.Minute / time.Millisecond)

// Receive merges a message. now is the window clock in Unix milliseconds. After
// an error nothing was merged. A rejected item is an Event.
func (a *Agent) Receive(at time.Duration, now int64, m *Message) error {
	a.clock(at)
	a.now = now
	l, err := a.sender(m)
	if err != nil {
		a.refused(m.Name, err)
		return fmt.Errorf("rights: %w", err)
	}
	l.receivedAt = at
	if m.Stamp >= l.stamp {
		l.stamp, l.ready, l.leaving, l.diskless = m.Stamp, m.Ready, m.Leaving, m.Diskless
		if l.member = m.Member; l.local {
			a.names.remember(m.Member, m.Name)
		}
		l.period = max(l.period, m.Heard)
		for i, s := range []*Section{&m.Regions, &m.Daemons} {
			l.tables[i] = known{s.Base, s.Settled, s.Has}
		}
		l.tables[voteTable].has = m.HasVotes
		l.revision = 0
	}
	a.takeSection(l, regionTable, &m.Regions)
	if l.local {
		a.takeSection(l, daemonTable, &m.Daemons)
		a.takeVotes(l, m)
		a.takeExtension(l, m)
	}
	if err := a.demand.take(l, m, now); err != nil {
		a.refused(l.peer.Name, err)
	}
	a.catchUp(l)
	a.advance()
	return nil
}

// sender returns the link of the sender, or an error if the message is
// rejected.
func (a *Agent) sender(m *Message) (*link, error) {
	if m.To != a.self {
		return nil, fmt.Errorf("message for %s: want one for %s", m.To, a.self)
	}
	l := a.links.find(m.From)
	if l == nil {
		return nil, fmt.Errorf("message of %s: %w: want a live peer", m.From, ErrNotPeer)
	}
	if m.Name != l.peer.Name || m.Region != l.peer.Region {
		return nil, fmt.Errorf("message of %q in %q: %w: %s is %q in %q",
			m.Name, m.Region, ErrNotPeer, m.From, l.peer.Name, l.peer.Region)
	}
	if m.Member == 0 || m.Member == a.cfg.Self {
		return nil, fmt.Errorf("message of %q as participant %016x: %w: want one of its own", m.Name, m.Member, ErrNotPeer)
	}
	if from, dead := a.members.deadFrom(m.Member); dead {
		return nil, fmt.Errorf("message of %q as participant %016x: %w: it is dead from %d on", m.Name, m.Member, ErrNotPeer, from)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if m.Genesis[0] != a.genesis[0] || l.local && m.Genesis[1] != a.genesis[1] {
		return nil, fmt.Errorf("message of %q: it %w: want those of this daemon",
			m.Name, ErrGenesis)
	}
	if !l.local && (!m.Daemons.Empty() || len(m.Votes) > 0 || m.Extension != nil) {
		return nil, fmt.Errorf("message of %q in %q: want nothing about daemons across regions", m.Name, m.Region)
	}
	return l, nil
}

// refuse adds an event for a rejected item, except for late ones.
func (a *Agent) refuse(l *link, table int, err error) {
	if err != nil && !errors.Is(err, epoch.ErrStale) && !errors.Is(err, epoch.ErrUnknown) {
		a.refused(l.peer.Name, fmt.Errorf("%s: %w", tableNames[table], err))
	}
}

// takeSection merges the section of one table.
func (a *Agent) takeSection(l *link, table int, s *Section) {
	t := a.table(table)
	if c := s.Claim; c != nil {
		err := a.plausible(table, &c.Base)
		if err == nil {
			err = t.TakeClaim(*c)
		}
		a.refuse(l, table, err)
	}
	for i := range s.Epochs {
		e := &s.Epochs[i]
		if t.Knows(e.ID) {
			continue
		}
		err := a.plausible(table, e)
		if err == nil {
			err = t.Learn(*e)
		}
		if err != nil {
			a.refuse(l, table, err)
			continue
		}
		a.origins.note(a.at, itemPrint(printEpoch, uint64(table), e.ID, 0), l)
		a.learned[table] = a.at
		a.changes++
	}
	for i := range s.Acks {
		a.takeAck(l, table, &s.Acks[i])
	}
}

// takeAck records an acknowledgement that is not known yet. Only this daemon
// makes its own.
func (a *Agent) takeAck(l *link, table int, ack *epoch.Ack) {
	t := a.table(table)
	if ack.By == t.Owner() && table == daemonTable {
		return
	}
	for i := range t.Len() {
		k := t.At(i)
		if k.Epoch.ID == ack.ID && hasAck(&k, ack.By) {
			return
		}
	}
	if err := t.TakeAck(*ack); err != nil {
		a.refuse(l, table, err)
		return
	}
	a.origins.note(a.at, itemPrint(printAck, uint64(table), ack.ID, ack.By), l)
	a.changes++
}

// plausible returns an error for a well-formed epoch that no agent proposes
// now.
func (a *Agent) plausible(table int, e *epoch.Epoch) error {
	if e.ID.Stamp.Millis() > a.now+farAhead {
		return fmt.Errorf("epoch %s of the future: want it proposed at most %d ms after %d", e.ID, farAhead, a.now)
	}
	return plausible(table, e)
}

// plausible returns an error for a well-formed epoch that is not one of the
// table.
func plausible(table int, e *epoch.Epoch) error {
	switch {
	case table == regionTable && e.Horizon != 0:
		return fmt.Errorf("epoch %s with a horizon of %d ms: want none among regions", e.ID, e.Horizon)
	case table == regionTable && e.Total() > epoch.Whole:
		return fmt.Errorf("epoch %s of %d in all: want at most %d", e.ID, e.Total(), epoch.Whole)
	case table == daemonTable && len(e.Rules) > 0:
		return fmt.Errorf("epoch %s with shares of %d rules: want none among daemons", e.ID, len(e.Rules))
	}
	return nil
}

// takeVotes records votes for known epochs.
func (a *Agent) takeVotes(l *link, m *Message) {
	for _, v := range m.Votes {
		switch {
		case v.Ack.By != a.cfg.Generation:
			a.refuse(l, regionTable, fmt.Errorf("vote of %016x for another region", v.Daemon))
		case v.Daemon == a.cfg.Self:
		case !a.region.Knows(v.Ack.ID):
		case a.addVote(v):
			a.origins.note(a.at, itemPrint(printVote, 0, v.Ack.ID, v.Daemon), l)
		}
	}
}

// takeExtension extends the horizon of the sender, and records the extension of
// the own horizon.
func (a *Agent) takeExtension(l *link, m *Message) {
	if x, ok := a.local.ExtendHorizon(m.Member, a.now); ok {
		l.extension = &x
	}
	if m.Extension == nil || m.Extension.To != a.cfg.Self {
		return
	}
	err := fmt.Errorf("horizon extension by %016x from %016x: want its own", m.Extension.By, m.Member)
	if m.Extension.By == m.Member {
		err = a.local.TakeExtension(*m.Extension)
	}
	if err != nil {
		a.refuse(l, daemonTable, err)
		return
	}
	unblock(a)
}

// catchUp makes the daemon ready if it has learned all items of a regional peer
// that is ready.
func (a *Agent) catchUp(l *link) {
	if l.local && l.ready && !a.ready && caughtUp(a, l, regionTable) && caughtUp(a, l, daemonTable) {
		a.becomeReady()
	}
}

// caughtUp reports whether the daemon has all items of a peer's table.
func caughtUp(a *Agent, l *link, table int) bool {
	if settledID(a.table(table)).Before(l.tables[table].settled) {
		return false
	}
	has := a.content(table).has
	return !slices.ContainsFunc(l.tables[table].has, func(p print) bool { return !contains(has, p) })
}

func (a *Agent) becomeReady() {
	if a.leaving {
		return
	}
	a.ready = true
	a.changes++
	a.log.Add(BecameReady, "", "")
}
