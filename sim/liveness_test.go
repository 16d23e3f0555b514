package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
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

// TestFullKeysExcuseOneSidedSilence: one daemon alone takes another for silent
// and takes over its keys, of which the others send it nothing. That is excused
// where it has a full key, and nothing else: it must have the counts that it
// keeps in the view of the others, and these must have theirs.
func TestFullKeysExcuseOneSidedSilence(t *testing.T) {
	const deaf = "eu-3"
	for _, lacks := range []string{"", deaf, "eu-2"} {
		r := silentForOne(t, deaf)
		found := r.w.disagreement(r.w.Core())
		if !strings.Contains(found, deaf+" and its region differ") {
			t.Fatalf("without a full key: %q", found)
		}
		r.fill(deaf)
		if found = r.w.disagreement(r.w.Core()); found != "" {
			t.Fatalf("with a full key: %s", found)
		}
		if lacks == "" {
			continue
		}
		r.giveOther(lacks)
		if found = r.w.disagreement(r.w.Core()); !strings.Contains(found, lacks+" and its region differ") {
			t.Errorf("%s lacks a count: %q", lacks, found)
		}
	}
}

// silentForOne runs a region of four daemons until one of them alone takes the
// first one for silent. Nothing is counted meanwhile.
func silentForOne(t *testing.T, deaf string) *rig {
	cfg := minute(t)
	cfg.Regions, cfg.Duration = []Region{{"eu", 4}}, time.Minute
	cfg.Faults = []Fault{{Kind: Cut, At: 10 * time.Second, From: []string{"eu-0"}, To: []string{deaf}, OneWay: true}}
	cfg.Members.Leave, cfg.Workloads[0].Keys = time.Minute, 100
	r := newRig(t, cfg, 5*time.Second)
	r.w.load.stopped = true
	r.w.runUntil(30 * time.Second)
	return r
}

func (r *rig) daemon(name string) *Daemon {
	for _, d := range r.w.daemons {
		if d.Name == name {
			return d
		}
	}
	r.t.Fatalf("no daemon %q", name)
	return nil
}

// give gives a daemon cells of eu-1 or of a former daemon.
func (r *rig) give(to string, cells []gossip.Cell) {
	r.t.Helper()
	d := r.daemon(to)
	m := r.message(r.daemon("eu-1"), d)
	m.Cells = cells
	if err := d.Nodes[0].Step(d.Instant(r.w.now), m); err != nil {
		r.t.Fatal(err)
	}
}

// fill gives a daemon as many cells of a key as it takes.
func (r *rig) fill(name string) {
	d := r.daemon(name)
	c := r.cell(quietKey, r.daemon("eu-1").incarnations[0], 1)
	c.WindowLength, c.Carry = 1, time.Minute.Milliseconds()
	for len(fullKeys(0, d)) == 0 {
		var cells []gossip.Cell
		for range 1 << 10 {
			cells = append(cells, c)
			c.Window--
		}
		r.give(name, cells)
	}
}

// giveOther gives a count of a former daemon to one of the two that keep it, in
// the view of eu-1, and not to the one that lacks it.
func (r *rig) giveOther(lacks string) {
	at := r.daemon("eu-1")
	for k := crdt.Key(1) << 40; ; k += 1 << 40 {
		c := r.cell(k, 7, 1)
		keeps := func(name string) bool {
			id := r.daemon(name).incarnations[0]
			return id == at.incarnations[0] && node.Keeps(at.Nodes[0], c.CellID) || node.KeptBy(at.Nodes[0], c.CellID, id)
		}
		for _, other := range []string{"eu-0", "eu-2"} {
			if other != lacks && keeps(lacks) && keeps(other) {
				r.give(other, []gossip.Cell{c})
				return
			}
		}
	}
}
