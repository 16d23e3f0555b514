package agent

import (
	"fmt"
	"testing"
	"time"
)

// TestLeave shows how soon all rights are held again after daemons left, or
// came back with their disks.
func TestLeave(t *testing.T) {
	for _, tt := range []struct {
		daemons, leave int
		back           bool // two seconds later
		within         time.Duration
	}{
		{1, 1, true, 3 * time.Second},
		{2, 1, false, 2 * time.Second},
		{2, 1, true, 4 * time.Second},
		{2, 2, true, 6 * time.Second},
		{3, 1, false, 2 * time.Second},
		{3, 2, false, 2 * time.Second},
		{3, 3, true, 6 * time.Second},
		{5, 2, false, 2 * time.Second},
		{9, 9, true, 6 * time.Second},
		{10, 7, false, 2 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d of %d back=%v", tt.leave, tt.daemons, tt.back), func(t *testing.T) {
			r := newRig(t, 1, tt.daemons)
			r.boot()
			r.run(3 * time.Second)
			left := r.daemons[:tt.leave]
			for _, p := range left {
				r.leave(p, 0)
				r.run(time.Second / time.Duration(tt.leave))
			}
			r.until(3*time.Second, "they are gone", func() bool { return !anyUp(left) })
			if tt.back {
				r.run(2 * time.Second)
				for _, p := range left {
					r.restart(p, false)
				}
			}
			r.until(tt.within, "all is held again", func() bool {
				for _, p := range left {
					if tt.back && !r.joined(p) {
						return false
					}
				}
				return r.whole()
			})
			r.safe()
		})
	}
}

// TestRollTakesUpWindows: a daemon that leaves and comes back continues its
// share of the running window, also after all daemons did so one after the
// other.
func TestRollTakesUpWindows(t *testing.T) {
	for _, daemons := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(daemons), func(t *testing.T) {
			r := newRig(t, 1, daemons, 2)
			r.asked = append(r.asked, asked{14, 90_000, 3_600_000, 0})
			r.rules = append(r.rules, Rule{ID: 14, Lookback: 2 * time.Hour})
			r.boot()
			r.run(3 * time.Second)
			window := r.now(r.daemons[0])
			window -= window % 3_600_000
			former := func() (sum uint64) {
				for _, p := range r.daemons {
					got, _ := p.Former(14, 90_000, window, 0, false)
					sum += got
				}
				return sum
			}
			before := former()
			for range 2 {
				for _, p := range r.daemons {
					r.leave(p, 0)
					r.until(4*time.Second, "it is gone", func() bool { return !p.up })
					r.run(time.Second)
					r.restart(p, false)
					r.until(6*time.Second, "it is back", func() bool { return r.joined(p) })
				}
			}
			r.run(3 * time.Second)
			if after := former(); before == 0 || after < before-uint64(len(r.daemons)) {
				t.Errorf("%d of %d are held after the roll", after, before)
			}
			r.safe()
		})
	}
}

func anyUp(all []*proc) bool {
	for _, p := range all {
		if p.up {
			return true
		}
	}
	return false
}

// TestRoll restarts nine daemons, one after the other. Each leaves by an epoch
// for windows that begin a little later, so that nobody lacks a share at any
// moment.
func TestRoll(t *testing.T) {
	r := newRig(t, 1, 3, 3, 3)
	r.boot()
	r.run(3 * time.Second)
	least := r.asked[0].total
	for _, p := range r.daemons {
		watch := func(d time.Duration) {
			for end := r.at + d; r.at < end; {
				r.run(step)
				least = min(least, r.held(0))
			}
		}
		r.leave(p, 0)
		watch(3 * time.Second)
		r.restart(p, false)
		watch(10 * time.Second)
		if least*100 < 99*r.asked[0].total || !r.whole() || !r.joined(p) {
			r.dump()
			t.Fatalf("%s: at least %d of %d held", p.name, least, r.asked[0].total)
		}
	}
	t.Logf("at least %d of %d held", least, r.asked[0].total)
	r.safe()
}

// TestRollRunningWindows: with a delay of eleven seconds, a roll costs no
// rights to windows of ten seconds that run already.
func TestRollRunningWindows(t *testing.T) {
	for _, tt := range []struct {
		delay time.Duration
		all   bool
	}{{11 * time.Second, true}, {0, false}} {
		r := newRig(t, 1, 3, 3)
		r.boot()
		r.run(30 * time.Second)
		least := r.asked[0].total
		watch := func(d time.Duration) {
			for end := r.at + d; r.at < end; {
				r.run(step)
				sum, now := uint64(0), r.now(r.daemons[0])
				for _, p := range r.daemons {
					if p.up {
						sum += r.baseAt(p, 0, now-now%10_000)
					}
				}
				least = min(least, sum)
			}
		}
		for _, p := range r.daemons {
			r.leave(p, tt.delay)
			watch(tt.delay + 3*time.Second)
			r.restart(p, false)
			watch(25 * time.Second)
		}
		if all := least*100 >= 99*r.asked[0].total; all != tt.all {
			t.Errorf("delay %v: at least %d of %d held", tt.delay, least, r.asked[0].total)
		}
		r.safe()
	}
}

// leave stops a daemon as SIGTERM does: it goes on to serve for a while.
func (r *rig) leave(p *proc, serves time.Duration) {
	if p.leaving == 0 {
		p.Leave()
		p.serves, p.leaving = r.at+serves, r.at+serves+2*time.Second
	}
}

// endLeaving stops a daemon that leaves, once it may stop.
func (r *rig) endLeaving(p *proc) {
	switch {
	case !p.up || p.leaving == 0:
	case p.Stopped():
		r.crash(p)
		p.left = p.disk.Stopped()
	case r.at >= p.leaving+time.Second:
		r.crash(p)
	case r.at < p.serves:
	case p.Left() || r.at >= p.leaving:
		p.Stop()
	}
}

// joined reports whether a daemon is in the settled epoch of its region.
func (r *rig) joined(p *proc) bool {
	e, _ := p.local.Settled()
	return p.up && e.Has(p.id())
}

// TestStopStoresOnce: a record that is no more ahead of the clock is no reason
// to store again and again.
func TestStopStoresOnce(t *testing.T) {
	r := newRig(t, 1, 2)
	r.boot()
	r.run(3 * time.Second)
	p := r.daemons[0]
	p.Stop()
	r.until(time.Second, "it has stopped", p.Stopped)
	r.run(20 * time.Second)
	if out := p.Ready(r.at); out.Store != nil {
		t.Fatal("it stores although nothing changed")
	}
	r.safe()
}

// TestStopIsStored: the next run uses the windows after a stop, and without it
// on disk none that the former one may have used.
func TestStopIsStored(t *testing.T) {
	for _, stored := range []bool{true, false} {
		r := newRig(t, 1, 1)
		r.boot()
		r.run(3 * time.Second)
		p := r.daemons[0]
		r.failing = func(*proc) bool { return !stored }
		p.Stop()
		r.run(500 * time.Millisecond)
		if held := r.base(p, 0); held != 0 || p.Stopped() != stored {
			t.Fatalf("%d held after the stop, stopped %v", held, p.Stopped())
		}
		r.crash(p)
		r.failing = nil
		r.restart(p, false)
		took := r.until(10*time.Second, "all is held again", r.whole)
		if stored != (took < 2*time.Second) {
			t.Errorf("stored %v: all is held again after %v", stored, took)
		}
		r.safe()
	}
}
