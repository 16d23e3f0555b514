package control

import (
	"errors"
	"fmt"
	"slices"
)

// after returns the record after a committed entry, as Record.apply does.
func (r *Record) after(it *Item) (*Record, error) {
	at := Version{r.Version.Recovery, it.Index}
	switch {
	case it.Voter != nil:
		return r.withVoter(at, *it.Voter, it.Remove), nil
	case it.Entry != nil:
		e, err := DecodeEntry(it.Entry)
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
			n.want(p)
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
	case order == 0 && m.Hash != n.record.Hash() && p.sender.ID == n.leader() && !n.leads():
		n.diverge(fmt.Sprintf("version %v is %s here and %s at the leader", here, n.record.Hash(), m.Hash))
	}
	switch {
	case order > 0:
		n.want(p)
	case order < 0 && m.Want:
		sendDifference(n, p, m.Cluster, there)
	case order < 0:
		n.send(p, Message{}) // it learns that it lags
	}
}

// want requests the missing entries, or the record, from one peer at a time.
func (n *Node) want(p *peer) {
	if n.at >= n.due.want {
		n.due.want = n.at + n.cfg.Heartbeat
		n.send(p, Message{Want: true})
	}
}

// takeBase adopts the record of a peer if it is later than the one here.
func (n *Node) takeBase(p *peer, m *Message) {
	if n.record != nil && !n.diverged && m.Version.Compare(n.record.Version) <= 0 {
		return // the version is that of the base, or a later one
	}
	r, err := unpackRecord(m.Base)
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
	n.notices.generations(r)
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
	next, err := n.record.after(it)
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
	if errors.Is(err, errVoid) {
		n.requests.void()
	}
	next.Hash()
	n.notices.generations(next)
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

// compare compares versions with a neighbor, each time another one. A record
// that diverged is replaced by that of the leader.
func (n *Node) compare() {
	if n.at < n.due.compare || len(n.peers) == 0 {
		return
	}
	n.due.compare = n.at + n.between(n.cfg.Compare*3/4, n.cfg.Compare*5/4)
	if p := n.byID(n.leader()); n.diverged && p != nil {
		n.send(p, Message{Want: true})
		return
	}
	n.send(n.peers[n.rng.IntN(len(n.peers))], Message{})
}
