package agent

import (
	"testing"
	"time"
)

// TestAgentsRest: agents that lack nothing send a message to each peer every 5
// s, and use their rights meanwhile. They send changes at once, and get what
// they lack in a second although messages are lost.
func TestAgentsRest(t *testing.T) {
	r := newRig(t, 1, 5, 1)
	r.boot()
	r.run(20 * time.Second)
	before := r.sent
	for range 60 {
		r.run(time.Second)
		for _, p := range r.daemons {
			if r.base(p, 0) == 0 {
				t.Errorf("%s holds nothing", p.name)
			}
		}
	}
	// The demand of each period of 10 s is sent, too.
	if local, across := r.sent[0]-before[0], r.sent[1]-before[1]; local > 5*4*13+4*6*2 || across > 2*(13+6*2) {
		t.Errorf("%d messages within a region and %d across in a minute", local, across)
	}
	r.loss = 30
	move(r, r.find("b1"))
	r.until(4*time.Second, "all have the new epoch", func() bool {
		for _, p := range r.daemons {
			if s, _ := p.Agent.region.Settled(); len(s.Rules) == 0 {
				return false
			}
		}
		return true
	})
	r.safe()
}

// TestRestWithinHorizons: the shorter the horizon, the shorter the rest.
func TestRestWithinHorizons(t *testing.T) {
	for _, horizon := range []time.Duration{0, 3 * time.Second, 30 * time.Second, time.Hour} {
		r := newRig(t, 1, 3)
		r.cfg.DaemonHorizon = horizon
		r.boot()
		r.run(10 * time.Second)
		want := 5 * time.Second
		if horizon == 3*time.Second {
			want = horizon / 6
		}
		for _, p := range r.daemons {
			if p.cfg.rest != want || r.base(p, 0) == 0 {
				t.Errorf("horizon %v: %s rests for %v and holds %d, want %v", horizon, p.name, p.cfg.rest, r.base(p, 0), want)
			}
		}
	}
}
