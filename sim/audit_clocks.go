package sim

import (
	"math"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
)

// windowClocks follows the clock that each replica cuts its labels from, by
// handing a clock of the same kind the same readings and stamps.
type windowClocks struct {
	cfg       hlc.Config
	maxOffset time.Duration
	all       [][]windowClock // by Daemon.Index, one a shard; empty before the first start
}

// windowClock is one shard's.
type windowClock struct {
	clock     *hlc.Clock
	maxOffset time.Duration
	now       int64         // the latest label time, Unix ms
	at        time.Duration // virtual time of it
	// ahead is by how many ms it stands before virtual time, least and most
	// what that was since the process started.
	ahead, least, most int64
	// ceiling is the highest line so far of a wall clock that is believed, ns:
	// what it showed at the monotonic time line and would show had it gone on
	// from there. held is by how much it leapt beyond without being believed.
	ceiling int64
	line    time.Duration
	held    int64
	adopt   bool          // the next reading is believed
	adopted time.Duration // when a leap was last
	// came is the label time when the latest message came, refused whether its
	// stamp was, or may have been: by a clock that is bent, and so perhaps a
	// millisecond apart from this one.
	came    int64
	refused bool
	// bent says that it was apart from the wall clock at some time. What it
	// then shows depends on each reading that was taken, of which a change of
	// rules takes one that nobody is told of.
	bent bool
}

func newWindowClocks(cfg *Config) windowClocks {
	c := windowClocks{cfg: cfg.Node.Clock, maxOffset: cfg.Node.Clock.MaxOffset, all: make([][]windowClock, cfg.Daemons())}
	if c.maxOffset == 0 {
		c.maxOffset = hlc.DefaultMaxOffset
	}
	return c
}

// start begins the clocks of a new process.
func (c *windowClocks) start(w *World, d *Daemon) {
	clocks := make([]windowClock, len(d.Nodes))
	for s := range clocks {
		clocks[s] = windowClock{
			clock: hlc.NewClock(c.cfg), maxOffset: c.maxOffset, least: math.MaxInt64, most: math.MinInt64,
			ceiling: math.MinInt64, adopted: unheard,
		}
		clocks[s].clock.HoldJumps(true)
		clocks[s].read(w.Now(), d.Instant(w.Now())) // the rules were set
	}
	c.all[d.Index] = clocks
}

// read takes a reading and returns the label time.
func (l *windowClock) read(virtual time.Duration, at node.Instant) int64 {
	l.now, l.at = l.clock.Millis(at), virtual
	l.ahead = l.now - virtual.Milliseconds()
	l.least, l.most = min(l.least, l.ahead), max(l.most, l.ahead)
	l.bent = l.bent || l.clock.Offset() != 0 || l.clock.Held() != 0
	l.believe(at)
	return l.now
}

// believe raises the ceiling to a wall clock that does not leap. A clock that
// was read more often than the books know may have believed twice as much.
func (l *windowClock) believe(at node.Instant) {
	if l.ceiling == math.MinInt64 {
		l.ceiling, l.line = at.Wall, at.Mono
		return
	}
	line, most := l.ceilingAt(at.Mono), 2*int64(l.maxOffset)
	if l.adopt {
		l.adopt, l.held, l.ceiling, l.line = false, 0, max(line, at.Wall), at.Mono
		return
	}
	beyond := at.Wall - l.held - line
	switch {
	case beyond > most:
		l.held += beyond
	case beyond > 0:
		l.ceiling, l.line = line+beyond, at.Mono
	case l.held > 0 && beyond < -most:
		l.held = max(0, at.Wall-line)
	}
}

// ceilingAt is the highest line at a monotonic time, ns.
func (l *windowClock) ceilingAt(mono time.Duration) int64 {
	if l.ceiling == math.MinInt64 {
		return l.ceiling
	}
	return l.ceiling + int64(mono-l.line)
}

// of returns a daemon's clock of a shard, nil before its first start.
func (c *windowClocks) of(d *Daemon, shard int) *windowClock {
	if clocks := c.all[d.Index]; shard < len(clocks) {
		return &clocks[shard]
	}
	return nil
}

// decided returns the label time of a decision. What a window's answer says of
// its end settles which window it was.
func (c *windowClocks) decided(d *Decided, shard int) int64 {
	l := c.of(d.Daemon, shard)
	if l == nil {
		return 0
	}
	now := l.read(d.At, d.Instant)
	if !showsWindow(d) {
		return now
	}
	width, left := d.Limit.Window(), d.Status.Reset.Milliseconds()
	off := (now + left) % width // 0 when the two agree
	if off > width/2 {
		off -= width
	}
	return now - off
}

// stepped follows an input to a replica: a message to one shard, a tick to
// those that are due, or a change of members to all.
func (c *windowClocks) stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	at := d.Instant(w.Now())
	if m != nil {
		if l := c.of(d, m.Shard); l != nil {
			l.came = l.read(w.Now(), at)
			if err == nil {
				l.refused = l.clock.Observe(at, m.Stamp) != nil || l.bent && m.Stamp.Millis() > l.came
				l.read(w.Now(), at)
			}
		}
		return
	}
	for s := range c.all[d.Index] {
		if w.doing.kind != evWake || s < len(d.wakes) && d.wakes[s] <= at.Mono {
			c.all[d.Index][s].read(w.Now(), at)
		}
	}
}

// heeded follows a message about strict keys to one shard, or nil for a call that
// began to wait there.
func (c *windowClocks) heeded(w *World, d *Daemon, shard int, m *sticky.Message) {
	l, at := c.of(d, shard), d.Instant(w.Now())
	if l == nil {
		return
	}
	l.read(w.Now(), at)
	if m != nil {
		_ = l.clock.Observe(at, m.Stamp) // a stamp that is off is not followed
		l.read(w.Now(), at)
	}
}

// happened follows a jump of the wall clock that a replica came to believe in a
// tick: which of the shards that ticked just now it was is not told, so it is
// taken for the first that holds one back, and all may be as far ahead.
func (c *windowClocks) happened(w *World, d *Daemon, e gossip.Event) {
	if e.Kind != gossip.JumpAdopted {
		return
	}
	found := false
	for s := range c.all[d.Index] {
		l := &c.all[d.Index][s]
		l.adopt = true
		l.believe(d.Instant(w.Now()))
		l.adopt = true // the reading follows with the next Instant
		if !found && l.at == w.Now() && l.clock.Held() > 0 && l.adopted != l.at {
			found, l.adopted = true, l.at
			l.clock.AdoptJump()
		}
	}
}

// slowest is the least label time of the replicas that are up.
func (c *windowClocks) slowest(w *World) int64 {
	least := int64(math.MaxInt64)
	for _, d := range w.Daemons() {
		if !d.Up {
			continue
		}
		for s := range c.all[d.Index] {
			l := &c.all[d.Index][s]
			least = min(least, l.now+(w.Now()-l.at).Milliseconds())
		}
	}
	return least
}

// spread is how far the label clocks of the replicas that are up stand apart.
func (c *windowClocks) spread(w *World) time.Duration {
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, d := range w.Daemons() {
		if !d.Up {
			continue
		}
		for s := range c.all[d.Index] {
			ahead := c.all[d.Index][s].ahead
			low, high = min(low, ahead), max(high, ahead)
		}
	}
	return time.Duration(max(0, high-low)) * time.Millisecond
}
