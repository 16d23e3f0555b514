package sim

import (
	"slices"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// looking looks at the cells of a replica now and then, when it has just been
// given an input: the more cells there are the more seldom, so that a step
// costs the same. It draws on no randomness, and asks at the instant of the
// input, so that the replica does not notice.
type looking struct {
	turn   uint64 // see watcher.first
	wait   int    // steps until the next look
	sample sample
	last   map[looked][]gossip.Cell // by place, the latest look
}

// looked is a shard of an incarnation.
type looked struct{ writer, shard int }

// sample is what was seen.
type sample struct {
	daemon *Daemon
	writer *writer
	shard  int
	now    int64 // of the label clock
	cells  []gossip.Cell
	was    []gossip.Cell // the time before, nil for none
	again  bool          // was is of the same process
}

// leastWait is the least number of steps from one look to the next.
const leastWait = 64

// look returns what there is to see after a step, nil for nothing this time.
func (b *books) look(w *World, d *Daemon, m *gossip.Message, err error) *sample {
	l := &b.looking
	if l.turn == b.turn {
		if l.sample.daemon == nil {
			return nil
		}
		return &l.sample
	}
	l.turn, l.sample = b.turn, sample{}
	l.wait--
	is, shard := b.writers.of(d), 0
	if m != nil {
		shard = m.Shard
	}
	// Which shard ticked is not known.
	if l.wait > 0 || err != nil || is == nil || shard >= len(d.Nodes) || m == nil && len(d.Nodes) > 1 {
		return nil
	}
	if l.last == nil {
		l.last = make(map[looked][]gossip.Cell)
	}
	at := looked{is.index, shard}
	was, again := l.last[at]
	l.sample = sample{
		daemon: d, writer: is, shard: shard, now: b.clocks.of(d, shard).now,
		cells: d.Nodes[shard].Cells(d.Instant(w.Now())), was: was, again: again,
	}
	l.last[at] = l.sample.cells
	l.wait = max(leastWait, 2*(len(l.sample.cells)+len(b.ledger.all)))
	return &l.sample
}

// forget drops what was seen of a process that is gone.
func (l *looking) forget(writer, shards int) {
	for s := range shards {
		delete(l.last, looked{writer, s})
	}
}

// value returns what the sample has of a cell, 0 for nothing.
func (s *sample) value(id gossip.CellID) uint64 {
	i, ok := slices.BinarySearchFunc(s.cells, id, func(c gossip.Cell, id gossip.CellID) int { return c.Compare(id) })
	if !ok {
		return 0
	}
	return s.cells[i].Value.P
}

// blurred reports whether the label clock of a daemon may be off by a little
// from what the books take it for.
func (b *books) blurred(d *Daemon) bool {
	for s := range b.clocks.all[d.Index] {
		if b.clocks.all[d.Index][s].bent {
			return true
		}
	}
	return false
}

// living returns the label time from which on a label must end for a replica
// surely to keep it.
func (b *books) living(s *sample) int64 {
	if b.blurred(s.daemon) {
		return s.now + blurMillis
	}
	return s.now
}

// blurMillis is more than a label clock is off.
const blurMillis = 1_000

// anyBlurred reports whether any daemon's is.
func (b *books) anyBlurred() bool {
	for _, clocks := range b.clocks.all {
		for s := range clocks {
			if clocks[s].bent {
				return true
			}
		}
	}
	return false
}

// charged adds up what writers of a region charged on a key's label, whatever
// the scope was, or one of them where only is not nil. False when that is no
// longer known.
func (b *books) charged(c *gossip.Cell, region int, only *writer) (uint64, bool) {
	n, found := uint64(0), false
	add := func(domain int) {
		k := b.ledger.byKey[bookKey{c.Key, domain}]
		if k == nil {
			return
		}
		if p := k.page(c.Window); p != nil {
			found = true
			for i := range p.incarnations {
				if x := b.writers.all[p.incarnations[i].writer]; x.region == region && (only == nil || only == x) {
					n += p.incarnations[i].charged
				}
			}
		}
	}
	add(everybody)
	add(region)
	if b.ledger.rescopes {
		for _, x := range b.writers.all {
			if x.region == region && x == b.writers.now[x.daemon.Index] {
				add(MaxRegions + x.daemon.Index)
			}
		}
	}
	return n, found || c.End(c.Window) > b.ledger.reserve
}

// ownsKey reports whether a book's key is a shard's.
func (k *book) ownsKey(shard, shards int) bool { return node.ShardOf(k.key, shards) == shard }
