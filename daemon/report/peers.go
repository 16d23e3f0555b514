package report

import (
	"errors"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/telemetry"
)

// ClusterStats returns the current metrics of the cluster. See
// telemetry.Options.
func (r *Report) ClusterStats() telemetry.ClusterStats {
	c := r.Cluster
	out := telemetry.ClusterStats{
		Region: r.Region, Regions: c.Regions(), Members: c.Members(), Peers: r.Engine.Links(r.Engine.Now()),
		ClockOffsets: r.Engine.Offsets(), Node: r.Engine.Stats(), Events: c.Events(), Rules: r.Engine.Rules().Hash(),
		Dialed: map[string]int{}, Claims: c.Claims(), TwoSecrets: r.NextSecret() != nil,
	}
	out.Streams, out.Membership = c.Stats()
	for _, s := range c.Streams() {
		if !s.Incoming {
			out.Dialed[string(linkState(&s, nil))]++
		}
	}
	return out
}

// linkState returns the state of a stream to a peer; l is the replication state
// of the peer, nil if unknown.
func linkState(s *link.Stream, l *node.Link) api.LinkState {
	_, refused := errors.AsType[*link.Refused](s.Err)
	switch {
	case s.State == link.StateUp && l != nil && l.Silent:
		return api.Silent
	case s.State == link.StateUp:
		return api.Connected
	case refused:
		return api.Refused
	case s.State == link.StateConnecting && s.Err == nil:
		return api.Connecting
	}
	return api.Backoff
}

// Members lists the live daemons of all regions.
func (r *Report) Members() []api.Member {
	own := r.Engine.Rules().Hash()
	rules := map[crdt.Incarnation]uint64{r.Engine.Incarnation(): own}
	for _, s := range r.Cluster.Streams() {
		if s.Hello.Member.ID != 0 && s.State == link.StateUp {
			rules[s.Hello.Member.ID] = s.Hello.Rules
		}
	}
	links := byPeer(r.Engine.Links(r.Engine.Now()))
	witnesses := r.witnesses()
	var out []api.Member
	for _, m := range r.Cluster.Members() {
		a := api.Member{
			Name: m.Name, Region: m.Region, Incarnation: m.ID.String(), Addr: m.Addr, Build: m.Build,
			Ready: r.memberReady(&m), VoterOnly: slices.Contains(witnesses, m.ID), Self: m.ID == r.Engine.Incarnation(),
		}
		if since := r.Cluster.Since(m.ID); !since.IsZero() {
			a.Since = &since
		}
		if hash, ok := rules[m.ID]; ok {
			// Frames are newer than the handshake.
			agree := hash == own
			if l := links[m.ID]; l != nil && l.Rules != 0 {
				hash, agree = l.Rules, !l.Differs
			}
			a.Rules, a.RulesAgree = api.RulesHash(hash), &agree
		}
		out = append(out, a)
	}
	return out
}

// memberReady reports whether a live daemon is ready, as on its /readyz where
// this one knows that.
func (r *Report) memberReady(m *gossip.Member) bool {
	switch {
	case m.ID == r.Engine.Incarnation():
		return r.Cluster.Ready()
	case !m.Ready || r.Control == nil:
		return m.Ready
	}
	s := r.Control.State()
	return !slices.ContainsFunc(s.Status.Peers, func(p control.PeerStatus) bool { return p.Address == m.ID && p.CannotRead(s.Record) })
}

// witnesses returns the live daemons that only vote.
func (r *Report) witnesses() (all []crdt.Incarnation) {
	if r.Control != nil {
		r.Control.Do(func(n *control.Node) { all = control.Witnesses(n) })
	}
	if r.Witness {
		all = append(all, r.Engine.Incarnation())
	}
	return all
}

func byPeer(links []node.Link) map[crdt.Incarnation]*node.Link {
	out := make(map[crdt.Incarnation]*node.Link, len(links))
	for i := range links {
		out[links[i].Peer.ID] = &links[i]
	}
	return out
}

// Netcheck lists the connections to the peers.
func (r *Report) Netcheck() []api.PeerCheck {
	links, offsets := byPeer(r.Engine.Links(r.Engine.Now())), r.Engine.Offsets()
	streams := r.Cluster.Streams()
	received := map[crdt.Incarnation]link.Traffic{}
	for i := range streams {
		if s := &streams[i]; s.Incoming {
			t := received[s.Hello.Member.ID]
			t.Frames += s.Received.Frames
			t.Bytes += s.Received.Bytes
			received[s.Hello.Member.ID] = t
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []api.PeerCheck
	for i := range streams {
		s := &streams[i]
		if s.Incoming {
			continue
		}
		m := s.Hello.Member
		got := received[m.ID]
		p := api.PeerCheck{
			Name: m.Name, Region: s.Region, Addr: s.Addr, State: linkState(s, links[m.ID]),
			SentFrames: s.Sent.Frames, ReceivedFrames: got.Frames, DroppedFrames: s.Dropped,
		}
		if m.ID != 0 {
			p.Incarnation = m.ID.String()
		}
		p.SentBytesPerSecond, p.ReceivedBytesPerSecond = r.rate(s.Addr, s.Sent.Bytes, got.Bytes)
		if l := links[m.ID]; l != nil {
			p.RTTSeconds, p.StalenessSeconds, p.UnsentSeconds, p.LagSeconds = api.Seconds(l.RTT), api.Seconds(l.Age), api.Seconds(l.Unsent), api.Seconds(l.Lag)
		}
		if off, ok := offsets[m.ID]; ok {
			p.ClockOffsetSeconds = new(off.Seconds())
		}
		if s.Err != nil {
			p.LastError, p.LastErrorAt = s.Err.Error(), new(s.ErrAt.UTC())
		}
		out = append(out, p)
	}
	return out
}

// meter turns totals into rates over the time since the last sample, at least a
// second.
type meter struct {
	at             time.Time
	sent, received uint64
	out, in        *float64
}

// maxMeters bounds the addresses with a meter.
const maxMeters = 4_096

// rate returns the bytes a second to and from an address, nil if unknown.
func (r *Report) rate(addr string, sent, received uint64) (out, in *float64) {
	m, now := r.meters[addr], time.Now()
	if m == nil {
		if len(r.meters) == maxMeters {
			clear(r.meters)
		}
		r.meters[addr] = &meter{at: now, sent: sent, received: received}
		return nil, nil
	}
	if took := now.Sub(m.at).Seconds(); took >= 1 {
		m.out, m.in = new(float64(sent-min(sent, m.sent))/took), new(float64(received-min(received, m.received))/took)
		m.at, m.sent, m.received = now, sent, received
	}
	return m.out, m.in
}
