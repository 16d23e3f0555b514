package control

import (
	"errors"
	"fmt"
	"time"
)

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
// leader is known for some time, and all daemons of its region that are heard
// are starting too.
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
