package daemon

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/telemetry"
)

// status tells people and metrics how a cluster is. It is safe for concurrent
// use.
type status struct {
	c *cluster

	mu    sync.Mutex // guards what follows
	since map[crdt.Incarnation]time.Time
	rates map[string]*meter // by address
}

func newStatus(c *cluster) *status {
	return &status{c: c, since: map[crdt.Incarnation]time.Time{}, rates: map[string]*meter{}}
}

// ClusterStats returns the numbers of now. See telemetry.Cluster.
func (s *status) ClusterStats() telemetry.ClusterStats {
	c := s.c
	at := c.engine.Now()
	out := telemetry.ClusterStats{
		Region: c.self.Region, Regions: c.regions, Members: c.all(), Peers: c.engine.Links(at),
		ClockOffsets: c.engine.Offsets(),
		Streams:      c.host.Stats(), Membership: c.swim.Stats(), Node: c.engine.Stats(),
		Events: c.events.counted(), Rules: c.engine.Rules().Hash(),
	}
	streams := c.host.Streams()
	for i := range streams {
		if streams[i].Incoming {
			continue
		}
		switch linkState(&streams[i], nil) {
		case api.Connected:
			out.Dialed.Connected++
		case api.Connecting:
			out.Dialed.Connecting++
		case api.Refused:
			out.Dialed.Refused++
		default:
			out.Dialed.Backoff++
		}
	}
	return out
}

// linkState says how the stream to a peer is; l is what replication knows of
// the peer, nil for nothing.
func linkState(s *link.Stream, l *node.Link) api.LinkState {
	var refused *link.Refused
	switch {
	case s.State == link.StateUp && l != nil && l.Silent:
		return api.Silent
	case s.State == link.StateUp:
		return api.Connected
	case errors.As(s.Err, &refused):
		return api.Refused
	case s.State == link.StateConnecting && s.Err == nil:
		return api.Connecting
	}
	return api.Backoff
}

// members lists the live daemons of all regions.
func (s *status) members() []api.Member {
	c := s.c
	rules := map[crdt.Incarnation]uint64{c.self.ID: c.engine.Rules().Hash()}
	for _, st := range c.host.Streams() {
		if st.Hello.Member.ID != 0 && st.State == link.StateUp {
			rules[st.Hello.Member.ID] = st.Hello.Rules
		}
	}
	live := c.all()
	links := byPeer(c.engine.Links(c.engine.Now()))
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]api.Member, 0, len(live))
	for _, m := range live {
		a := api.Member{
			Name: m.Name, Region: m.Region, Incarnation: m.ID.String(), Addr: m.Addr, Build: m.Build,
			Ready: m.Ready, Self: m.ID == c.self.ID,
		}
		if a.Self {
			a.Ready = c.ready.Load()
		}
		if since := s.since[m.ID]; !since.IsZero() {
			a.Since = &since
		}
		if hash, ok := rules[m.ID]; ok {
			// What frames say is newer than the handshake.
			agree := hash == rules[c.self.ID]
			if l, ok := links[m.ID]; ok && l.Rules != 0 {
				hash, agree = l.Rules, !l.Differs
			}
			a.Rules, a.RulesAgree = api.RulesHash(hash), &agree
		}
		out = append(out, a)
	}
	return out
}

func byPeer(links []node.Link) map[crdt.Incarnation]*node.Link {
	out := make(map[crdt.Incarnation]*node.Link, len(links))
	for i := range links {
		out[links[i].Peer.ID] = &links[i]
	}
	return out
}

// see notes since when members are there, and forgets those who are not.
func (s *status) see(live []gossip.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[crdt.Incarnation]bool, len(live))
	for _, m := range live {
		there[m.ID] = true
		if s.since[m.ID].IsZero() {
			s.since[m.ID] = time.Now().UTC()
		}
	}
	maps.DeleteFunc(s.since, func(id crdt.Incarnation, _ time.Time) bool { return !there[id] })
}

// netcheck lists the ways to the peers.
func (s *status) netcheck() []api.PeerCheck {
	c := s.c
	links, offsets := byPeer(c.engine.Links(c.engine.Now())), c.engine.Offsets()
	streams := c.host.Streams()
	received := map[crdt.Incarnation]link.Traffic{}
	for i := range streams {
		if st := &streams[i]; st.Incoming {
			t := received[st.Hello.Member.ID]
			t.Frames += st.Received.Frames
			t.Bytes += st.Received.Bytes
			received[st.Hello.Member.ID] = t
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []api.PeerCheck
	for i := range streams {
		st := &streams[i]
		if st.Incoming {
			continue
		}
		m := st.Hello.Member
		got := received[m.ID]
		p := api.PeerCheck{
			Name: m.Name, Region: st.Region, Addr: st.Addr, State: linkState(st, links[m.ID]),
			SentFrames: st.Sent.Frames, ReceivedFrames: got.Frames, DroppedFrames: st.Dropped,
		}
		if m.ID != 0 {
			p.Incarnation = m.ID.String()
		}
		p.SentBytesPerSecond, p.ReceivedBytesPerSecond = s.rate(st.Addr, st.Sent.Bytes, got.Bytes)
		if l := links[m.ID]; l != nil {
			p.RTTSeconds, p.StalenessSeconds, p.UnsentSeconds = api.Seconds(l.RTT), api.Seconds(l.Age), api.Seconds(l.Unsent)
		}
		if off, ok := offsets[m.ID]; ok {
			p.ClockOffsetSeconds = new(off.Seconds())
		}
		if st.Err != nil {
			p.LastError, p.LastErrorAt = st.Err.Error(), new(st.ErrAt.UTC())
		}
		out = append(out, p)
	}
	return out
}

// meter makes rates of totals: over the time since the look before, of a
// second at least.
type meter struct {
	at             time.Time
	sent, received uint64
	out, in        *float64
}

// maxMeters bounds the addresses that rates are kept for.
const maxMeters = 4_096

// rate returns the bytes a second to and from an address, nil for unknown.
func (s *status) rate(addr string, sent, received uint64) (out, in *float64) {
	m := s.rates[addr]
	now := time.Now()
	if m == nil {
		if len(s.rates) == maxMeters {
			clear(s.rates)
		}
		s.rates[addr] = &meter{at: now, sent: sent, received: received}
		return nil, nil
	}
	if took := now.Sub(m.at).Seconds(); took >= 1 {
		m.out, m.in = new(float64(sent-min(sent, m.sent))/took), new(float64(received-min(received, m.received))/took)
		m.at, m.sent, m.received = now, sent, received
	}
	return m.out, m.in
}

// watch looks at the rates until done is closed, so that whoever asks first is
// told some.
func (s *status) watch(done <-chan struct{}) {
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
			s.netcheck()
		}
	}
}
