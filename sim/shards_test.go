package sim

import (
	"slices"
	"testing"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// sameAcrossShards runs a configuration whose decisions do not depend on the
// order of messages, with one shard and with four, in order and shuffled, and
// compares all decisions and the final cells of the replicas.
func sameAcrossShards(t *testing.T, cfg *Config) {
	t.Helper()
	type outcome struct {
		decisions []Decided
		cells     [][]gossip.Cell
	}
	play := func(shards int, reorder rules.PPM) outcome {
		c := *cfg
		c.Shards = shards
		c.Network.Region.Reorder, c.Network.Across.Reorder = reorder, reorder
		w := newWorld(&c)
		out := outcome{}
		w.auditors = watching([]*Auditor{{Decided: func(d *Decided) { // without what depends on the run
			out.decisions = append(out.decisions, Decided{At: d.At, Key: d.Key, Hits: d.Hits, Allowed: d.Allowed})
		}}})
		w.prepare()
		w.runUntil(c.Duration + 1)
		if !w.settle() {
			t.Fatalf("%d shards: %s", shards, w.pending)
		}
		for _, d := range w.daemons {
			out.cells = append(out.cells, heldBy(d, d.Instant(w.now)))
		}
		return out
	}
	want := play(1, 0)
	for _, shards := range []int{1, 4} {
		for _, reorder := range []rules.PPM{0, 100 * rules.Percent} {
			got := play(shards, reorder)
			if len(got.decisions) != len(want.decisions) {
				t.Fatalf("%d shards: %d decisions, with one shard %d", shards, len(got.decisions), len(want.decisions))
			}
			for i := range got.decisions {
				if g, w := got.decisions[i], want.decisions[i]; g != w {
					t.Fatalf("%d shards: decision %d is %+v, with one shard %+v", shards, i, g, w)
				}
			}
			for d := range got.cells {
				if !sameCells(got.cells[d], want.cells[d]) {
					t.Errorf("%d shards: daemon %d holds %v, with one shard %v", shards, d, got.cells[d], want.cells[d])
				}
			}
		}
	}
}

// sameCells compares counts; for how long they matter is each replica's to
// know.
func sameCells(a, b []gossip.Cell) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].CellID != b[i].CellID || a[i].Value != b[i].Value {
			return false
		}
	}
	return len(a) > 0
}

// heldBy returns the counts of a daemon in all shards, without its copy of its
// own region's sum, in order.
func heldBy(d *Daemon, at node.Instant) []gossip.Cell {
	var all []gossip.Cell
	for _, n := range d.Nodes {
		for _, c := range n.Cells(at, nil) {
			if c.Kind.Counts() && (c.Kind == gossip.Daemon || c.Incarnation != gossip.RegionIncarnation(d.Region)) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b gossip.Cell) int { return a.Compare(b.CellID) })
	return all
}

// Each region has calls for keys of its own, and one daemon: messages of others
// change no decision.
func TestShardsDoNotMatter(t *testing.T) {
	cfg := small(t)
	cfg.Regions = []Region{{"eu", 1}, {"us", 1}, {"ap", 1}}
	cfg.Rules = parsed(t, `
domain: edge
descriptors:
  - key: eu
    rate_limit: {unit: minute, requests_per_unit: 20}
  - key: us
    rate_limit: {unit: minute, requests_per_unit: 30, algorithm: sliding_window}
  - key: ap
    rate_limit: {unit: minute, requests_per_unit: 40, algorithm: token_bucket}
`)
	cfg.Workloads = nil
	for i, region := range []string{"eu", "us", "ap"} {
		weights := make([]float64, 3)
		weights[i] = 1
		cfg.Workloads = append(cfg.Workloads, load.Workload{
			Name: region, Domain: "edge", Hits: 1, Rate: 100, Keys: 8, Zipf: 1, Regions: weights,
			Descriptors: [][]rules.Entry{{{Key: region, Value: load.Drawn}}},
		})
	}
	sameAcrossShards(t, cfg)
}
