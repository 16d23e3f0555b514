package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// after returns the record after a committed entry, as Record.apply does, for a
// daemon that reads formats up to a number. It is nil for an entry that the
// daemon cannot apply: the error of one of a newer format is a *FormatError.
func (r *Record) after(it *Item, reads int) (*Record, error) {
	at := Version{r.Version.Recovery, it.Index}
	switch {
	case it.Voter != nil:
		return r.withVoter(at, *it.Voter, it.Remove), nil
	case it.Entry != nil:
		e, err := r.readEntry(it.Entry, reads)
		if errors.Is(err, errVoid) {
			return r.at(at, false), err
		}
		if err != nil {
			return nil, err
		}
		return r.apply(at, e)
	}
	return r.at(at, false), nil
}

// follow brings this daemon up to date from a message, and a sender that asks
// for it.
func (n *Node) follow(p *peer, m *Message) {
	if m.Base != nil {
		n.takeBase(p, m)
	}
	n.takeEntries(m)
	if n.record == nil {
		if m.Cluster != 0 {
			n.want(p, m)
		}
		return
	}
	here, there := n.record.Version, m.Version
	order := there.Compare(here)
	switch {
	case m.Cluster == 0:
		order = -1
	case there.Recovery.Number == here.Recovery.Number && there.Recovery != here.Recovery:
		n.events.AddOnce(Split, p.Name, there.Recovery.Random.String(), fmt.Sprintf(
			"recovery %d is %v there and %v here", here.Recovery.Number, there.Recovery.Random, here.Recovery.Random))
		return
	case order == 0 && m.Hash != n.record.shortHash() && p.sender.ID == n.leader() && !n.leads():
		n.diverge(fmt.Sprintf("version %v is %08x here and %08x at the leader", here, n.record.shortHash(), m.Hash))
	}
	switch {
	case order > 0:
		n.want(p, m)
	case order < 0 && m.Want:
		sendDifference(n, p, m.Cluster, there)
	case order < 0:
		n.send(p, Message{}) // it learns that it lags
	}
}

// want requests the missing entries, or the record, from one peer at a time,
// unless this daemon cannot read them.
func (n *Node) want(p *peer, m *Message) {
	if n.at >= n.due.want && !n.formats.cannotRead(m.Version.Recovery) {
		n.due.want = n.at + n.cfg.Heartbeat
		n.send(p, Message{Want: true})
	}
}

// takeBase adopts the record of a peer if it is later than the one here.
func (n *Node) takeBase(p *peer, m *Message) {
	if n.record != nil && !n.diverged && m.Version.Compare(n.record.Version) <= 0 {
		return // the version is that of the base, or a later one
	}
	r, err := unpackRecord(m.Base, n.cfg.Format)
	if f, newer := errors.AsType[*FormatError](err); newer {
		n.formats.leaveUnread(m.Version.Recovery, f)
		return
	}
	if err != nil {
		n.events.AddOnce(Rejected, p.Name, "record", err.Error())
		return
	}
	if here := n.record; here != nil {
		switch {
		case r.Cluster.ID != here.Cluster.ID, r.Version.Recovery.Number < here.Version.Recovery.Number:
			return
		case r.Version.Recovery == here.Version.Recovery:
			if fix := n.diverged && p.sender.ID == n.leader(); !fix && r.Version.Index <= here.Version.Index ||
				fix && r.Version.Index < here.Version.Index {
				return
			}
		case r.Version.Recovery.Number == here.Version.Recovery.Number:
			return // a split
		}
		n.dropTail(r, p.Name)
	}
	n.adopt(r)
}

// takeEntries applies the entries of a message that follow the record.
func (n *Node) takeEntries(m *Message) {
	if n.record == nil || m.Log != n.record.Version.Recovery {
		return
	}
	for i := range m.Entries {
		if it := &m.Entries[i]; it.Index == n.record.Version.Index+1 && !n.diverged {
			n.apply(it)
		}
	}
}

// adopt replaces the record.
func (n *Node) adopt(r *Record) {
	r.Hash()
	n.notices.compare(r)
	n.formats.adopts(r.Version.Recovery)
	n.rights.follow(r)
	n.record, n.log, n.diverged = r, nil, false
	n.queue(stored{Base: n.form.encoded(n.record)})
	n.limits.store()
	n.runs.checkSelf()
	resolve(n)
	n.followVoters()
}

// appliedEvent returns the event of an entry that changed the record.
func appliedEvent(it *Item) (kind EventKind, peer, text string) {
	e, err := DecodeEntry(it.Entry)
	if err != nil { // it was decoded before
		return Applied, "", err.Error()
	}
	if e.Limits != nil && e.Limits.InForce != nil {
		return LimitsInForce, "", e.Command.Text
	}
	return Applied, "", e.Command.Text
}

// apply applies the next committed entry.
func (n *Node) apply(it *Item) {
	next, err := n.record.after(it, n.cfg.Format)
	if f, newer := errors.AsType[*FormatError](err); newer {
		n.formats.leaveUnread(n.record.Version.Recovery, f) // and go on with this record
		return
	}
	if next == nil {
		n.abstain(fmt.Sprintf("entry %d: %v", it.Index, err)) // and go on with this record
		return
	}
	if diverged, ok := errors.AsType[*DivergedError](err); ok && !n.leads() {
		n.diverge(diverged.Error())
	}
	switch {
	case it.Voter != nil && it.Remove:
		n.events.Add(VoterRemoved, "", it.Voter.Daemon.String())
	case it.Voter != nil && !it.Voter.Learner:
		n.events.Add(VoterAdded, "", it.Voter.Daemon.String())
	case it.Entry != nil && next.Changes > n.record.Changes:
		if o := next.Outcomes[len(next.Outcomes)-1]; o.Refused != "" {
			n.events.Add(CommandRefused, "", o.Refused)
		} else {
			n.events.Add(appliedEvent(it))
		}
	}
	next.Hash()
	n.notices.compare(next)
	n.rights.follow(next)
	n.record = next
	n.runs.checkSelf()
	n.queue(stored{Log: next.Version.Recovery, Item: it})
	n.limits.store()
	n.log = append(n.log, *it)
	if len(n.log) >= 2*n.cfg.Entries {
		n.log = slices.Clone(n.log[len(n.log)-n.cfg.Entries:])
	}
	resolve(n)
}

// diverge notes that the record differs from that of the leader, which will
// replace it.
func (n *Node) diverge(how string) {
	if !n.diverged {
		n.diverged = true
		n.events.Add(Diverged, "", how)
	}
}

// push sends the latest entries, after an index, to those that depend on this
// voter: the leader to all daemons, others to those of their region.
func push(n *Node, after uint64) {
	for _, p := range n.peers {
		if n.leads() || p.Region == n.cfg.Region {
			sendDifference(n, p, n.record.Cluster.ID, Version{n.record.Version.Recovery, after})
		}
	}
}

// sendDifference sends the later entries to a daemon that has a version, or the
// record if it lags far behind.
func sendDifference(n *Node, p *peer, cluster Number, have Version) {
	here := n.record.Version
	first := here.Index + 1 - uint64(len(n.log))
	if cluster == 0 || have.Recovery != here.Recovery || have.Index+1 < first {
		if n.at-p.baseAt >= n.cfg.Heartbeat/2 {
			p.baseAt = n.at
			n.send(p, Message{Base: n.form.packed(n.record)})
		}
		return
	}
	m, size := Message{Log: here.Recovery}, 0
	for _, it := range n.log[min(have.Index+1-first, uint64(len(n.log))):] {
		size += len(it.Entry) + 128
		if n := len(m.Entries); n == MaxEntries || n > 0 && size > fillBytes {
			break
		}
		m.Entries = append(m.Entries, it)
	}
	if len(m.Entries) > 0 {
		n.send(p, m)
	}
}

// compare compares versions with the neighbor that got no message for the
// longest time. At rest each one gets two within the time in which this daemon
// counts as live. A record that diverged is replaced by that of the leader.
func (n *Node) compare() {
	if n.at < n.due.compare || len(n.peers) == 0 {
		return
	}
	n.due.compare = n.at + n.between(n.cfg.Compare*3/4, n.cfg.Compare*5/4)
	if p := n.byID(n.leader()); n.diverged && p != nil {
		n.send(p, Message{Want: true})
		return
	}
	if p := longestUnsent(n); !rests(n, p) || n.at-p.sentAt >= n.cfg.patience(len(n.peers))/2 {
		n.send(p, Message{})
	}
}

// longestUnsent returns the peer that got no message for the longest time, any
// of several.
func longestUnsent(n *Node) *peer {
	at := n.rng.IntN(len(n.peers))
	least := n.peers[at]
	for _, part := range [][]*peer{n.peers[at:], n.peers[:at]} {
		for _, p := range part {
			if p.sentAt < least.sentAt {
				least = p
			}
		}
	}
	return least
}

// restAfter is the time without a change until a daemon is at rest, in
// Config.Compare.
const restAfter = 5

// rests reports whether this daemon is at rest for a peer: a leader is known,
// and what all its messages contain, beside the clock, has not changed for some
// time, nor since the latest message to the peer.
func rests(n *Node, p *peer) bool {
	is := Message{Statement: Statement{Sender: n.sender()}}
	if is.Sender.Clock = 0; n.record != nil {
		is.Version = n.record.Version
	}
	stated, err := json.Marshal(&is)
	if err != nil {
		return false // it is sent, and the driver reports why it cannot be
	}
	if !bytes.Equal(stated, n.stated) {
		n.stated, n.statedAt = stated, n.at
	}
	return n.record != nil && !n.Starting() && n.leader() != (ID{}) &&
		p.sentAt > n.statedAt && n.at-n.statedAt >= restAfter*n.cfg.Compare
}

// confirmation is the end of a start: the daemon asks for a version that was
// current after it started, and waits until it has stored that.
type confirmation struct {
	node *Node
	// question identifies the question, 0 after the start.
	question Number
	needed   *Version // that the answer named
	storing  bool     // the needed version
	due      time.Duration
}

// begin makes the daemon ask, or ask again.
func (c *confirmation) begin() {
	if !c.storing {
		c.question, c.needed = c.node.number(), nil
	}
}

// turn stores the version that was needed, or sends the question again.
func (c *confirmation) turn() {
	n := c.node
	if c.question == 0 || n.record == nil || c.storing {
		return
	}
	if c.needed != nil {
		if n.record.Version.Compare(*c.needed) >= 0 && !n.diverged {
			c.storing = true
			n.afterStore(func() { c.question, c.needed, c.storing = 0, nil, false })
		}
		return
	}
	if n.at < c.due {
		return
	}
	c.due = n.at + n.cfg.Retry
	if n.leads() {
		n.raft.ask(n.address, c.question)
		return
	}
	leader := n.leader()
	for _, p := range n.peers {
		if p.heardAt >= 0 && (p.sender.ID == leader || p.Region == n.cfg.Region && !p.sender.Starting) {
			n.send(p, Message{Ask: c.question})
		}
	}
}

// receive answers the question of a peer, and takes an answer.
func (c *confirmation) receive(p *peer, m *Message) {
	n := c.node
	switch {
	case m.Ask == 0 || n.record == nil || n.diverged:
	case n.leads():
		n.raft.ask(p.Address, m.Ask)
	case p.Region == n.cfg.Region && c.question == 0:
		n.send(p, Message{Answer: &Answer{m.Ask, n.record.Version}})
	}
	if m.Answer != nil {
		c.answered(m.Answer)
	}
}

// answered takes an answer to the question.
func (c *confirmation) answered(a *Answer) {
	if a.Ask == c.question && c.question != 0 {
		c.needed = &a.Version
		c.turn()
	}
}

// Starting reports whether the daemon does not know yet whether its record is
// current: neither the leader nor a daemon of its region confirmed it since it
// started, and then it was stored.
func (n *Node) Starting() bool { return n.confirmation.question != 0 }

// Cut reports whether the daemon is starting and nobody confirms its record: no
// leader is known for some time, and all live daemons of its region are
// starting too.
func (n *Node) Cut() bool {
	if n.record == nil || !n.Starting() || !n.notices.lost || n.leader() != (ID{}) {
		return false
	}
	for _, p := range n.peers {
		if p.heardAt >= 0 && p.Region == n.cfg.Region && !p.sender.Starting {
			return false
		}
	}
	return true
}

// Resume ends the start of a daemon whose region restarted while it was cut off
// from the leader. It is an operator's statement that the region, and the
// daemon, were not removed meanwhile: if they were, limits are exceeded by what
// they admit. Daemons of the region that are starting then get the answer of
// this one. With dryRun it only checks the request.
func (n *Node) Resume(author, reason string, dryRun bool) error {
	switch {
	case n.record == nil:
		return ErrNoCluster
	case !n.Starting():
		return errors.New("control: the record of this daemon is confirmed: there is nothing to resume")
	case n.record.Region(n.cfg.Region) == nil:
		return fmt.Errorf("control: region %q is not in the record: add it with rld region add", n.cfg.Region)
	case !n.Cut():
		return errors.New("control: the leader, or a daemon of the region, confirms the record of this daemon, or that takes some seconds: wait for it")
	case n.diverged, n.abstains != "":
		return errors.New("control: the record of this daemon is not usable: resume at another daemon of the region")
	}
	for _, p := range n.peers {
		if p.heardAt >= 0 && p.foreign == 0 && p.version.Compare(n.record.Version) > 0 {
			return fmt.Errorf("control: %s has version %v, and this daemon %v: resume there", p.Name, p.version, n.record.Version)
		}
	}
	if err := checkTexts(author, reason); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	if dryRun {
		return nil
	}
	c := &n.confirmation
	c.storing = true
	self := n.self
	n.queue(stored{Self: &self})
	n.afterStore(func() {
		c.question, c.needed, c.storing = 0, nil, false
		n.events.Add(Resumed, "", fmt.Sprintf("region %s goes on with version %v, as %s states that it was not removed", n.cfg.Region, n.record.Version, author))
	})
	return nil
}
