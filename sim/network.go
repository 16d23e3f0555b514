package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
)

// link is one direction between two daemons.
type link struct {
	*Link // shared, and not changed
	// cutSince is when it was cut, notCut while it is not.
	cutSince time.Duration
	busy     time.Duration // until then frames sent before take up the line
	last     time.Duration // when the last frame of the stream arrives
	arrived  time.Duration // when the latest frame of the control log that arrived was sent
}

// notCut stands for no time at which a link was cut.
const notCut = time.Duration(math.MinInt64)

// flight is a frame on its way.
type flight struct {
	from, to int32  // daemons
	sender   int32  // the process of from, in World.members
	name     string // of the process it is addressed to
	origin   replica.Origin
	frame    []byte
	sent     time.Duration
	again    bool // it is the second of two
	mangled  bool // or forged: it must be rejected
}

// Traffic counts the frames of the network.
type Traffic struct {
	Frames     uint64 `json:"frames"` // sent
	Bytes      uint64 `json:"bytes"`  // sent
	Lost       uint64 `json:"lost"`   // frames
	Duplicated uint64 `json:"duplicated"`
	// Mangled are the frames that were damaged, Refused and Accepted what
	// became of those that arrived.
	Mangled  uint64 `json:"mangled"`
	Refused  uint64 `json:"refused"`
	Accepted uint64 `json:"accepted"`
	// Overflowed are the frames that a bounded queue had no room for.
	Overflowed uint64 `json:"overflowed"`
	// ProtocolErrors counts the frames that daemons must reject.
	ProtocolErrors uint64 `json:"protocol_errors,omitempty"`
	// Unsendable and Unreadable are the undamaged frames that the codec
	// refused.
	Unsendable uint64 `json:"unsendable"`
	Unreadable uint64 `json:"unreadable"`
	// Rights counts the frames between rights agents, RightsBytes their bytes.
	// Both are included in Frames and Bytes.
	Rights      uint64 `json:"rights,omitempty"`
	RightsBytes uint64 `json:"rights_bytes,omitempty"`
	// Strict are those about strict keys, likewise.
	Strict      uint64 `json:"strict,omitempty"`
	StrictBytes uint64 `json:"strict_bytes,omitempty"`
	// Control are those of the control log, likewise.
	Control      uint64 `json:"control,omitempty"`
	ControlBytes uint64 `json:"control_bytes,omitempty"`
}

// network is the links between daemons and the frames on their way.
type network struct {
	daemons int
	links   []link // by sender and receiver
	flights pool[flight]
	buffers [][]byte // of frames that are gone
	traffic Traffic
	rng     *rand.Rand
	forged  bool // the frame that is sent now
}

func (n *network) link(from, to int) *link { return &n.links[from*n.daemons+to] }

// happens draws an event of a probability. It draws nothing for a probability
// of 0.
func (n *network) happens(p rules.PPM) bool {
	return p > 0 && rules.PPM(n.rng.Uint32N(uint32(100*rules.Percent))) < p
}

// relink works out the quality of every link after a change.
func (n *network) relink(w *World) {
	for _, from := range w.daemons {
		for _, to := range w.daemons {
			if from != to {
				n.relinkOne(w, from, to)
			}
		}
	}
}

func (n *network) relinkOne(w *World, from, to *Daemon) {
	l := n.link(from.Index, to.Index)
	l.Link = &w.cfg.Network.Across
	if from.Region == to.Region {
		l.Link = &w.cfg.Network.Region
	}
	for i := range w.cfg.Network.Links {
		r := &w.cfg.Network.Links[i]
		if (r.From == "" || from.is(r.From)) && (r.To == "" || to.is(r.To)) {
			l.Link = &r.Link
		}
	}
	if w.healed {
		l.Link = new(l.Link.healed())
	}
	cut := w.severed(from, to) || barred(from, to)
	for _, i := range w.faults.active {
		switch f := &w.faults.all[i]; {
		case f.Kind == Cut:
			cut = cut || f.between(from, to)
		case f.Kind == Degrade && f.between(from, to):
			l.Link = &f.Link
		}
	}
	n.setCut(w, from, to, cut)
}

// is reports whether a place names the daemon.
func (d *Daemon) is(place string) bool { return place == d.Region || place == d.owner }

// between reports whether a fault of links is about the one from here to
// there. A side that names no place is all that the other side does not name.
func (f *Fault) between(from, to *Daemon) bool {
	return f.leads(from, to) || !f.OneWay && f.leads(to, from)
}

func (f *Fault) leads(from, to *Daemon) bool {
	switch {
	case len(f.To) == 0 && len(f.From) > 0:
		return from.in(f.From) && !to.in(f.From)
	case len(f.From) == 0 && len(f.To) > 0:
		return to.in(f.To) && !from.in(f.To)
	}
	return from.in(f.From) && to.in(f.To)
}

// setCut cuts or heals a link; membership of the region will notice.
func (n *network) setCut(w *World, from, to *Daemon, cut bool) {
	l := n.link(from.Index, to.Index)
	if cut == (l.cutSince != notCut) {
		return
	}
	after := w.cfg.Members.Join
	l.cutSince = notCut
	if cut {
		l.cutSince = w.now
		after = w.cfg.Members.Leave
	}
	if from.Region != to.Region || !from.Up || !to.Up {
		return
	}
	w.membership.notify(w, to, from.member, after)
	w.membership.notify(w, from, to.member, after)
}

// Connected reports whether messages pass in that direction now: both are up
// and nothing cuts the way.
func (w *World) Connected(from, to *Daemon) bool {
	return from.Up && to.Up && (from == to || w.network.link(from.Index, to.Index).cutSince == notCut)
}

// priorityQueue is the longest queue of a line at which a stream has room for a
// frame about strict keys.
const priorityQueue = 20 * time.Millisecond

// room reports whether a stream has room for a frame about strict keys.
func (n *network) room(now time.Duration, from, to int) bool {
	l := n.link(from, to)
	return l.Bandwidth == 0 || l.busy-now <= priorityQueue
}

// send puts a frame for a process on a link. The frame is the network's from
// now on.
func (n *network) send(w *World, from int, process *incarnation, frame []byte) {
	to, name := process.daemon, process.name
	l, origin := n.link(from, to), originOf(w.daemons[from])
	if len(process.incarnations) > 0 {
		origin.To = process.incarnations[0]
	}
	if w.daemons[from].newer && !n.forged { // it would have a new checksum
		frame = withUnknown(origin, frame)
	}
	n.traffic.Frames++
	n.traffic.Bytes += uint64(len(frame))
	f := flight{int32(from), int32(to), w.daemons[from].member, name, origin, frame, w.now, false, n.forged}
	lost := l.cutSince != notCut || n.happens(l.Loss)
	if d := w.daemons[from]; w.traced(d) {
		fate := ""
		if lost {
			fate = " lost"
		}
		w.lines.frame(d, "send", "to="+name, origin, frame, fate)
	}
	if lost {
		n.traffic.Lost++
		w.met.lost(w, from, to, frame)
		n.drop(f)
		return
	}
	sent := w.now
	if l.Bandwidth > 0 {
		sent = max(sent, l.busy)
		if sent-w.now > maxQueue {
			n.traffic.Overflowed++
			n.drop(f)
			return
		}
		sent += time.Duration(int64(len(frame)) * int64(time.Second) / l.Bandwidth)
		l.busy = sent
	}
	if n.happens(l.Duplicate) {
		n.traffic.Duplicated++
		again := f
		again.again = true
		again.frame = append(n.buffer(), frame...)
		n.fly(w, sent+n.latency(l), again)
	}
	f.mangled = n.mangle(w, &f.frame, l) || n.forged
	at := sent + n.latency(l)
	if !n.happens(l.Reorder) {
		at = max(at, l.last)
		l.last = at
	}
	n.fly(w, at, f)
}

func (n *network) fly(w *World, at time.Duration, f flight) {
	w.events.push(at, evDeliver, n.flights.put(f))
}

// drop ends a flight and keeps its memory.
func (n *network) drop(f flight) { n.buffers = append(n.buffers, f.frame[:0]) }

// buffer returns an empty frame.
func (n *network) buffer() []byte {
	last := len(n.buffers) - 1
	if last < 0 {
		return nil
	}
	b := n.buffers[last]
	n.buffers = n.buffers[:last]
	return b
}

// latency draws how long a frame takes.
func (n *network) latency(l *link) time.Duration {
	if l.Jitter == 0 {
		return l.Delay
	}
	if l.Uniform {
		return l.Delay + time.Duration(n.rng.Int64N(int64(l.Jitter)+1))
	}
	// Far out in the tail nothing new happens; the bound keeps a run finite.
	return l.Delay + time.Duration(min(n.rng.ExpFloat64(), 20)*float64(l.Jitter))
}

// mangle damages a frame as the link does and reports whether it did.
func (n *network) mangle(w *World, frame *[]byte, l *link) bool {
	b := *frame
	if len(b) == 0 {
		return false
	}
	if n.happens(l.Truncate) {
		*frame = b[:n.rng.IntN(len(b))]
		n.traffic.Mangled++
		return true
	}
	if !n.happens(l.Corrupt) {
		return false
	}
	whole := slices.Clone(b)
	for range 1 + n.rng.IntN(8) {
		bit := n.rng.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
	}
	if slices.Equal(whole, b) { // the flips undid each other
		return false
	}
	n.traffic.Mangled++
	return true
}

// arrive hands a frame to its daemon. It is for an address, so that a process
// started there since gets it; nobody listens at an address that was given up.
func (n *network) arrive(w *World, i int32) {
	f := &n.flights.items[i]
	d := w.daemons[f.to]
	switch {
	case !d.Up || d.Name != f.name || n.link(int(f.from), int(f.to)).cutSince != notCut:
		if w.traced(d) {
			w.lines.add(d, "lost", "from=%s bytes=%d", w.membership.all[f.sender].name, len(f.frame))
		}
		n.traffic.Lost++
		if d.Up {
			w.met.lost(w, int(f.from), int(f.to), f.frame)
		}
		n.drop(n.flights.take(i))
	case d.Paused && len(d.inbox) >= maxInbox:
		n.traffic.Overflowed++
		n.drop(n.flights.take(i))
	case d.Paused:
		d.inbox = append(d.inbox, i)
	default:
		_ = w.receive(d, n.flights.take(i))
	}
}
