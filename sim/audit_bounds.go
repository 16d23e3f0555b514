package sim

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/wire"
)

// boundsAuditor sees to it that everything has a limit: what a message holds,
// how long it is and how many a peer gets, the keys and cells of a replica,
// and the events between two inputs.
type boundsAuditor struct {
	watcher
	cfg    gossip.Config
	events []int // by Daemon.Index, since its latest input
	rates  map[conversation]*rate
	count  uint64
	frame  []byte
}

// conversation is what one incarnation tells another in one shard.
type conversation struct {
	from, to crdt.Incarnation
	shard    int
}

// rate counts messages in a second of the sender's clock.
type rate struct {
	second, last, seen uint64
}

// The bounds of a message that have no setting, and how many messages pass
// until one is measured.
const (
	mostRefusals = 1_024
	mostBuckets  = 65_536
	mostEvents   = 1_024
	measureEvery = 64
)

func newBoundsAuditor(b *books) *boundsAuditor {
	return &boundsAuditor{
		watcher: newWatcher("bounds", b), events: make([]int, len(b.clocks.all)),
		rates: make(map[conversation]*rate), cfg: b.gossip,
	}
}

// Decided checks how many keys a replica holds, now and then.
func (a *boundsAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	a.events[d.Daemon.Index] = 0
	if a.count++; a.count%measureEvery != 0 {
		return
	}
	for s, n := range d.Daemon.Nodes {
		most := w.nodeConfig(d.Daemon, s).MaxKeys
		if st := n.Stats(); st.LiveKeys > most {
			a.failed(w, "%s holds %d keys, at most %d", d.Daemon.Name, st.LiveKeys, most)
		} else {
			a.passed(1)
		}
	}
}

// Happened counts events.
func (a *boundsAuditor) Happened(w *World, d *Daemon, e gossip.Event) {
	a.watcher.Happened(w, d, e)
	if a.events[d.Index]++; a.events[d.Index] == mostEvents*len(d.Nodes)+1 {
		a.failed(w, "%s had %d events of one input", d.Name, a.events[d.Index])
	}
}

// Stepped checks a message and now and then the cells of a replica.
func (a *boundsAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	a.events[d.Index] = 0
	if m != nil && err == nil {
		a.message(w, m)
	}
	if s := a.books.look(w, d, m, err); s != nil {
		if most := w.nodeConfig(d, s.shard).Gossip.MaxCells; len(s.cells) > most {
			a.failed(w, "%s holds %d cells, at most %d", d.Name, len(s.cells), most)
		} else {
			a.passed(1)
		}
	}
}

func (a *boundsAuditor) message(w *World, m *gossip.Message) {
	switch {
	case len(m.Cells) > a.cfg.FrameCells:
		a.failed(w, "%v sent %d cells in a message, at most %d", m.From, len(m.Cells), a.cfg.FrameCells)
	case len(m.Refused) > mostRefusals || len(m.Repair) > mostBuckets || len(m.Digests) > mostBuckets:
		a.failed(w, "%v listed %d refusals, %d buckets and %d digests", m.From, len(m.Refused), len(m.Repair), len(m.Digests))
	case len(m.Staleness) > len(w.Regions()):
		a.failed(w, "%v listed views of %d regions, and there are %d", m.From, len(m.Staleness), len(w.Regions()))
	default:
		a.passed(1)
	}
	a.pace(w, m)
	if a.count++; a.count%measureEvery == 0 {
		a.measure(w, m)
	}
}

// pace checks how often one is told something.
func (a *boundsAuditor) pace(w *World, m *gossip.Message) {
	k := conversation{m.From, m.To, m.Shard}
	r := a.rates[k]
	if r == nil {
		r = &rate{}
		a.rates[k] = r
	}
	if m.Nonce <= r.last {
		return // again, or late
	}
	r.last = m.Nonce
	if second := m.Nonce / 1_000_000; second != r.second {
		r.second, r.seen = second, 0
	}
	r.seen++
	most := uint64(time.Second/a.cfg.MinGap + time.Second/min(a.cfg.Interval, a.cfg.WANInterval) + 2)
	if r.seen > most {
		a.failed(w, "%v sent %v %d messages in a second, at most %d", m.From, m.To, r.seen, most)
	} else {
		a.passed(1)
	}
}

// The most bytes that a message has beside its cells, and those of one cell
// that a frame is not filled beyond.
const (
	headBytes    = 512
	refusalBytes = 48
	digestBytes  = 16
)

// measure checks how long a message is as it travels.
func (a *boundsAuditor) measure(w *World, m *gossip.Message) {
	frame, err := wire.Encode(a.frame[:0], []gossip.Message{*m})
	if err != nil {
		a.failed(w, "%v sent what cannot be encoded: %v", m.From, err)
		return
	}
	a.frame = frame
	most := a.cfg.FrameBytes + headBytes + refusalBytes*len(m.Refused) + digestBytes*len(m.Digests)
	if len(frame) > most {
		a.failed(w, "%v sent %d cells in %d bytes, at most %d", m.From, len(m.Cells), len(frame), most)
	} else {
		a.passed(1)
	}
}
