package audit

import (
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/wire"
)

// boundAuditor checks that everything has a limit: the size and number of
// messages to a peer, the keys and cells of a daemon, and the events between
// two inputs.
type boundAuditor struct {
	finding
	events []int           // by Daemon.Index, since its latest input
	since  []time.Duration // by Daemon.Index: when that was
	rates  perDirection[rate]
	count  uint64
	frame  []byte
}

// rate counts messages in a second of the sender's clock.
type rate struct {
	second, last, seen uint64
}

// The bounds that have no setting, and the number of inputs from one
// measurement to the next: calls are not counted.
const (
	maxRefusals  = 1_024
	maxBuckets   = 65_536
	maxEvents    = 1_024
	mostPaced    = 300 // daemons: the pace of messages has a record for each pair of them
	measureEvery = 32
)

// The most bytes of a message beside its cells.
const (
	headBytes    = 512
	refundBytes  = 8 // of a cell, whose refunds its approximate size is without
	refusalBytes = 48
	digestBytes  = 16
	rightsBytes  = 112
	loadBytes    = 48
)

func bounds(a *sim.Auditor, t *truth) {
	b := &boundAuditor{finding: finding{a, t}, events: make([]int, len(t.up)), since: make([]time.Duration, len(t.up))}
	a.Stepped, a.Happened = b.stepped, b.happened
}

// input notes an input to a daemon. Every measureEvery inputs it counts the
// keys and cells of the daemon, and returns true.
func (a *boundAuditor) input(d *sim.Daemon) bool {
	a.events[d.Index], a.since[d.Index] = 0, a.world.Now()
	a.count++
	if a.count%measureEvery != 0 {
		return false
	}
	keys, cells, n := 0, 0, len(d.Nodes)
	for _, shard := range d.Nodes {
		s := shard.Stats()
		keys, cells = keys+s.LiveKeys, cells+s.Cells
	}
	settings := d.Settings()
	most := max(n, settings.MaxKeys)
	a.check(keys <= most, "%s holds %d keys, at most %d", d.Name, keys, most)
	most = max(n, settings.Gossip.MaxCells)
	a.check(cells <= most, "%s holds %d cells, at most %d", d.Name, cells, most)
	return true
}

func (a *boundAuditor) happened(d *sim.Daemon, _ gossip.Event) {
	if now := a.world.Now(); a.since[d.Index] != now { // of a call
		a.events[d.Index], a.since[d.Index] = 0, now
	}
	if a.events[d.Index]++; a.events[d.Index] == maxEvents*len(d.Nodes)+1 {
		a.fail("%s had %d events of one input", d.Name, a.events[d.Index])
	}
}

func (a *boundAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	measure := a.input(d)
	from, to, ok := a.accepted(d, m, err)
	if !ok {
		return
	}
	if !a.ok(len(m.Cells) <= a.gossip.FrameCells) {
		a.fail("%s sent %d cells in a message, at most %d",
			from.name(), len(m.Cells), a.gossip.FrameCells)
	}
	if !a.ok(len(m.Refused) <= maxRefusals && len(m.Repair) <= maxBuckets && len(m.Digests) <= maxBuckets && len(m.Staleness) <= len(a.world.Regions())) {
		a.fail("%s listed %d refusals, %d buckets, %d digests and %d regions",
			from.name(), len(m.Refused), len(m.Repair), len(m.Digests), len(m.Staleness))
	}
	if len(a.up) <= mostPaced {
		a.pace(direction{to.index, from.index, m.Shard}, m, &from.daemon.Settings().Gossip)
	}
	if measure {
		a.measure(m)
	}
}

// pace checks how many messages a peer gets in a second of a sender with some
// settings: those with expedited cells, at least MinGap after any other one,
// those that are due at multiples of an interval, and answers, an interval
// apart. A peer that starts or leaves gets an answer in each interval.
func (a *boundAuditor) pace(k direction, m *gossip.Message, g *gossip.Config) {
	r := a.rates.of(k)
	if m.Nonce <= r.last {
		return // a duplicate, or late
	}
	r.last = m.Nonce
	if second := m.Nonce / uint64(time.Second/gossip.NonceUnit); second != r.second {
		r.second, r.seen = second, 0
	}
	r.seen++
	interval := min(g.Interval, g.WANInterval)
	most := uint64(time.Second/g.MinGap + time.Second/min(interval, max(gossip.NearEvery, g.MinGap)) + time.Second/interval + 2)
	if !a.ok(r.seen <= most) {
		a.fail("%v sent %v %d messages in a second, at most %d", m.From, m.To, r.seen, most)
	}
}

// measure checks the length of a message as it travels.
func (a *boundAuditor) measure(m *gossip.Message) {
	frame, err := wire.Encode(a.frame[:0], []gossip.Message{*m})
	if !a.ok(err == nil) {
		a.fail("%v sent a message that cannot be encoded: %v", m.From, err)
		return
	}
	a.frame = frame
	refunded := 0
	for i := range m.Cells {
		if m.Cells[i].Value.N > 0 {
			refunded++
		}
	}
	most := a.gossip.FrameBytes + headBytes + refundBytes*refunded + refusalBytes*len(m.Refused) + digestBytes*len(m.Digests) + rightsBytes*len(m.RightsMessages) + loadBytes*len(m.Loads)
	a.check(len(frame) <= most, "%v sent %d cells in %d bytes, at most %d", m.From, len(m.Cells), len(frame), most)
}
