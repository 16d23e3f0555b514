package sim

import (
	"testing"
	"time"
)

// A daemon whose clock is ahead drops what others still count, and so does not
// pass it on: of labels that are over for it nothing is missed, on the ways that
// lead through its region, whatever its clock shows later.
func TestLostAuditorFollowsFastClocks(t *testing.T) {
	cfg := small(t)
	cfg.Regions = append(cfg.Regions, Region{"ap", 1})
	r := newRig(t, cfg, time.Second)
	const eu, us, ap = 0, 1, 2
	a := r.auditor("lost").(*lostAuditor)
	fast, other := r.w.daemons[0], r.w.daemons[1]
	p := &page{least: (epoch+int64(r.w.now))/int64(time.Millisecond) + 2_000}
	passed := func(from, to int) bool { return a.passedOn(r.w, p, from, to) }
	if !passed(eu, us) {
		t.Error("a label of another two seconds is taken for over")
	}
	clock := r.books().clocks.of(fast, 0)
	was := clock.most
	clock.most += 3_000
	r.tell(fast, r.message(other, fast))
	clock.most = was
	r.tell(fast, r.message(other, fast))
	for _, way := range []struct {
		from, to int
		want     bool
	}{{eu, us, false}, {us, eu, false}, {eu, eu, false}, {us, ap, true}, {us, us, true}} {
		if got := passed(way.from, way.to); got != way.want {
			t.Errorf("passed on from region %d to %d: %v, want %v", way.from, way.to, got, way.want)
		}
	}
}
