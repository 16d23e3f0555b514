package agent

import (
	"fmt"
	"testing"
	"time"
)

// TestFastClock: the clock of a daemon is far ahead, and the others do not
// follow it. It loses its disk: its former participant keeps its share until
// its horizon ended, or the operator stated it dead.
func TestFastClock(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t, 1, n, 1)
			r.mangle = func(m *Message) { m.Stamp = min(m.Stamp, stampAt(dawn+r.at.Milliseconds()+250)) }
			r.boot()
			p := r.find("a1")
			p.skew = 20_000
			r.run(20 * time.Second)
			former := p.id()
			r.crash(p)
			r.run(3 * time.Second)
			p.skew, p.last = 0, 0
			r.restart(p, true)
			r.run(45 * time.Second)
			r.safe()
			if n == 2 {
				r.removeID(former)
			}
			r.until(15*time.Second, "it joined", func() bool { return r.base(p, 0) > 1000 && r.whole() })
			r.safe()
		})
	}
}

// TestClockOffProposesNothing: a leader whose clock is hours ahead proposes
// nothing. Its proposal would keep the region from another one for as long.
func TestClockOffProposesNothing(t *testing.T) {
	r := newRig(t, 1, 3, 1)
	r.mangle = func(m *Message) { m.Stamp = min(m.Stamp, stampAt(dawn+r.at.Milliseconds()+250)) }
	r.boot()
	leader, dead := r.find("a1"), r.find("a3")
	r.crash(leader)
	r.crash(dead)
	r.run(time.Second)
	leader.skew, leader.clockOff = 2*60*60*1000, true
	r.restart(leader, false)
	r.run(10 * time.Second)
	if n := leader.Status().Daemons; !n[len(n)-1].Settled {
		t.Errorf("proposed %v with a clock that is off", n)
	}
	r.crash(leader)
	leader.skew, leader.last, leader.clockOff = 0, 0, false
	r.restart(leader, false)
	r.until(20*time.Second, "the dead daemon is left out", func() bool {
		e := leader.Status().Daemons
		return e[len(e)-1].Settled && len(e[len(e)-1].Members) == 2
	})
	r.safe()
}
