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
