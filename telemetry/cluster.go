package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// What others name is bounded before it becomes a label. Beyond the bounds,
// which no cluster in order reaches, it is added up under otherLabel.
const (
	maxRegions = 64
	maxReasons = 32
	otherLabel = "other"
)

// clusterCollector reads a Cluster at each scrape.
type clusterCollector struct {
	cluster Cluster

	members, streams, silent                                     *prometheus.Desc
	frames, frameBytes, dropped                                  *prometheus.Desc
	staleness, unsent, clockOffset                               *prometheus.Desc
	refusedFrames, refusedHandshakes, refusedMembers, turnedAway *prometheus.Desc
	rejoins, merges, cells, events                               *prometheus.Desc
	rulesInfo, rulesAgree, rulesDiverged                         *prometheus.Desc
}

func newClusterCollector(c Cluster) *clusterCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("rld_"+name, help, labels, nil)
	}
	return &clusterCollector{
		cluster: c,
		members: desc("members",
			"Live daemons, this one included, by region and whether they take their share of the work.",
			"region", "ready"),
		streams: desc("streams",
			"Streams: dialed ones, one a peer, by state; and those accepted of peers.", "direction", "state"),
		silent: desc("silent_peers",
			"Peers that were never heard or are silent for longer than usual, by region.", "region"),
		frames: desc("frames_total", "Frames of streams, by direction.", "direction"),
		frameBytes: desc("frame_bytes_total",
			"Bytes of frames as they were sent, compressed where they were, by direction.", "direction"),
		dropped: desc("frames_dropped_total",
			"Frames that were not sent, for want of a stream or of room in its queue. What they held is told again."),
		staleness: desc("staleness_seconds",
			"Age of the oldest view of a peer of the region: all that each had counted and sent then is known. "+
				"Peers that were never heard have none and are in rld_silent_peers.",
			"region"),
		unsent: desc("unsent_staleness_seconds",
			"As rld_staleness_seconds, with what peers had counted and not sent.", "region"),
		clockOffset: desc("peer_clock_offset_seconds",
			"Greatest distance, in either direction, between the clock of a peer of the region and this one's.",
			"region"),
		refusedFrames:     desc("refused_frames_total", "Frames of peers that were refused, by reason.", "reason"),
		refusedHandshakes: desc("refused_handshakes_total", "Streams refused at their start, by reason.", "reason"),
		refusedMembers: desc("refused_members_total",
			"Daemons and packets that the membership of the region refused, by reason.", "reason"),
		turnedAway: desc("rejected_peers_total",
			"Streams of this daemon that peers refused or dropped, by reason.", "reason"),
		rejoins: desc("rejoin_attempts_total",
			"Rounds in which seeds of the region were asked for who is there, by result: error when none answered.", "result"),
		merges: desc("merged_cells_total", "Cells of peers' messages that were taken in, those that told nothing new included."),
		cells:  desc("cells", "Replicated cells held whose time is not over."),
		events: desc("replica_events_total", "What happened to the replica, by kind.", "kind"),
		rulesInfo: desc("rules_info",
			"1, with the hash of the rules in force as a label: daemons with the same rules have the same.", "hash"),
		rulesAgree:    desc("rules_hash_agree", "1 while no peer that was heard has other rules, else 0."),
		rulesDiverged: desc("rules_diverged_peers", "Peers that have other rules than this daemon."),
	}
}

// Describe implements prometheus.Collector.
func (c *clusterCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.members, c.streams, c.silent, c.frames, c.frameBytes, c.dropped, c.staleness, c.unsent, c.clockOffset,
		c.refusedFrames, c.refusedHandshakes, c.refusedMembers, c.turnedAway, c.rejoins, c.merges, c.cells, c.events,
		c.rulesInfo, c.rulesAgree, c.rulesDiverged,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *clusterCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.cluster.ClusterStats()
	w := metricWriter(ch)
	c.collectRegions(w, &s)

	w.gauge(c.streams, float64(s.Dialed.Connected), "dialed", "connected")
	w.gauge(c.streams, float64(s.Dialed.Connecting), "dialed", "connecting")
	w.gauge(c.streams, float64(s.Dialed.Backoff), "dialed", "backoff")
	w.gauge(c.streams, float64(s.Dialed.Refused), "dialed", "refused")
	w.gauge(c.streams, float64(s.AcceptedStreams), "accepted", "connected")
	w.count(c.frames, s.Sent.Frames, "sent")
	w.count(c.frames, s.Received.Frames, "received")
	w.count(c.frameBytes, s.Sent.Bytes, "sent")
	w.count(c.frameBytes, s.Received.Bytes, "received")
	w.count(c.dropped, s.DroppedFrames)
	w.reasons(c.refusedFrames, s.RefusedFrames)
	w.reasons(c.refusedHandshakes, s.RefusedHandshakes)
	w.reasons(c.refusedMembers, s.RefusedMembers)
	w.reasons(c.turnedAway, s.Rejected)
	w.count(c.rejoins, s.Rejoins-min(s.Rejoins, s.RejoinFailures), resultSuccess)
	w.count(c.rejoins, s.RejoinFailures, resultError)

	w.count(c.merges, s.MergedCells)
	w.gauge(c.cells, float64(s.Cells))
	for _, k := range gossip.EventKinds() {
		w.count(c.events, s.Events[k.String()], k.String())
	}
	diverged := 0
	for i := range s.Links {
		if s.Links[i].Differs {
			diverged++
		}
	}
	w.gauge(c.rulesInfo, 1, fmt.Sprintf("%016x", s.Rules))
	w.gauge(c.rulesDiverged, float64(diverged))
	agree := 0.0
	if diverged == 0 {
		agree = 1
	}
	w.gauge(c.rulesAgree, agree)
}

// collectRegions exports what is told by region.
func (c *clusterCollector) collectRegions(w metricWriter, s *ClusterStats) {
	for name, r := range regionsOf(s) {
		w.gauge(c.members, float64(r.ready), name, strconv.FormatBool(true))
		w.gauge(c.members, float64(r.unready), name, strconv.FormatBool(false))
		w.gauge(c.silent, float64(r.silent), name)
		// An age that is not known is no series: 0 would be the best there is.
		w.known(c.staleness, r.age, name)
		w.known(c.unsent, r.unsent, name)
		w.known(c.clockOffset, r.offset, name)
	}
}

// regionRow is what is exported of one region. Durations are -1 for unknown.
type regionRow struct {
	ready, unready, silent int
	age, unsent, offset    time.Duration
}

// regionsOf adds up a snapshot by the label of the region.
func regionsOf(s *ClusterStats) map[string]*regionRow {
	rows := make(map[string]*regionRow)
	row := func(region string) *regionRow {
		label := labelText(region)
		r := rows[label]
		if r == nil && len(rows) >= maxRegions {
			label = otherLabel
			r = rows[label]
		}
		if r == nil {
			r = &regionRow{age: -1, unsent: -1, offset: -1}
			rows[label] = r
		}
		return r
	}
	// The daemon's own regions come before those that others tell of.
	row(s.Region)
	for _, name := range s.Regions {
		row(name)
	}
	regionOf := make(map[crdt.Incarnation]string, len(s.Links))
	for i := range s.Members {
		if m := &s.Members[i]; m.Ready {
			row(m.Region).ready++
		} else {
			row(m.Region).unready++
		}
	}
	for i := range s.Links {
		l := &s.Links[i]
		regionOf[l.Peer.ID] = l.Peer.Region
		r := row(l.Peer.Region)
		r.age, r.unsent = max(r.age, l.Age), max(r.unsent, l.Unsent)
		if l.Silent || l.Age < 0 {
			r.silent++
		}
	}
	for id, offset := range s.ClockOffsets {
		if region, ok := regionOf[id]; ok {
			r := row(region)
			r.offset = max(r.offset, offset.Abs())
		}
	}
	return rows
}

// labelText is text from elsewhere as a label: Prometheus takes UTF-8 only.
func labelText(s string) string {
	const most = 128 // bytes
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

// metricWriter takes the metrics of a scrape.
type metricWriter chan<- prometheus.Metric

func (w metricWriter) count(d *prometheus.Desc, n uint64, labels ...string) {
	w <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (w metricWriter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	w <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// known exports a duration, unless it is negative: not known.
func (w metricWriter) known(d *prometheus.Desc, v time.Duration, labels ...string) {
	if v >= 0 {
		w.gauge(d, v.Seconds(), labels...)
	}
}

// reasons exports a count a reason.
func (w metricWriter) reasons(d *prometheus.Desc, counts map[string]uint64) {
	sums := make(map[string]uint64, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		label := labelText(reason)
		if _, ok := sums[label]; !ok && len(sums) >= maxReasons {
			label = otherLabel
		}
		sums[label] += counts[reason]
	}
	for label, n := range sums {
		w.count(d, n, label)
	}
}
