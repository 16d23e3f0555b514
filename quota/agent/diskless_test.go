package agent

import (
	"fmt"
	"testing"
	"time"
)

// withDiskless returns a cluster of one region of durable daemons and others
// without a disk, and one of three durable ones, with all rights held.
func withDiskless(t *testing.T, durable, others int) (r *rig, pods []*proc) {
	r = newRig(t, 1, durable, 3)
	r.boot()
	for range others {
		pods = append(pods, r.joinDiskless("a"))
	}
	r.until(10*time.Second, "all have joined", func() bool { return r.whole() && r.joined(pods[others-1]) })
	r.run(3 * time.Second) // they have their shares
	return r, pods
}

// TestDisklessAtOnce: all daemons without a disk end at once, without a word,
// and others come. Those with a disk reclaim the shares after the horizon.
func TestDisklessAtOnce(t *testing.T) {
	for _, durable := range []int{1, 2, 3} {
		for _, replaced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d durable, replaced %v", durable, replaced), func(t *testing.T) {
				r, pods := withDiskless(t, durable, 6)
				for _, p := range pods {
					r.crash(p)
				}
				if replaced {
					r.run(time.Second)
					for i := range pods {
						pods[i] = r.joinDiskless("a")
					}
				}
				took := r.until(60*time.Second, "all is held again", func() bool {
					return r.whole() && (!replaced || r.joined(pods[5]))
				})
				t.Logf("all is held again after %v", took)
				r.safe()
			})
		}
	}
}

// TestDisklessRoll replaces daemons without a disk, one every ten seconds, by
// others with new names that start first.
func TestDisklessRoll(t *testing.T) {
	r, pods := withDiskless(t, 3, 6)
	least := r.asked[0].total
	watch := func(d time.Duration) {
		for end := r.at + d; r.at < end; {
			r.run(step)
			least = min(least, r.held(0))
		}
	}
	for _, p := range pods {
		n := r.joinDiskless("a")
		watch(5 * time.Second)
		r.leave(p, 0)
		watch(5 * time.Second)
		if !r.joined(n) || p.up {
			r.dump()
			t.Fatalf("%s joined %v, %s up %v", n.name, r.joined(n), p.name, p.up)
		}
	}
	if least*100 < 99*r.asked[0].total || !r.whole() {
		r.dump()
		t.Fatalf("at least %d of %d held", least, r.asked[0].total)
	}
	t.Logf("at least %d of %d held", least, r.asked[0].total)
	r.safe()
}

// TestDisklessAlone: a daemon without a disk that reaches none of those with
// one holds nothing after the horizon.
func TestDisklessAlone(t *testing.T) {
	r, pods := withDiskless(t, 3, 2)
	alone := pods[0]
	r.cut = func(from, to *proc) bool { return (from == alone) != (to == alone) }
	r.run(r.cfg.DaemonHorizon + time.Second)
	if held := r.base(alone, 0); held != 0 {
		t.Errorf("it holds %d", held)
	}
	r.until(10*time.Second, "the others hold its share", r.whole)
	r.safe()
}

// TestDisklessDeadAtLeave: a daemon without a disk ended just before one with a
// disk leaves, so the epoch without the leaver must not keep a share that only
// the leaver could help to reclaim.
func TestDisklessDeadAtLeave(t *testing.T) {
	for _, tt := range []struct {
		durable int
		serves  time.Duration
		back    bool
	}{{1, 0, true}, {1, 10 * time.Second, true}, {2, 10 * time.Second, false}} {
		t.Run(fmt.Sprintf("%d durable, leaves after %v, back %v", tt.durable, tt.serves, tt.back), func(t *testing.T) {
			r, pods := withDiskless(t, tt.durable, 1)
			r.crash(pods[0])
			next := r.joinDiskless("a")
			r.run(2500 * time.Millisecond)
			left := r.find("a1")
			r.leave(left, tt.serves)
			r.until(tt.serves+4*time.Second, "it is gone", func() bool { return !left.up })
			if tt.back {
				r.restart(left, false)
			}
			r.until(60*time.Second, "all is held again", func() bool {
				return r.whole() && r.joined(next) && (!tt.back || r.joined(left))
			})
			r.safe()
		})
	}
}

// TestDisklessDeadWhileAway: the daemon with a disk stopped, and the diskless
// ones that took over its rights died before it is back. They may have let in
// another one that it does not know, so it holds nothing, although the record
// states that all that it knows are dead, until the region begins again.
func TestDisklessDeadWhileAway(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		t.Run(fmt.Sprintf("another holds rights: %v", hidden), func(t *testing.T) {
			r, pods := withDiskless(t, 1, 2)
			back, other := r.find("a1"), (*proc)(nil)
			r.leave(back, 0)
			r.until(4*time.Second, "it is gone, and the others hold all", func() bool { return !back.up && r.whole() })
			if hidden {
				other = r.joinDiskless("a")
				r.until(10*time.Second, "another has joined", func() bool { return r.joined(other) && r.whole() })
				r.cut = func(from, to *proc) bool { return (from == other) != (to == other) }
			}
			for _, p := range pods {
				r.crash(p)
			}
			r.run(5 * time.Second)
			r.restart(back, false)
			r.run(5 * time.Second)
			if !Stranded(back.Agent) {
				t.Error("it is not stranded")
			}
			for _, p := range pods {
				r.removeDaemon(p)
			}
			move(r, r.find("b1"))
			r.run(2 * r.cfg.DaemonHorizon)
			r.holdsNothing(back, "those that knew the promises of its region are dead")
			if !Stranded(back.Agent) {
				t.Error("it is not stranded")
			}
			if hidden && r.base(other, 1) == 0 {
				t.Error("the one that was let in holds nothing")
			}
			r.safe()
			r.cut = nil
			for _, p := range []*proc{back, other} {
				if p != nil {
					r.crash(p)
				}
			}
			r.run(15 * time.Second)
			if err := r.removeRegion(r.find("b1"), "a"); err != nil {
				t.Fatal(err)
			}
			r.until(15*time.Second, "the other region holds all", r.whole)
			r.restart(back, false)
			r.run(5 * time.Second)
			if err := r.addRegion(r.find("b1"), "a", 300_000); err != nil {
				t.Fatal(err)
			}
			r.until(10*time.Second, "it holds its share", func() bool { return r.base(back, 0) > 2900 && r.whole() })
			if Stranded(back.Agent) {
				t.Error("it is stranded")
			}
			r.safe()
		})
	}
}
