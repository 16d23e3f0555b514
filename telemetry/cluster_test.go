package telemetry

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/gossip/swim"
	"github.com/georld/rld/node"
)

// cluster is a Cluster with constant values that counts its calls.
type cluster struct {
	mu    sync.Mutex
	stats ClusterStats
	asked int
}

func (c *cluster) ClusterStats() ClusterStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.stats
}

// clusterMetrics registers the metrics of a daemon of a cluster in a registry
// that checks collected series.
func clusterMetrics(t *testing.T, s ClusterStats) (*cluster, *prometheus.Registry) {
	t.Helper()
	c := &cluster{stats: s}
	e := &engine{}
	newMetrics(t, e) // for its rules
	reg := prometheus.NewPedanticRegistry()
	if _, err := New(reg, Options{Engine: e, Cluster: c.ClusterStats}); err != nil {
		t.Fatal(err)
	}
	return c, reg
}

// ofCluster returns the lines of a scrape that a daemon alone does not export,
// except those of the metrics in without.
func ofCluster(t *testing.T, reg prometheus.Gatherer, without ...string) string {
	t.Helper()
	_, alone := newMetrics(t, &engine{})
	known := make(map[string]bool)
	for line := range strings.Lines(scrape(t, alone)) {
		known[metricOf(line)] = true
	}
	for _, name := range without {
		known[name] = true
	}
	var out strings.Builder
	for line := range strings.Lines(scrape(t, reg)) {
		if !known[metricOf(line)] {
			out.WriteString(line)
		}
	}
	return out.String()
}

func metricOf(line string) string {
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '{' })
	if words[0] == "#" {
		return words[2]
	}
	return words[0]
}

func peer(id crdt.Incarnation, region string) gossip.Peer {
	return gossip.Peer{ID: id, Name: fmt.Sprint(region, id), Region: region, Ready: true}
}

// fullStats is a snapshot without zero fields.
func fullStats() ClusterStats {
	ms := time.Millisecond
	unready := peer(4, "eu-west")
	unready.Ready = false
	return ClusterStats{
		Region:  "us-east",
		Regions: []string{"us-east", "eu-west", "ap-south"}, // ap-south has no live daemon
		Members: []gossip.Member{
			{Peer: peer(1, "us-east")}, {Peer: peer(2, "us-east")}, {Peer: peer(3, "eu-west")}, {Peer: unready},
		},
		Peers: []node.Link{
			{Peer: peer(2, "us-east"), Age: 101 * ms, Unsent: 103 * ms, RTT: ms},
			{Peer: peer(3, "eu-west"), Age: 1500 * ms, Unsent: 2 * time.Second, RTT: 80 * ms, Differs: true, Silent: true},
			{Peer: unready, Age: -1, Unsent: -1, RTT: -1},
			{Peer: peer(6, "ap-south"), Age: -1, Unsent: -1, RTT: -1, Unused: true}, // which is not silent
		},
		ClockOffsets: map[crdt.Incarnation]time.Duration{2: 3 * ms, 3: -250 * ms, 4: 40 * ms, 99: time.Hour},
		Dialed:       map[string]int{"connected": 2, "connecting": 1, "backoff": 3, "refused": 4},
		Streams: link.Stats{
			Accepted: 5, Sent: link.Traffic{Frames: 10, Bytes: 1000}, Received: link.Traffic{Frames: 20, Bytes: 2000}, Dropped: 7,
			ProtocolErrors: map[string]uint64{"checksum": 3, "too_large": 0}, Faulty: 1,
			Refused: map[string]uint64{"secret": 2}, RejectedPeers: map[string]uint64{"version": 12},
			Certified: link.Certified{On: true, NotAfter: time.Unix(1_800_000_000, 0), Peer: "eu-west/3", PeerNotAfter: time.Unix(1_700_000_000, 0)},
		},
		Membership: swim.Stats{Rejoins: 14, RejoinFailures: 8, Refused: map[string]uint64{
			"wrong_key": 1, "wrong_region": 4, "name_taken": 0, "bad_metadata": 0, "full": 0,
		}},
		Node:   node.Stats{Merged: 9_000, Cells: 512},
		Events: map[string]uint64{gossip.Resent.String(): 11, gossip.PeerJoined.String(): 3, "made up": 1},
		Claims: map[string]uint64{"address": 3, "candidate_frame": 0},
		Rules:  0x5eed,
	}
}

func TestScrapeOfACluster(t *testing.T) {
	_, reg := clusterMetrics(t, fullStats())
	want, err := os.ReadFile("testdata/cluster.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), ofCluster(t, reg, "rld_replica_events_total")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReplicationEvents(t *testing.T) {
	_, reg := clusterMetrics(t, fullStats())
	text := scrape(t, reg)
	for _, k := range gossip.EventKinds() {
		line := fmt.Sprintf("rld_replica_events_total{kind=\"%s\"} %d\n", k, fullStats().Events[k.String()])
		if !strings.Contains(text, line) {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(text, "made up") {
		t.Error("an unknown kind became a label")
	}
}

func TestAloneWithoutClusterMetrics(t *testing.T) {
	_, reg := newMetrics(t, &engine{})
	text := scrape(t, reg)
	for _, name := range []string{"rld_members", "rld_streams", "rld_staleness_seconds", "rld_rules_hash_agree"} {
		if strings.Contains(text, name) {
			t.Errorf("%s of a daemon alone", name)
		}
	}
}

func TestOneSnapshotPerScrape(t *testing.T) {
	c, reg := clusterMetrics(t, fullStats())
	for n := range 3 {
		scrape(t, reg)
		if c.asked != n+1 {
			t.Fatalf("%d snapshots for %d scrapes", c.asked, n+1)
		}
	}
}

// TestEmptySnapshot scrapes the snapshot of a cluster that starts.
func TestEmptySnapshot(t *testing.T) {
	_, reg := clusterMetrics(t, ClusterStats{Region: "us-east"})
	text := scrape(t, reg)
	for _, line := range []string{
		`rld_members{ready="true",region="us-east"} 0`,
		`rld_silent_peers{region="us-east"} 0`,
		`rld_streams{direction="dialed",state="connected"} 0`,
		`rld_rules_hash_agree 1`,
		`rld_rules_info{hash="0000000000000000"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, name := range []string{
		"rld_staleness_seconds{", "rld_unsent_staleness_seconds{", "rld_peer_clock_offset_seconds{",
		"rld_refused_handshakes_total{",
	} {
		if strings.Contains(text, name) {
			t.Errorf("%s...} of an unknown value", name)
		}
	}
}

// TestLabelsAreBounded adds regions of peers and reasons beyond the bounds.
func TestLabelsAreBounded(t *testing.T) {
	s := fullStats()
	s.Streams.ProtocolErrors = map[string]uint64{"bad\xff": 1}
	for i := range 1_000 {
		s.Members = append(s.Members, gossip.Member{Peer: peer(crdt.Incarnation(1_000+i), fmt.Sprintf("made-up-%d", i))})
		s.Peers = append(s.Peers, node.Link{Peer: peer(crdt.Incarnation(1_000+i), fmt.Sprintf("made-up-%d", i)), Age: time.Hour})
		s.Streams.ProtocolErrors[fmt.Sprintf("reason-%d", i)] = 1
	}
	s.Members = append(s.Members, gossip.Member{Peer: peer(5, "bad\xff")},
		gossip.Member{Peer: peer(6, strings.Repeat("long", 1_000))})
	_, reg := clusterMetrics(t, s)
	text := scrape(t, reg)
	for part, most := range map[string]int{
		"\nrld_members{": 2 * (maxRegions + 1), "\nrld_staleness_seconds{": maxRegions + 1,
		"\nrld_refused_frames_total{": maxReasons + 1,
	} {
		if n := strings.Count(text, part); n > most || n < most/2 {
			t.Errorf("%d lines of%s..}, want at most %d", n, part, most)
		}
	}
	for _, line := range []string{
		`rld_members{ready="true",region="us-east"} 2`, `rld_staleness_seconds{region="us-east"} 0.101`,
		`rld_members{ready="true",region="ap-south"} 0`, `rld_staleness_seconds{region="other"} 3600`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(text, strings.Repeat("long", 40)) {
		t.Error("a label exceeds its bound")
	}
}

func TestLabelsAreText(t *testing.T) {
	s := ClusterStats{Region: "us\xff", Streams: link.Stats{Refused: map[string]uint64{"bad\xff": 1, "bad\xfe": 2}}}
	_, reg := clusterMetrics(t, s)
	text := scrape(t, reg)
	for _, line := range []string{
		`rld_members{ready="true",region="us?"} 0`, `rld_refused_handshakes_total{reason="bad?"} 3`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

func TestClusterMetricsPassLint(t *testing.T) {
	_, reg := clusterMetrics(t, fullStats())
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "rld_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestConcurrentScrapes overlaps scrapes.
func TestConcurrentScrapes(t *testing.T) {
	_, reg := clusterMetrics(t, fullStats())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := reg.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
