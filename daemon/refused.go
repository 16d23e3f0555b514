package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/georld/rld/daemon/regions"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/replica"
)

// refusedByAll returns an error if no peer can use the counts of this daemon:
// no stream is up, and each peer differs in the secret, the shards or the
// version of the protocol, or one side does not accept the other's certificate,
// as when it is revoked.
func refusedByAll(streams []link.Stream) error {
	var latest *link.Refused
	for i := range streams {
		var r *link.Refused
		if s := &streams[i]; s.State == link.StateUp || !errors.As(s.Err, &r) {
			return nil
		}
		switch r.Reason {
		case link.ReasonSecret, link.ReasonShards, link.ReasonVersion, link.ReasonIdentity, link.ReasonRevoked:
		default:
			return nil
		}
		latest = r
	}
	if latest == nil {
		return nil
	}
	return fmt.Errorf("all peers refuse this daemon, so it would count alone: %w", latest)
}

// meetRegions makes the table of regions, and sets how streams use it.
func (c *cluster) meetRegions(streams *link.Config) {
	record := func() []string { return nil }
	if c.control != nil {
		record = c.control.listed
	}
	c.known = regions.New(regions.Config{
		Own: c.self.Region, Addr: c.self.Addr, Settings: c.configured, Record: record, Networks: c.networks, Log: c.log,
	})
	c.dir.listed, c.dir.dialable = c.known.Listed, c.known.Dialable
	streams.Admit, streams.MayDial = c.known.Admit, c.mayDial
}

// mayDial returns why an IP address that an address resolved to is not dialed.
// Those of the settings always are.
func (c *cluster) mayDial(addr string, ip netip.Addr) error {
	c.mu.Lock()
	region, learned := c.dir.learned(addr)
	c.mu.Unlock()
	if !learned {
		return nil
	}
	return c.known.MayDial(region, addr, ip)
}

// candidateFrame handles a frame of a daemon of an unlisted region: its part in
// the control log.
func (c *cluster) candidateFrame(from link.Hello, in *replica.Inbound) error {
	if !c.known.Seen(from.Member.Region) {
		return nil // its place is another's by now
	}
	c.mu.Lock()
	crowded := c.dir.crowded(from.Member)
	c.mu.Unlock()
	if crowded {
		c.known.DropDaemon(from.Member.Region, from.String())
		return nil
	}
	c.introduceMember(from.Member)
	if in.Control == nil {
		c.known.DropFrame(from.Member.Region, from.String())
		return nil
	}
	return (&replica.Inbound{Control: in.Control}).Deliver(c)
}

// introduce adds the sender of a rejected frame to the directory if it is an
// unknown daemon of another region. So regions connect when only one of them
// has the address of the other.
func (c *cluster) introduce(from link.Hello, err error) {
	_, unknown := errors.AsType[*gossip.UnknownSenderError](err)
	if !unknown || from.Member.Region == c.self.Region {
		return
	}
	c.introduceMember(from.Member)
}

// introduceMember adds a daemon of another region to the directory.
func (c *cluster) introduceMember(m gossip.Member) {
	c.mu.Lock()
	news := c.dir.introduce(m)
	c.mu.Unlock()
	if news {
		c.update(func(*directory) {})
	}
}

// noteAlone marks the answers of a daemon that all peers refuse.
func (c *cluster) noteAlone() {
	err := refusedByAll(c.host.Streams())
	if alone := err != nil; alone != c.alone {
		c.alone = alone
		c.engine.SetAlone(alone)
		if alone {
			c.log.Error("all peers refuse this daemon: it is not ready, and its answers lack the counts of others",
				"event", "alone", "error", err)
		} else {
			c.log.Info("a peer accepts this daemon again", "event", "alone")
		}
	}
}

// willing removes the members whose handshake fails, because one side refuses
// the other. They cannot receive messages, so they get no share of the work.
// The log and the metrics name them.
func (c *cluster) willing(members []gossip.Member) []gossip.Member {
	refused := map[string]bool{}
	for _, s := range c.host.Streams() {
		if _, no := errors.AsType[*link.Refused](s.Err); no && !s.Incoming && s.State != link.StateUp {
			refused[s.Addr] = true
		}
	}
	return slices.DeleteFunc(members, func(m gossip.Member) bool { return refused[m.Addr] && m.ID != c.self.ID })
}
