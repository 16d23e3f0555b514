package sim

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
)

// unheard is the time up to which one knows of somebody never heard.
const unheard = time.Duration(math.MinInt64)

// hearing follows who was told what: for every message that was taken, up to
// which virtual time its receiver then knows of its sender.
type hearing struct {
	ears      map[earKey]*ear
	raises    map[earKey]*raises // of what to has of from's, by what others told
	teams     teams
	refused   map[refused]struct{}
	keys      map[crdt.Key]heldBack      // refused cells by key
	windows   map[gossip.CellID]heldBack // refused cells by key and label alone
	tooMany   bool                       // more were refused than are remembered
	noRoom    bool                       // somebody refused cells for want of room
	late      time.Duration              // the longest that hits were under way so far
	maxOffset int64
}

// earKey names one direction between a shard of two writers.
type earKey struct{ to, from, shard int }

// refused is a cell that a replica could not take, and has not taken since.
type refused struct {
	to int
	id gossip.CellID
}

// heldBack is how many cells are refused now, and when that changed last.
type heldBack struct {
	pending int
	last    time.Duration
}

// ear is what a receiver has of a sender.
type ear struct {
	contiguous uint64
	ready      bool          // it heard that the sender takes its share
	sent       time.Duration // when the latest complete message was sent
	last       time.Duration // when the latest of any kind came
	covers     []cover
}

// cover says that from at on the receiver knows all that its sender knew or
// had counted until then. The message was sent at sent.
type cover struct{ at, until, sent time.Duration }

// maxCovers bounds what is remembered of one ear; of times before nothing is
// known then.
const maxCovers = 256

// maxRefused bounds the labels with refusals that are remembered.
const maxRefused = 1 << 16

func newHearing(cfg *Config) hearing {
	offset := cfg.Node.Clock.MaxOffset
	if offset == 0 {
		offset = hlc.DefaultMaxOffset
	}
	return hearing{
		ears: make(map[earKey]*ear), raises: make(map[earKey]*raises), refused: make(map[refused]struct{}),
		keys: make(map[crdt.Key]heldBack), windows: make(map[gossip.CellID]heldBack),
		teams: newTeams(cfg), maxOffset: offset.Milliseconds(),
	}
}

// start notes a new process.
func (h *hearing) start(w *World, is *writer) {
	if is != nil {
		h.teams.start(w, is)
	}
}

// stop notes that a process is gone: what it believed counts no more.
func (h *hearing) stop(w *World, s *writers, is *writer) {
	h.teams.change(w, h, s, is)
	h.teams.stop(is, w.Now())
}

// stepped notes a message that was taken.
func (h *hearing) stepped(w *World, b *books, d *Daemon, m *gossip.Message, err error) {
	s := &b.writers
	if m == nil || err != nil {
		return
	}
	to, from := s.of(d), s.byIncarnation[m.From]
	if to == nil || from == nil {
		return
	}
	e := h.ear(to.index, from.index, m.Shard)
	if m.Ready && !e.ready {
		h.teams.change(w, h, s, to)
		e.ready = true
	}
	h.raise(b, to, from, m, w.Now())
	l := b.clocks.of(d, m.Shard)
	h.refuse(to.index, m, w.Now(), l.came)
	e.last = w.Now()
	if m.Lo <= e.contiguous && m.Hi > e.contiguous {
		e.contiguous = m.Hi
	}
	if m.Complete && m.Hi <= e.contiguous {
		sent := from.sentAt(m.Nonce)
		h.delay(e, from, w.Now())
		e.sent = max(e.sent, sent)
		e.take(cover{at: w.Now(), until: sent - m.Unsent, sent: sent})
	}
}

// delay notes how late the hits may be that a message brings: sent since the
// cover before, or since the sender was there.
func (h *hearing) delay(e *ear, from *writer, now time.Duration) {
	since := from.born
	if n := len(e.covers); n > 0 {
		since = e.covers[n-1].until
	}
	h.late = max(h.late, 2*(now-since)) // twice: there are up to three hops
}

func (h *hearing) ear(to, from, shard int) *ear {
	k := earKey{to, from, shard}
	e := h.ears[k]
	if e == nil {
		e = &ear{sent: unheard, last: unheard}
		h.ears[k] = e
	}
	return e
}

// refuse follows the cells that a receiver must refuse for now, because its
// clock is too far behind their label.
func (h *hearing) refuse(to int, m *gossip.Message, now time.Duration, window int64) {
	for i := range m.Cells {
		c := &m.Cells[i]
		far := c.Window > window+h.maxOffset+c.WindowLength
		if !far && len(h.refused) == 0 {
			continue
		}
		r := refused{to, c.CellID}
		_, was := h.refused[r]
		switch {
		case far && !was:
			if len(h.refused) >= maxRefused || len(h.keys) >= maxRefused {
				h.tooMany = true
				continue
			}
			h.refused[r] = struct{}{}
			h.holdBack(c, 1, now)
		case !far && was:
			delete(h.refused, r)
			h.holdBack(c, -1, now)
		}
	}
}

// holdBack counts a refusal, or that it is over.
func (h *hearing) holdBack(c *gossip.Cell, by int, now time.Duration) {
	window := gossip.CellID{Key: c.Key, Window: c.Window}
	of, any := h.windows[window], h.keys[c.Key]
	of.pending, any.pending = of.pending+by, any.pending+by
	of.last, any.last = now, now
	h.windows[window], h.keys[c.Key] = of, any
}

// heldBack returns the time from which on what is known of a label includes
// cells that somebody refused before: never while one is not taken yet.
func (h *hearing) heldBack(k crdt.Key, window int64) time.Duration {
	if len(h.refused) == 0 && len(h.windows) == 0 && !h.tooMany {
		return unheard
	}
	return h.from(h.windows[gossip.CellID{Key: k, Window: window}])
}

// heldBackAny is heldBack for all labels of a key.
func (h *hearing) heldBackAny(k crdt.Key) time.Duration {
	if len(h.refused) == 0 && len(h.keys) == 0 && !h.tooMany {
		return unheard
	}
	return h.from(h.keys[k])
}

func (h *hearing) from(b heldBack) time.Duration {
	switch {
	case h.tooMany || b.pending > 0:
		return never
	case b == heldBack{}:
		return unheard
	}
	return b.last
}

// take adds a cover, unless an earlier message reached further.
func (e *ear) take(c cover) {
	n := len(e.covers)
	if n > 0 && e.covers[n-1].until >= c.until {
		return
	}
	if n == maxCovers {
		n = copy(e.covers, e.covers[maxCovers/2:])
		e.covers = e.covers[:n]
	}
	e.covers = append(e.covers, c)
}

// before returns the latest cover from before a time; false for none that is
// remembered.
func (e *ear) before(t time.Duration) (cover, bool) {
	if e == nil {
		return cover{}, false
	}
	low, high := 0, len(e.covers)
	for low < high {
		if mid := (low + high) / 2; e.covers[mid].at < t {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return cover{}, false
	}
	return e.covers[low-1], true
}

// since returns the first cover that was sent at a time or later, of which there
// is one.
func (e *ear) since(t time.Duration) cover {
	return e.covers[slices.IndexFunc(e.covers, func(c cover) bool { return c.sent >= t })]
}

// happened follows what replicas believe of each other.
func (h *hearing) happened(w *World, s *writers, d *Daemon, e gossip.Event) {
	is := s.of(d)
	if is == nil {
		return
	}
	switch e.Kind {
	case gossip.PeerJoined, gossip.PeerLeft, gossip.BecameReady:
		h.teams.change(w, h, s, is)
		h.teams.happened(w, s, is, e)
	case gossip.CellRefused:
		h.noRoom = h.noRoom || e.Reason == gossip.NoRoom
	}
}

// direct is up to when one writer knows of another by its own messages before
// a time, or of one that is gone by what others told it when they met.
func (h *hearing) direct(s *writers, to, from, shard int, before time.Duration) time.Duration {
	if to == from {
		return before
	}
	at := unheard
	if c, ok := h.ears[earKey{to, from, shard}].before(before); ok {
		at = c.until
	}
	gone := s.all[from]
	if gone.up || gone.region != s.all[to].region {
		return at
	}
	for _, via := range s.all {
		if via.region != gone.region || via.index == to || via.index == from {
			continue
		}
		met, ok := h.teams.met(via.index, to)
		told, all := h.ears[earKey{to, via.index, shard}].before(before)
		if !ok || !all || told.sent < met {
			continue
		}
		// What came of it after they met is its own to tell, until it is
		// known to be gone.
		if _, believed := h.teams.met(via.index, from); h.hears(via.index, from, shard, met) &&
			(believed || told.sent < h.teams.minds[via.index].since) {
			continue
		}
		// A cell that grew by what others told it, before it had told all, is
		// for the key's aggregator to tell: it leaves out what it knew, too.
		swept := h.ears[earKey{to, via.index, shard}].since(met).sent
		if h.raises[earKey{via.index, from, shard}].between(met, swept+time.Microsecond, to) {
			continue
		}
		if c, ok := h.ears[earKey{via.index, from, shard}].before(met); ok {
			at = max(at, c.until)
		}
	}
	return at
}

// hears reports whether anything of a writer came to another since a time.
func (h *hearing) hears(to, from, shard int, since time.Duration) bool {
	e := h.ears[earKey{to, from, shard}]
	return e != nil && e.last >= since
}
