package audit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/sim"
)

// clockAuditor holds replicas to the laws of hybrid clocks, by the stamps of
// their messages and the clocks of their decisions.
//
//   - The stamps of a process grow with its monotonic clock, and so does the
//     clock of its decisions.
//   - A stamp that is not far ahead is followed: later stamps are greater.
//   - No stamp and no decision is more than max_offset ahead of the physical
//     reading: the wall clock of the daemon, or after a step back of it the
//     line on which the reading waits for it. So no peer moves a window by
//     more than that, neither one that is an hour ahead nor one that drifts
//     away slowly.
//   - A decision is not behind a wall clock that does not leap.
//
// The shards of a daemon have clocks of their own, and messages carry the
// greatest of them: the first two laws are checked for stamps where there is
// one shard.
type clockAuditor struct {
	finding
	stamps []*stamps // by process
	walls  []wall    // by Daemon.Index
	slew   int64     // the line of readings loses one part in so many
	last   [][]int64 // by Daemon.Index and shard: clock of the latest decision
}

// stamps are the latest of a process.
type stamps struct {
	nonce    uint64
	stamp    hlc.Timestamp
	accepted []acceptedStamp // ascending in both fields
}

// acceptedStamp is a stamp that a process followed at a monotonic time, µs.
type acceptedStamp struct {
	mono  uint64
	stamp hlc.Timestamp
}

// wall is the wall clock of a process, as the difference to its monotonic one
// in ns.
type wall struct {
	reading reading
	shards  []shardWall
}

// shardWall is what one shard saw of a wall clock. It may see the slow drift of
// many small steps as one.
type shardWall struct {
	latest int64
	leapt  bool // it moved ahead by so much that it may not be believed
}

// maxAccepted bounds the stamps that are remembered of a process. clockSlack is
// for rounding to milliseconds and for full counters, in ms.
const (
	maxAccepted = 128
	clockSlack  = 2
)

func clocks(a *sim.Auditor, t *truth) {
	c := &clockAuditor{
		finding: finding{a, t},
		slew:    cmp.Or(t.world.Config().Node.Clock.SlewDivisor, hlc.DefaultSlewDivisor),
		walls:   make([]wall, len(t.up)), last: make([][]int64, len(t.up)),
	}
	a.Restarted, a.Stepped, a.Decided = c.restarted, c.stepped, c.decided
}

func (a *clockAuditor) restarted(d *sim.Daemon) {
	a.last[d.Index] = make([]int64, len(d.Nodes))
	w := &a.walls[d.Index]
	*w = wall{}
	w.shards = slices.Repeat([]shardWall{{latest: a.read(d, d.Instant(a.world.Now()))}}, len(d.Nodes))
}

// read notes the wall clock of a daemon at an instant, and returns it.
func (a *clockAuditor) read(d *sim.Daemon, at node.Instant) (offset int64) {
	offset = at.Wall - int64(at.Mono)
	a.walls[d.Index].reading.note(at.Mono, offset, a.slew)
	return offset
}

// leapt notes the wall clock that a shard saw, and reports whether it leapt.
func (a *clockAuditor) leapt(d *sim.Daemon, shard int, offset int64) bool {
	w := &a.walls[d.Index].shards[shard]
	w.leapt = w.leapt || offset-w.latest > int64(a.maxOffset)/4
	w.latest = offset
	return w.leapt
}

// setBack notes a wall clock that a shard may have seen: one that is set back
// and forward again leaps where the shard read it between the two.
func (a *clockAuditor) setBack(d *sim.Daemon, offset int64) {
	shards := a.walls[d.Index].shards
	for i := range shards {
		shards[i].latest = min(shards[i].latest, offset)
	}
}

// ceiling returns the highest clock that is allowed at a monotonic time, Unix
// ms.
func (a *clockAuditor) ceiling(d *sim.Daemon, mono time.Duration) int64 {
	return (a.walls[d.Index].reading.leadAt(mono)+int64(mono)+int64(a.maxOffset))/int64(time.Millisecond) + clockSlack
}

func (a *clockAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	at := d.Instant(a.world.Now())
	offset := a.read(d, at)
	if m == nil {
		a.setBack(d, offset)
	}
	from, to, ok := a.accepted(d, m, err)
	if !ok || m.Stamp == 0 {
		return
	}
	leapt := a.leapt(d, m.Shard, offset)
	if len(d.Nodes) == 1 {
		a.order(from, m)
		clock := to.ahead[m.Shard] + a.world.Now().Milliseconds()
		if clock >= m.Stamp.Millis() {
			a.stampsOf(to).accept(acceptedStamp{uint64(at.Mono / gossip.NonceUnit), m.Stamp})
		} else {
			near := at.Wall/int64(time.Millisecond) + a.maxOffset.Milliseconds() - clockSlack
			if !a.ok(leapt || m.Stamp.Millis() > near) {
				a.fail("%s did not follow stamp %v, and its clocks show %d and %d",
					d.Name, m.Stamp, clock, at.Wall)
			}
		}
	}
	if from == a.up[from.daemon.Index] {
		// It was sent within the unit of its nonce.
		most := a.ceiling(from.daemon, time.Duration(m.Nonce+1)*gossip.NonceUnit-1)
		if !a.ok(m.Stamp.Millis() <= most) {
			a.fail("%s sent stamp %v, and its clocks allow %d", from.name(), m.Stamp, most)
		}
	}
}

// order checks a stamp against those before it.
func (a *clockAuditor) order(from *process, m *gossip.Message) {
	s := a.stampsOf(from)
	for i := len(s.accepted) - 1; i >= 0; i-- {
		if s.accepted[i].mono < m.Nonce {
			if !a.ok(m.Stamp > s.accepted[i].stamp) {
				a.fail("%s sent stamp %v after it had accepted %v",
					from.name(), m.Stamp, s.accepted[i].stamp)
			}
			break
		}
	}
	before, same := m.Nonce < s.nonce, m.Nonce == s.nonce
	if !a.ok(same || before == (m.Stamp < s.stamp) && m.Stamp != s.stamp) {
		a.fail("%s sent stamp %v at %d and %v at %d",
			from.name(), m.Stamp, m.Nonce, s.stamp, s.nonce)
	}
	if m.Nonce > s.nonce {
		s.nonce, s.stamp = m.Nonce, m.Stamp
	}
}

// stampsOf returns the stamps of a process.
func (a *clockAuditor) stampsOf(p *process) *stamps {
	for len(a.stamps) <= p.index {
		a.stamps = append(a.stamps, &stamps{})
	}
	return a.stamps[p.index]
}

func (s *stamps) accept(t acceptedStamp) {
	if n := len(s.accepted); n == 0 || s.accepted[n-1].stamp < t.stamp && s.accepted[n-1].mono <= t.mono {
		if n == maxAccepted {
			s.accepted = s.accepted[:copy(s.accepted, s.accepted[maxAccepted/2:])]
		}
		s.accepted = append(s.accepted, t)
	}
}

// decided checks the clock of a decision, and the window that it shows.
func (a *clockAuditor) decided(d *sim.Decided) {
	offset := a.read(d.Daemon, d.Instant)
	e := &a.entry
	if e.process == nil || d.Limit == nil {
		return
	}
	leapt := a.leapt(d.Daemon, e.shard, offset)
	last := &a.last[d.Daemon.Index][e.shard]
	most := a.ceiling(d.Daemon, d.Instant.Mono)
	name := d.Daemon.Name
	switch {
	case !a.ok(e.now >= *last):
		a.fail("%s decided at %d of its clock after %d", name, e.now, *last)
	case !a.ok(e.now <= most):
		a.fail("%s decided at %d of its clock, and its wall clocks allow %d", name, e.now, most)
	case !a.ok(leapt || e.now+clockSlack >= d.Instant.Wall/int64(time.Millisecond)):
		a.fail("%s decided at %d of its clock, behind its wall clock at %d", name, e.now, d.Instant.Wall)
	case showsWindow(d):
		end := e.now + d.Status.Reset.Milliseconds()
		off := end % d.Limit.Window()
		if !a.ok(min(off, d.Limit.Window()-off) <= clockSlack) {
			a.fail("%s decided at %d of its clock and stated that its window ends at %d", name, e.now, end)
		}
	}
	*last = max(*last, e.now)
}

// showsWindow reports whether a decision states when its window ends. That of a
// key with an owner states the owner's window.
func showsWindow(d *sim.Decided) bool {
	return !d.Limit.Homed() && quota.Of(d.Limit).Windowed() && d.Status.Reset > 0 && d.Status.Reset < math.MaxInt64
}
