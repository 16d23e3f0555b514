package control

import (
	"errors"
	"fmt"
	"slices"
)

// after returns the record after a committed entry, and why the entry was
// refused if it was: it then changes the version alone.
func (r *Record) after(it *Item) (*Record, error) {
	at := Version{r.Version.Recovery, it.Index}
	switch {
	case it.Voter != nil:
		return r.withVoter(at, *it.Voter, it.Remove), nil
	case it.Entry != nil:
		e, err := DecodeEntry(it.Entry)
		if err == nil {
			return r.apply(at, e)
		}
		next := *r
		next.Version = at
		return &next, err
	}
	next := *r
	next.Version = at
	return &next, nil
}

// follow brings this daemon up to date from a message, and answers a sender
// that lags.
func (n *Node) follow(p *peer, m *Message) {
	if m.Base != nil {
		n.takeBase(p, m.Base)
	}
	n.takeEntries(m)
	if n.record == nil {
		return
	}
	here, there := n.record.Version, m.Version
	switch order := there.Compare(here); {
	case m.Cluster == 0:
		n.sendDifference(p, Version{})
	case there.Recovery.Number == here.Recovery.Number && there.Recovery != here.Recovery:
		n.events.AddOnce(Split, p.Name, there.Recovery.Random.String(), fmt.Sprintf(
			"recovery %d is %v there and %v here", here.Recovery.Number, there.Recovery.Random, here.Recovery.Random))
	case order < 0:
		n.sendDifference(p, there)
	case order > 0 && n.at-p.askedAt >= n.cfg.Heartbeat:
		p.askedAt = n.at
		n.send(p, Message{}) // it answers a lower version with the difference
	}
}

// takeBase adopts the record of a peer if it is later than the one here.
func (n *Node) takeBase(p *peer, data []byte) {
	r, err := DecodeRecord(data)
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
		case here.Version.Index > r.From.Index && here.Version.Recovery == r.From.Recovery:
			n.events.Add(TailDropped, p.Name, fmt.Sprintf(
				"entries %d to %d: recovery %d begins before them", r.From.Index+1, here.Version.Index, r.Version.Recovery.Number))
		}
	}
	n.adopt(r)
}

// takeEntries applies the entries of a message that follow the record.
func (n *Node) takeEntries(m *Message) {
	if n.record == nil || m.Version.Recovery != n.record.Version.Recovery || m.After > n.record.Version.Index || n.diverged {
		return
	}
	for i := range m.Entries {
		if it := &m.Entries[i]; it.Index == n.record.Version.Index+1 {
			n.apply(it)
		}
	}
}

// adopt replaces the record.
func (n *Node) adopt(r *Record) {
	r.Hash()
	n.record, n.log, n.diverged = r, nil, false
	n.queue(stored{Base: r.Encode()})
	n.resolve()
	n.followVoters()
}

// apply applies the next committed entry.
func (n *Node) apply(it *Item) {
	next, err := n.record.after(it)
	if diverged, ok := errors.AsType[*DivergedError](err); ok && !n.leads() {
		n.diverged = true
		n.events.Add(Diverged, "", diverged.Error())
	}
	switch {
	case it.Voter != nil && it.Remove:
		n.events.Add(VoterRemoved, "", it.Voter.Daemon.String())
	case it.Voter != nil && !it.Voter.Learner:
		n.events.Add(VoterAdded, "", it.Voter.Daemon.String())
	case it.Entry != nil && next.Changes > n.record.Changes:
		n.events.Add(Applied, "", next.History[len(next.History)-1].Text)
	}
	next.Hash()
	n.record = next
	n.log = append(n.log, *it)
	if len(n.log) >= 2*n.cfg.Entries {
		n.log = slices.Clone(n.log[len(n.log)-n.cfg.Entries:])
	}
	n.queue(stored{Item: it})
	n.resolve()
}

// push sends the latest entries, after an index, to those that depend on this
// voter: the leader to all daemons, others to those of their region.
func (n *Node) push(after uint64) {
	for _, p := range n.peers {
		if n.leads() || p.Region == n.cfg.Region {
			n.sendDifference(p, Version{n.record.Version.Recovery, after})
		}
	}
}

// sendDifference sends the later entries, or the record, to a daemon.
func (n *Node) sendDifference(p *peer, have Version) {
	here := n.record.Version
	first := here.Index + 1 - uint64(len(n.log))
	if have.Recovery != here.Recovery || have.Index+1 < first {
		n.send(p, Message{Base: n.record.Encode()})
		return
	}
	m, size := Message{After: have.Index}, 0
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

// compare compares versions with a neighbor, each time another one. A record
// that diverged is replaced by that of the leader.
func (n *Node) compare() {
	if n.at < n.due.compare || len(n.peers) == 0 {
		return
	}
	n.due.compare = n.at + n.between(n.cfg.Compare*3/4, n.cfg.Compare*5/4)
	if p := n.byID(n.leader()); n.diverged && p != nil {
		n.send(p, Message{})
		return
	}
	n.send(n.peers[n.rng.IntN(len(n.peers))], Message{})
}

// confirm asks for a version that was current after this daemon started.
func (n *Node) confirm() {
	if n.starting == 0 || n.record == nil {
		return
	}
	if n.needed != nil {
		if n.record.Version.Compare(*n.needed) >= 0 {
			n.starting, n.needed = 0, nil
		}
		return
	}
	if n.at < n.due.ask {
		return
	}
	n.due.ask = n.at + n.cfg.Retry
	if n.leads() {
		n.raft.ask(n.address, n.starting)
		return
	}
	leader := n.leader()
	for _, p := range n.peers {
		if p.heardAt >= 0 && (p.sender.ID == leader || p.Region == n.cfg.Region && !p.sender.Starting) {
			n.send(p, Message{Ask: n.starting})
		}
	}
}

// answerAsk answers the question of a peer, and takes an answer.
func (n *Node) answerAsk(p *peer, m *Message) {
	switch {
	case m.Ask == 0 || n.record == nil:
	case n.leads():
		n.raft.ask(p.Address, m.Ask)
	case p.Region == n.cfg.Region && n.starting == 0:
		n.send(p, Message{Answer: &Answer{m.Ask, n.record.Version}})
	}
	if m.Answer != nil {
		n.confirmed(m.Answer)
	}
}

func (n *Node) confirmed(t *Answer) {
	if t.Ask == n.starting && n.starting != 0 {
		n.needed = &t.Version
		n.confirm()
	}
}

// Starting reports whether the daemon does not know yet whether its record is
// current: neither the leader nor a daemon of its region confirmed it since it
// started.
func (n *Node) Starting() bool { return n.starting != 0 }
