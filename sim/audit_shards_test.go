package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// sameAcrossShards runs a configuration whose decisions do not depend on what
// is heard when, with one shard and with four, in order and shuffled, and
// compares all decisions and what the replicas hold in the end.
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
		log := &decisionLog{watcher: newWatcher("log", newBooks(&c))}
		conv := newConvergenceAuditor(log.books)
		w.auditors = []Auditor{log, conv}
		w.prepare()
		w.runUntil(c.Duration + 1)
		if !w.settle() {
			t.Fatalf("%d shards: %s", shards, w.pending)
		}
		out := outcome{decisions: log.decisions}
		for _, d := range w.daemons {
			end := (epoch + int64(c.Duration)) / int64(time.Millisecond)
			out.cells = append(out.cells, conv.state(w, d, end, end))
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

// sameCells compares counts; for how long they matter is each replica's to know.
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

// decisionLog keeps what was decided, without what depends on the run.
type decisionLog struct {
	watcher
	decisions []Decided
}

func (l *decisionLog) Decided(w *World, d *Decided) {
	l.watcher.Decided(w, d)
	l.decisions = append(l.decisions, Decided{At: d.At, Key: d.Key, Hits: d.Hits, Allowed: d.Allowed})
}

// Each region asks for keys of its own, and has one daemon: what is heard of
// others changes no decision.
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
		cfg.Workloads = append(cfg.Workloads, Workload{
			Name: region, Domain: "edge", Rate: 100, Keys: 8, Zipf: 1, Regions: weights,
			Descriptors: [][]rules.Entry{{{Key: region, Value: Drawn}}},
		})
	}
	sameAcrossShards(t, cfg)
}
