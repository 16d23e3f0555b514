package sim

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
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

// What of somebody gone a daemon knew when it met another it tells that one, but
// for cells of which somebody else told it more in between: they are for their
// aggregator to tell.
func TestLostAuditorLeavesWhatGrewToTheAggregator(t *testing.T) {
	for _, c := range []struct {
		name   string
		raise  uint64 // what is told of the one who knew 1, 0 for nothing
		late   bool   // after it said that it told all
		caught bool
	}{
		{"not told", 0, false, true},
		{"told no more than it knew", 1, false, true},
		{"told more", 2, false, false},
		{"told more later", 2, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := small(t)
			cfg.Regions, cfg.Workloads = []Region{{"eu", 3}}, nil
			cfg.Rules = parsed(t, `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2000}
`)
			r := newRig(t, cfg, time.Second)
			for i := range r.w.links {
				r.w.links[i].Loss = 100 * rules.Percent // what is said is said below
			}
			more, some, gone := r.w.daemons[0], r.w.daemons[1], r.w.daemons[2]
			incarnation := gone.Incarnations()[0]
			say := func(from, to *Daemon, n uint64) {
				is := &r.books().writers
				r.books().hearing.ear(is.of(to).index, is.of(from).index, 0)
				m := r.message(from, to)
				m.Hi++
				if n > 0 {
					cell := r.cell(quietKey, incarnation, n)
					cell.Window, cell.WindowLength, cell.Value = cell.Window-cell.Window%60_000, 60_000, crdt.PN{P: n}
					m.Cells = []gossip.Cell{cell}
				}
				r.step(to, m)
				r.pass(time.Millisecond)
			}
			r.decide(gone, quietKey, true)
			r.pass(time.Millisecond)
			say(gone, some, 1)
			r.decide(gone, quietKey, true)
			r.pass(time.Millisecond)
			say(gone, more, 2)
			r.w.crash(gone)
			r.w.runUntil(r.w.now + 3*time.Second)
			if err := r.w.start(gone); err != nil {
				t.Fatal(err)
			}
			r.w.runUntil(r.w.now + time.Second)
			r.clean("lost")
			if c.raise > 0 && !c.late {
				say(more, some, c.raise)
			}
			say(some, gone, 0)
			if c.late {
				say(more, some, c.raise)
			}
			say(some, gone, 0)
			if c.caught {
				r.caught("lost")
			} else {
				r.clean("lost")
			}
		})
	}
}
