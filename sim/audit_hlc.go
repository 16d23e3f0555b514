package sim

import (
	"math"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota"
)

// clockAuditor holds replicas to the laws of hybrid clocks, by what they show
// of theirs: the stamps of their messages and the windows of their decisions.
//
//   - Stamps of an incarnation grow with its monotonic clock, and so does the
//     label time of its decisions.
//   - What is sent after a message was taken has a greater stamp than it, but
//     where the clock refused that stamp.
//   - No stamp and no label is more than max_offset ahead of the highest wall
//     clock its daemon believed so far, carried on at the monotonic rate: so a
//     peer that is an hour ahead moves nobody's label, nor does a leap that
//     was not adopted. Nor is a label behind a wall clock that is believed.
//
// The shards of a daemon have clocks of their own, and its messages carry the
// greatest of those that spoke; the first two laws are checked where there is
// one shard.
type clockAuditor struct {
	watcher
	stamps  map[crdt.Incarnation]*stamps
	windows [][]int64 // by Daemon.Index and shard: of the latest decision
}

// stamps is what is known of an incarnation's.
type stamps struct {
	nonce uint64 // the latest, and its stamp
	stamp hlc.Timestamp
	taken []takenStamp // ascending in both
}

// takenStamp is a stamp that a clock took in at a monotonic time, µs.
type takenStamp struct {
	mono  uint64
	stamp hlc.Timestamp
}

// maxTaken bounds the stamps that are remembered of a clock.
const maxTaken = 128

// clockSlack is what rounding to milliseconds and full counters may add, in ms.
const clockSlack = 2

func newClockAuditor(b *books) *clockAuditor {
	return &clockAuditor{
		watcher: newWatcher("hlc", b), stamps: make(map[crdt.Incarnation]*stamps), windows: make([][]int64, len(b.clocks.all)),
	}
}

func (a *clockAuditor) of(incarnation crdt.Incarnation) *stamps {
	s := a.stamps[incarnation]
	if s == nil {
		s = &stamps{}
		a.stamps[incarnation] = s
	}
	return s
}

// Restarted forgets the labels of the process before.
func (a *clockAuditor) Restarted(w *World, d *Daemon) {
	a.watcher.Restarted(w, d)
	a.windows[d.Index] = make([]int64, len(d.Nodes))
}

// Stepped checks the stamp of a message.
func (a *clockAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	if m == nil || err != nil {
		return
	}
	from := a.books.writers.byIncarnation[m.From]
	if from == nil {
		return
	}
	if len(d.Nodes) == 1 {
		a.order(w, from, m)
		if is := a.books.writers.of(d); is != nil && !a.books.clocks.of(d, m.Shard).refused {
			a.of(is.incarnation).take(takenStamp{uint64(d.Instant(w.Now()).Mono.Microseconds()), m.Stamp})
		}
	}
	c := a.books.clocks.of(from.daemon, m.Shard)
	if c == nil || from != a.books.writers.of(from.daemon) {
		return
	}
	most := a.ceiling(from.daemon, time.Duration(m.Nonce)*time.Microsecond)
	if m.Stamp.Millis() > most+a.books.hearing.maxOffset+clockSlack {
		a.failed(w, "%s sent stamp %v, and no clock it believes was beyond %d", from.daemon.Name, m.Stamp, most)
		return
	}
	a.passed(1)
}

// ceiling is the highest of a daemon's shards at a monotonic time, in ms: its
// messages carry the greatest of their stamps.
func (a *clockAuditor) ceiling(d *Daemon, mono time.Duration) int64 {
	most := int64(math.MinInt64)
	for s := range a.books.clocks.all[d.Index] {
		most = max(most, a.books.clocks.of(d, s).ceilingAt(mono)/int64(time.Millisecond))
	}
	return most
}

// order checks a stamp against those before it.
func (a *clockAuditor) order(w *World, from *writer, m *gossip.Message) {
	s := a.of(from.incarnation)
	for i := len(s.taken) - 1; i >= 0; i-- {
		if s.taken[i].mono >= m.Nonce {
			continue
		}
		if m.Stamp <= s.taken[i].stamp {
			a.failed(w, "%s sent stamp %v after it had taken %v", from.daemon.Name, m.Stamp, s.taken[i].stamp)
		} else {
			a.passed(1)
		}
		break
	}
	switch {
	case m.Nonce > s.nonce && m.Stamp <= s.stamp:
		a.failed(w, "%s sent stamp %v after %v", from.daemon.Name, m.Stamp, s.stamp)
	case m.Nonce < s.nonce && m.Stamp >= s.stamp:
		a.failed(w, "%s sent stamp %v before %v", from.daemon.Name, m.Stamp, s.stamp)
	default:
		a.passed(1)
	}
	if m.Nonce > s.nonce {
		s.nonce, s.stamp = m.Nonce, m.Stamp
	}
}

// take remembers a stamp that a clock took in.
func (s *stamps) take(t takenStamp) {
	if n := len(s.taken); n == 0 || s.taken[n-1].stamp < t.stamp && s.taken[n-1].mono <= t.mono {
		if n == maxTaken {
			s.taken = s.taken[:copy(s.taken, s.taken[maxTaken/2:])]
		}
		s.taken = append(s.taken, t)
	}
}

// Decided checks the label that a window's decision was made under.
func (a *clockAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	e := &a.books.entry
	c := a.books.clocks.of(d.Daemon, e.shard)
	if c == nil || d.Limit == nil || !showsWindow(d) {
		return
	}
	last := &a.windows[d.Daemon.Index][e.shard]
	most := c.ceilingAt(d.Instant.Mono)/int64(time.Millisecond) + a.books.hearing.maxOffset + clockSlack
	switch {
	case e.now < *last:
		a.failed(w, "%s decided at %d of its label clock after %d", d.Daemon.Name, e.now, *last)
	case e.now > most:
		a.failed(w, "%s decided at %d of its label clock, and no clock it believes is beyond %d", d.Daemon.Name, e.now, most)
	case a.follows(d.Daemon, c) && e.now+clockSlack < d.Instant.Wall/int64(time.Millisecond):
		a.failed(w, "%s decided at %d of its label clock, behind its wall clock at %d", d.Daemon.Name, e.now, d.Instant.Wall)
	default:
		a.passed(1)
	}
	*last = max(*last, e.now)
}

// follows reports whether a label clock is surely not behind its wall clock:
// it holds no leap back.
func (a *clockAuditor) follows(d *Daemon, c *windowClock) bool {
	return c.clock.Held() == 0 && (len(d.Nodes) == 1 || !c.bent)
}

// showsWindow reports whether a decision says when its window ends. Those of homes
// say what the home knows.
func showsWindow(d *Decided) bool {
	l := d.Limit
	return l != nil && !l.Homed() && quota.Of(l).Windowed() && d.Status.Reset > 0 && d.Status.Reset < math.MaxInt64
}
