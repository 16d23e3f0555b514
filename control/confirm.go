package control

import "time"

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
