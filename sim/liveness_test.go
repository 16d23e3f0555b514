package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// TestMissingSumsAreFound: another region holds what a region counted, or, of a
// sum that is withheld, what it was sent.
func TestMissingSumsAreFound(t *testing.T) {
	us, w := gossip.RegionIncarnation("us"), windowOf{quietKey, 60_000}
	of := func(hits uint64) []gossip.Cell {
		id := gossip.CellID{Key: w.key, Window: w.window, Kind: gossip.RegionSum, Incarnation: us}
		return []gossip.Cell{{CellID: id, Value: crdt.PN{P: hits}}}
	}
	for _, c := range []struct {
		name    string
		counted map[windowOf]crdt.PN
		sent    map[windowOf]uint64 // of what is withheld
		held    []gossip.Cell
		missing bool
	}{
		{"all", map[windowOf]crdt.PN{w: {P: 8}}, nil, of(8), false},
		{"less", map[windowOf]crdt.PN{w: {P: 8}}, nil, of(7), true},
		{"none", map[windowOf]crdt.PN{w: {P: 8}}, nil, nil, true},
		{"all that was sent", nil, map[windowOf]uint64{w: 7}, of(7), false},
		{"less than was sent", nil, map[windowOf]uint64{w: 7}, of(6), true},
		{"none of what was sent", nil, map[windowOf]uint64{w: 7}, nil, true},
		{"nothing was sent", nil, map[windowOf]uint64{w: 0}, nil, false},
	} {
		if why := missingSum(c.held, c.counted, c.sent, nil, us); (why != "") != c.missing {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestHastyCallersAreExcused: callers that wait for less than the jitter of a
// link that loses many messages need not be served.
func TestHastyCallersAreExcused(t *testing.T) {
	lossy := Link{Jitter: 20 * time.Millisecond, Loss: 100_000, Corrupt: 60_000}
	for _, c := range []struct {
		name           string
		region, across Link
		margin         time.Duration
		hasty          bool
	}{
		{"across", Link{}, lossy, 5 * time.Millisecond, true},
		{"in the region", lossy, Link{}, 5 * time.Millisecond, true},
		{"jitter and losses of two links", Link{Jitter: lossy.Jitter}, Link{Truncate: 200_000}, 5 * time.Millisecond, true},
		{"patient callers", lossy, lossy, 20 * time.Millisecond, false},
		{"few losses", Link{Jitter: lossy.Jitter}, Link{Loss: 150_000}, 5 * time.Millisecond, false},
	} {
		cfg := Default()
		cfg.Network.Region, cfg.Network.Across, cfg.Strict.Margin = c.region, c.across, c.margin
		if got := hasty(&cfg); got != c.hasty {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
