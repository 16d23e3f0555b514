package daemon

import (
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
)

// refusedByAll returns an error if no peer can use the counts of this daemon:
// no stream is up, and each peer differs in the secret, the shards or the
// version of the protocol, or one side does not take the other's certificate.
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
