package telemetry

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/node"
)

// ClusterStats is a snapshot of replication. Counts are totals since the
// process started. The scrape only reads it and does not keep it; a nil map or
// list is an empty one.
type ClusterStats struct {
	// Region is the daemon's own region. Regions are all configured ones: each
	// has series even without live daemons.
	Region  string
	Regions []string

	// Members are the live daemons of all regions, including the daemon itself.
	Members []gossip.Member
	// Peers are the views of the peers: the oldest one of all shards.
	Peers []node.Link
	// ClockOffsets are the leads of the clocks of peers, negative for a lag.
	// Unknown ones are absent.
	ClockOffsets map[crdt.Incarnation]time.Duration

	// Dialed counts the streams to peers by state: connected, connecting,
	// backoff (waiting after a failure) and refused (waiting after a refused
	// handshake). Each target is in one state.
	Dialed map[string]int
	// Streams and Membership are the counts of the transports, Node the counts
	// of the shards.
	Streams    link.Stats
	Membership swim.Stats
	Node       node.Stats
	// Events counts the events of replication, by the String of
	// gossip.EventKind. Other names are ignored.
	Events map[string]uint64
	// Claims counts claims of peers about regions and addresses that were not
	// believed, by kind.
	Claims map[string]uint64
	// TwoSecrets is set while two cluster secrets are in force.
	TwoSecrets bool
	// Rules is the hash of the rules in force.
	Rules uint64
}

func newClusterCollector(read func() ClusterStats) *collector {
	return newCollector(clusterFamilies, func(w *writer) {
		s := read()
		writeRegions(w, &s)
		writeStreams(w, &s)

		m := &s.Membership
		w.reasons("refused_members_total", m.Refused)
		put(w, "rejoin_attempts_total", m.Rejoins-min(m.Rejoins, m.RejoinFailures), resultSuccess)
		put(w, "rejoin_attempts_total", m.RejoinFailures, resultError)

		put(w, "merged_cells_total", s.Node.Merged)
		put(w, "cells", s.Node.Cells)
		for _, k := range gossip.EventKinds() {
			put(w, "replica_events_total", s.Events[k.String()], k.String())
		}
		diverged, agree := 0, 1
		for i := range s.Peers {
			if s.Peers[i].Differs {
				diverged, agree = diverged+1, 0
			}
		}
		put(w, "rules_info", 1, fmt.Sprintf("%016x", s.Rules))
		put(w, "rules_diverged_peers", diverged)
		put(w, "rules_hash_agree", agree)
	})
}

func writeStreams(w *writer, s *ClusterStats) {
	for _, state := range [...]string{"connected", "connecting", "backoff", "refused"} {
		put(w, "streams", s.Dialed[state], "dialed", state)
	}
	l := &s.Streams
	put(w, "streams", l.Accepted, "accepted", "connected")
	put(w, "frames_total", l.Sent.Frames, "sent")
	put(w, "frames_total", l.Received.Frames, "received")
	put(w, "frame_bytes_total", l.Sent.Bytes, "sent")
	put(w, "frame_bytes_total", l.Received.Bytes, "received")
	put(w, "frames_dropped_total", l.Dropped)
	refused := maps.Clone(l.ProtocolErrors)
	if refused == nil {
		refused = map[string]uint64{}
	}
	refused["faulty"] += l.Faulty
	w.reasons("refused_frames_total", refused)
	w.reasons("refused_handshakes_total", l.Refused)
	w.reasons("rejected_peers_total", l.RejectedPeers)
	w.reasons("refused_claims_total", s.Claims)
	two := 0
	if s.TwoSecrets {
		two = 1
	}
	put(w, "two_cluster_secrets", two)
	if c := &l.Certified; c.On {
		put(w, "certificate_expiry_timestamp_seconds", c.NotAfter.Unix(), "own")
		if c.Peer != "" {
			put(w, "certificate_expiry_timestamp_seconds", c.PeerNotAfter.Unix(), "peers")
		}
	}
}

// writeRegions writes the series of each region.
func writeRegions(w *writer, s *ClusterStats) {
	for name, r := range regionsOf(s) {
		put(w, "members", r.ready, name, strconv.FormatBool(true))
		put(w, "members", r.unready, name, strconv.FormatBool(false))
		put(w, "silent_peers", r.silent, name)
		// An unknown age has no series: 0 would be the best value.
		w.known("staleness_seconds", r.age, name)
		w.known("unsent_staleness_seconds", r.unsent, name)
		w.known("peer_clock_offset_seconds", r.offset, name)
	}
}

// regionSums are the values of one region. Durations are -1 if unknown.
type regionSums struct {
	ready, unready, silent int
	age, unsent, offset    time.Duration
}

// regionsOf sums up a snapshot by the label of the region.
func regionsOf(s *ClusterStats) map[string]*regionSums {
	all := make(map[string]*regionSums)
	of := func(region string) *regionSums {
		label := labelText(region)
		if all[label] == nil && len(all) >= maxRegions {
			label = otherLabel
		}
		if all[label] == nil {
			all[label] = &regionSums{age: -1, unsent: -1, offset: -1}
		}
		return all[label]
	}
	// Configured regions come before those that only peers report.
	of(s.Region)
	for _, name := range s.Regions {
		of(name)
	}
	for i := range s.Members {
		if m := &s.Members[i]; m.Ready {
			of(m.Region).ready++
		} else {
			of(m.Region).unready++
		}
	}
	for i := range s.Peers {
		l := &s.Peers[i]
		r := of(l.Peer.Region)
		r.age, r.unsent = max(r.age, l.Expected(l.Age)), max(r.unsent, l.Expected(l.Unsent))
		if l.Silent || l.Age < 0 && !l.Unused {
			r.silent++
		}
		if offset, ok := s.ClockOffsets[l.Peer.ID]; ok {
			r.offset = max(r.offset, offset.Abs())
		}
	}
	return all
}
